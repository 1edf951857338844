#!/bin/sh
# Installs Tidegate below $DESTDIR in the places of a Debian package: docs/service.md lists them.
#
#   sh config/systemd/install.sh    from the folder of the package, with dist/ and config/; as root, if DESTDIR is empty
#
# An existing configuration stays as it is.
set -eu

root=${DESTDIR:-}
node=${NODE:-/usr/bin/node}
here=$(cd "$(dirname "$0")/../.." && pwd -P)
library=/usr/lib/tidegate

if [ "$here" = "$(cd "$root$library" 2> /dev/null && pwd -P)" ]; then
  echo "install.sh: $here is the installed program: run the script of a clone or of the unpacked package" >&2
  exit 1
fi
[ -f "$here/dist/main.js" ] || {
  echo "install.sh: $here/dist/main.js is missing: run npm run build first" >&2
  exit 1
}
"$node" "$here/dist/main.js" version > /dev/null # a Node that is too old prints which one is needed

put() { # MODE SOURCE TARGET
  install -D -m "$1" "$2" "$root$3"
}
keep() { # as put, unless the target exists
  [ -e "$root$3" ] || put "$@"
}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
print() { # TARGET COMMAND…: installs what a command of Tidegate prints
  target=$1
  shift
  "$node" "$here/dist/main.js" "$@" > "$made"
  put 644 "$made" "$target"
}

# Named one by one: an operator may keep other files in config/, with secrets, and everybody may read the copy.
new="$root$library.new"
rm -rf "$new"
mkdir -p "$new/config"
cp -R "$here/dist" "$here/package.json" "$new/"
for name in examples helm ingress practice.yaml providers scenarios systemd tidegate.yaml; do
  cp -R "$here/config/$name" "$new/config/"
done
chmod -R u=rwX,go=rX "$new"
rm -rf "$root$library"
mv "$new" "$root$library"

printf '#!/bin/sh\nexec %s %s/dist/main.js "$@"\n' "$node" "$library" > "$made"
put 755 "$made" /usr/bin/tidegate
print /usr/share/man/man1/tidegate.1 man
print /usr/share/bash-completion/completions/tidegate completion bash
print /usr/share/zsh/vendor-completions/_tidegate completion zsh
print /usr/share/fish/vendor_completions.d/tidegate.fish completion fish
put 644 "$here/config/systemd/tidegate.service" /usr/lib/systemd/system/tidegate.service
put 644 "$here/config/systemd/tidegate.sysusers" /usr/lib/sysusers.d/tidegate.conf
keep 640 "$here/config/systemd/tidegate.default" /etc/default/tidegate
keep 640 "$here/config/tidegate.yaml" /etc/tidegate/tidegate.yaml

# In another root, the maintainer scripts of a package do this.
if [ -z "$root" ]; then
  systemd-sysusers /usr/lib/sysusers.d/tidegate.conf
  chgrp tidegate /etc/tidegate/tidegate.yaml
  systemctl daemon-reload
  systemctl try-restart tidegate # a process that runs would load files of both versions
fi
