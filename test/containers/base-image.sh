# shellcheck shell=bash
# Sourced by check.sh, which provides storage, cache and work.

# Builds a stand-in for Docker's official Node image: Debian, Node and npm in the same places, the user 1000. It is cached
# while its sources are the same, and for a month at most, because Debian's packages change.
make_base() {
  local name=$1 node version suite key
  node=$(readlink -f "$(node -p process.execPath)")
  version=$("$node" --version)
  suite=$(sed -nE 's/.*:[0-9]+-([a-z]+)-slim$/\1/p' <<<"$name")
  if [[ -z $suite || $name != */node:"$(cut -d. -f1 <<<"${version#v}")-$suite-slim" ]]; then
    echo "$name is no slim Node image of the version at hand, $version" >&2
    return 1
  fi
  key=$({ cat "${BASH_SOURCE[0]}"; echo "$suite"; sha256sum <"$node"; date +%Y-%m; } | sha256sum | cut -c1-32)
  if [[ $(storage inspect --type image --format '{{index .OCIv1.Config.Labels "made-of"}}' "$name" 2>/dev/null) == "$key" ]]; then
    echo "$name is at hand ($version)"
    return
  fi

  storage rmi --all --force >/dev/null 2>&1 || true
  mkdir -p "$work/local/bin"
  install -m 755 "$node" "$work/local/bin/node"
  npm --loglevel=error install --global --no-audit --no-fund --prefix "$work/local" npm@11
  mmdebstrap --quiet --variant=essential --include=libstdc++6,libatomic1 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook="copy-in $work/local /usr" \
    --customize-hook='echo node:x:1000:1000::/home/node:/bin/sh >>"$1/etc/passwd"' \
    --customize-hook='echo node:x:1000: >>"$1/etc/group"' \
    --customize-hook='install -d -o 1000 -g 1000 "$1/home/node"' \
    "$suite" "$work/base.tar"
  local container
  container=$(storage from scratch)
  storage add --quiet "$container" "$work/base.tar" / >/dev/null
  storage config --label "made-of=$key" --env "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    --cmd node "$container"
  storage commit --quiet --rm "$container" "$name" >/dev/null
  rm -rf "$work/base.tar" "$work/local"
  echo "$name made ($version)"
}
