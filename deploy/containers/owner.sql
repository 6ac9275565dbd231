-- The PostgreSQL image runs this once, on a new data directory. It creates the database and the role that owns its schema,
-- which only the migration step uses. The migration step creates the role of the service.
\set password `cat /secrets/owner-password`
create role wallet_owner login createrole password :'password';
create database wallet owner wallet_owner;
-- The archive receives the write-ahead log. PostgreSQL's rule for all databases does not cover replication.
\set archive_password `cat /secrets/archive-password`
create role wallet_archive login replication password :'archive_password';
copy (select 'host replication wallet_archive all scram-sha-256') to program 'cat >> pg_hba.conf';
-- For the metrics of replication and of the oldest transaction (see monitoring.ts).
grant pg_read_all_stats to wallet_owner;
