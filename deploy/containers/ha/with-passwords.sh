#!/bin/sh
# Runs a command with the passwords of Patroni, which reads them from its environment or its configuration, not from files.
set -eu
PATRONI_SUPERUSER_PASSWORD=$(cat /secrets/superuser-password)
PATRONI_REPLICATION_PASSWORD=$(cat /secrets/replication-password)
PATRONI_RESTAPI_PASSWORD=$(cat /secrets/patroni-password)
export PATRONI_SUPERUSER_PASSWORD PATRONI_REPLICATION_PASSWORD PATRONI_RESTAPI_PASSWORD
exec "$@"
