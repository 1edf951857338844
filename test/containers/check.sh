#!/usr/bin/env bash
# Builds the image of the Dockerfile and runs it without a container engine: buildah in chroot isolation, on a base image
# made here and tagged as the one the Dockerfile names. Then checks the compose file and the files it mounts.
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

# Prints build options that give npm in the image the registry settings of this machine. They do not stay in the image.
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

# Checks that Redis, started with this command, evicts no keys and writes nothing to disk.
check_redis() {
  local at="$work/redis.sock" settings
  "$@" --port 0 --unixsocket "$at" --dir "$work" >"$work/redis.log" &
  local pid=$!
  for ((tries = 0; tries < 100; tries += 1)); do
    redis-cli -s "$at" ping >/dev/null 2>&1 && break
    sleep 0.1
  done
  settings=$(redis-cli -s "$at" config get 'maxmemory*' | paste -sd ' '; redis-cli -s "$at" config get save | paste -sd '|')
  kill "$pid"
  wait "$pid" || true
  [[ $settings == *'maxmemory-policy noeviction'* && $settings == *'maxmemory 67108864'* && $settings == *'save|' ]] ||
    { echo "Redis of the compose file is set otherwise: $settings"; cat "$work/redis.log"; return 1; } >&2
}

# Checks that Redis has the users of the mounted ACL file, and allows other users only its health check.
check_users() {
  local at="$work/users.sock" folder=$1 settings
  shift
  "$@" --port 0 --unixsocket "$at" --dir "$work" --aclfile "$folder/redis-users.acl" >"$work/users.log" &
  local pid=$!
  for ((tries = 0; tries < 100; tries += 1)); do
    [[ $(redis-cli -s "$at" ping 2>/dev/null) == PONG ]] && break
    sleep 0.1
  done
  settings=$(redis-cli -s "$at" get tidegate:x; redis-cli -s "$at" --no-auth-warning --user tidegate \
    --pass "$(cat "$folder/redis-password")" set tidegate:x 1)
  kill "$pid"
  wait "$pid" || true
  [[ $settings == *NOPERM* && $settings == *OK ]] || { echo "Redis lets others do: $settings"; cat "$work/users.log"; return 1; } >&2
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
# Compose mounts these files of this machine with their permissions.
sh docker/make-secrets.sh "$work/secrets"
storage copy --quiet "$container" docker/replicas/tidegate.yaml /tmp/check/replica.yaml >/dev/null
storage copy --quiet "$container" "$work"/secrets/* /run/secrets/ >/dev/null
storage run "$container" -- node /tmp/check/in-container.ts

for mode in gateway sidecar ingress-helper; do
  echo "-- pod of $mode"
  pod=$(storage from --pull-never "$image")
  mkdir "$work/$mode"
  node "$here/pod.ts" "$mode" "$work/$mode"
  # Owned by root, with the group that kubelet sets for fsGroup.
  storage copy --quiet --chown 0:1000 "$pod" "$work/$mode/root" / >/dev/null
  storage copy --quiet "$pod" "$here/in-pod.ts" "$work/$mode/pod.json" /tmp/check/ >/dev/null
  storage run "$pod" -- node /tmp/check/in-pod.ts
done

echo '-- compose'
docker-compose --file docker/compose.yaml --profile replicas --profile deliveries --profile monitoring config >"$work/compose.yaml"
node "$here/compose.ts" "$work/compose.yaml" >"$work/redis"
mapfile -t redis <"$work/redis"
check_redis "${redis[@]}"
check_users "$work/secrets" "${redis[@]}"
promtool check config docker/prometheus/prometheus.yml
promtool test rules docker/prometheus/tests/*.yml
node "$here/dashboards.ts" docker/grafana/dashboards >"$work/queries.json"
promtool check rules "$work/queries.json"
