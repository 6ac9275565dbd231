#!/bin/sh
# Patroni calls it with the URL of the new primary, before anybody else can connect.
exec psql --dbname="$1" --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --file=/docker-entrypoint-initdb.d/owner.sql
