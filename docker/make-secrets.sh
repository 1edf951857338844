#!/bin/sh
# Creates the secrets of the replicas and of the service deliveries in compose.yaml as files. It keeps the secrets that exist.
#
#   sh docker/make-secrets.sh [FOLDER]      the default is docker/secrets, which git ignores
set -eu
umask 022
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
# Containers read the files as other users, so the files are world-readable. On this machine, only the owner can enter the folder.
chmod 700 "$folder"

random() {
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

for name in client-hash admin-token redis-password delivery-secret; do
  [ -s "$folder/$name" ] || random >"$folder/$name"
done
# Without a password, a client of Redis may only send PING, which the health check uses.
cat >"$folder/redis-users.acl" <<END
user default on nopass resetkeys resetchannels -@all +ping
user tidegate on >$(cat "$folder/redis-password") ~tidegate:* &tidegate:* +@all -@dangerous +info
END
