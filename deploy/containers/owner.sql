-- Run once by PostgreSQL's image, on a new data directory: the role that owns the schema, for the migration step alone,
-- and its database. The service's own role is made by the migration step.
\set password `cat /secrets/owner-password`
create role wallet_owner login createrole password :'password';
create database wallet owner wallet_owner;
