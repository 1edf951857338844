#!/bin/sh
# The secrets of compose.yaml's replicas, as files: makes those that are not there.
#
#   sh docker/make-secrets.sh [FOLDER]      docker/secrets, which git ignores
set -eu
umask 022
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
# Containers read the files as users of their own. On this machine nobody else gets into the folder.
chmod 700 "$folder"

random() {
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

for name in client-hash admin-token redis-password; do
  [ -s "$folder/$name" ] || random >"$folder/$name"
done
# Whoever is not Tidegate may ask whether Redis is there.
cat >"$folder/redis-users.acl" <<END
user default on nopass resetkeys resetchannels -@all +ping
user tidegate on >$(cat "$folder/redis-password") ~tidegate:* &tidegate:* +@all -@dangerous +info
END
