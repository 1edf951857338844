#!/usr/bin/env bash
# Builds the image of the Dockerfile and runs it without a container engine: buildah in chroot isolation, on a base image
# made here and tagged as the one the Dockerfile names. Then the compose file and what it mounts.
#
# Needs root. The base image stays in /var/cache between runs; everything else is removed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=test/containers

if ((EUID != 0)); then
  echo 'check:containers changes root: run it as root, on Debian or Ubuntu or in a container of them.' >&2
  exit 1
fi

cache=/var/cache/tidegate-containers
install -d -m 700 "$cache"
exec 9>"$cache/lock"
flock 9

export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
work=$(mktemp -d)
image=localhost/tidegate:check
storage() { buildah --root "$cache/storage" --runroot "$cache/run" "$@"; }
clean_up() {
  storage rm --all >/dev/null 2>&1 || true
  storage rmi "$image" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT

# How npm outside reaches its registry, for npm inside: options for a build, nothing of which stays in the image.
npm_options() {
  local ca user
  npm --loglevel=error config list --json >"$work/npm.json"
  setting() { node -p '[require(process.argv[1])[process.argv[2]] ?? ""].join()' "$work/npm.json" "$1"; }
  for key in registry proxy https-proxy noproxy strict-ssl; do
    echo "$key=$(setting "$key")"
  done | grep -v '=$' >"$work/npmrc"
  ca=$(setting cafile)
  ca=${ca:-${NODE_EXTRA_CA_CERTS:-}}
  if [[ -r $ca ]]; then
    echo "cafile=$ca" >>"$work/npmrc"
    echo "--volume=$ca:$ca:ro"
  fi
  echo "--volume=$work/npmrc:/usr/local/etc/npmrc:ro"
  user=$(setting userconfig)
  [[ ! -r $user ]] || echo "--volume=$user:/root/.npmrc:ro"
}

# Whether Redis, started like this, never forgets a key to make room, and writes nothing to a disk.
check_redis() {
  local at="$work/redis.sock" told
  "$@" --port 0 --unixsocket "$at" --dir "$work" >"$work/redis.log" &
  local pid=$!
  for ((tries = 0; tries < 100; tries += 1)); do
    redis-cli -s "$at" ping >/dev/null 2>&1 && break
    sleep 0.1
  done
  told=$(redis-cli -s "$at" config get 'maxmemory*' | paste -sd ' '; redis-cli -s "$at" config get save | paste -sd '|')
  kill "$pid"
  wait "$pid" || true
  [[ $told == *'maxmemory-policy noeviction'* && $told == *'maxmemory 67108864'* && $told == *'save|' ]] ||
    { echo "Redis of the compose file is set otherwise: $told"; cat "$work/redis.log"; return 1; } >&2
}

# Whether Redis knows the users of the file that the compose file mounts, and lets others do no more than its health check.
check_users() {
  local at="$work/users.sock" folder=$1 told
  shift
  "$@" --port 0 --unixsocket "$at" --dir "$work" --aclfile "$folder/redis-users.acl" >"$work/users.log" &
  local pid=$!
  for ((tries = 0; tries < 100; tries += 1)); do
    [[ $(redis-cli -s "$at" ping 2>/dev/null) == PONG ]] && break
    sleep 0.1
  done
  told=$(redis-cli -s "$at" get tidegate:x; redis-cli -s "$at" --no-auth-warning --user tidegate \
    --pass "$(cat "$folder/redis-password")" set tidegate:x 1)
  kill "$pid"
  wait "$pid" || true
  [[ $told == *NOPERM* && $told == *OK ]] || { echo "Redis lets others do: $told"; cat "$work/users.log"; return 1; } >&2
}

echo '-- base image'
mapfile -t bases < <(sed -nE 's/^FROM ([^ ]+).*/\1/p' Dockerfile | sort -u)
((${#bases[@]} == 1)) || { echo "the Dockerfile names several bases: ${bases[*]}" >&2; exit 1; }
source "$here/base-image.sh"
make_base "docker.io/library/${bases[0]}"

echo '-- image'
npm_options >"$work/options"
mapfile -t options <"$work/options"
storage bud --quiet --pull-never --format docker "${options[@]}" --tag "$image" .
storage inspect --type image "$image" >"$work/image.json"
node "$here/image.ts" "$work/image.json"

echo '-- container'
container=$(storage from --pull-never "$image")
for file in "$here/in-container.ts" "$work/image.json" docker/tidegate/tidegate.yaml docker/practice/payments.yaml \
  docker/grafana/dashboards/tidegate.json; do
  storage copy --quiet "$container" "$file" /tmp/check/ >/dev/null
done
# As compose mounts them: files of this machine, with the rights that they have here.
sh docker/make-secrets.sh "$work/secrets"
storage copy --quiet "$container" docker/replicas/tidegate.yaml /tmp/check/replica.yaml >/dev/null
storage copy --quiet "$container" "$work"/secrets/* /run/secrets/ >/dev/null
storage run "$container" -- node /tmp/check/in-container.ts

for overlay in gateway sidecar ingress-helper; do
  echo "-- pod of $overlay"
  pod=$(storage from --pull-never "$image")
  mkdir "$work/$overlay"
  node "$here/pod.ts" "$overlay" "$work/$overlay"
  # Root's, and of the group that kubelet gives it by fsGroup.
  storage copy --quiet --chown 0:1000 "$pod" "$work/$overlay/root" / >/dev/null
  storage copy --quiet "$pod" "$here/in-pod.ts" "$work/$overlay/pod.json" /tmp/check/ >/dev/null
  storage run "$pod" -- node /tmp/check/in-pod.ts
done

echo '-- compose'
docker-compose --file docker/compose.yaml --profile replicas --profile monitoring config >"$work/compose.yaml"
node "$here/compose.ts" "$work/compose.yaml" >"$work/redis"
mapfile -t redis <"$work/redis"
check_redis "${redis[@]}"
check_users "$work/secrets" "${redis[@]}"
promtool check config docker/prometheus/prometheus.yml
promtool test rules docker/prometheus/tests/*.yml
node "$here/dashboards.ts" docker/grafana/dashboards >"$work/queries.json"
promtool check rules "$work/queries.json"
