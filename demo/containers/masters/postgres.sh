#!/bin/sh
# Runs PostgreSQL on a volume, which gets a database with the name of the user at its first start.
set -eu
data=/var/lib/postgresql/data/cluster
if [ ! -e "$data/PG_VERSION" ]; then
  printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/tmp/password --encoding=UTF8 --auth-host=scram-sha-256 > /dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_USER" | postgres --single -D "$data" postgres > /dev/null
fi
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
