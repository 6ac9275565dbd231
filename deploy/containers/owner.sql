-- The PostgreSQL image runs this once, on a new data directory. It creates the database and the role that owns its schema,
-- which only the migration step uses. The migration step creates the role of the service.
\set password `cat /secrets/owner-password`
create role wallet_owner login createrole password :'password';
create database wallet owner wallet_owner;
-- For the metrics of replication and of the oldest transaction (see monitoring.ts).
grant pg_read_all_stats to wallet_owner;
