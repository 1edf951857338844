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
for file in "$here/in-container.ts" "$work/image.json" docker/tidegate/tidegate.yaml docker/practice/practice.yaml \
  docker/grafana/dashboards/tidegate.json; do
  storage copy --quiet "$container" "$file" /tmp/check/ >/dev/null
done
storage run "$container" -- node /tmp/check/in-container.ts

echo '-- compose'
docker-compose --file docker/compose.yaml --profile replicas config >"$work/compose.yaml"
node "$here/compose.ts" "$work/compose.yaml" >"$work/redis"
mapfile -t redis <"$work/redis"
check_redis "${redis[@]}"
promtool check config docker/prometheus/prometheus.yml
promtool test rules docker/prometheus/tests/*.yml
node "$here/dashboards.ts" docker/grafana/dashboards >"$work/queries.json"
promtool check rules "$work/queries.json"
