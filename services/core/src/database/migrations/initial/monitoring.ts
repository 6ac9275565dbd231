/**
 * Figures of the server that only members of pg_read_all_stats may read. The functions run with the rights of the role that owns the
 * schema, so that the service's role gets these figures without the statements of other sessions. If the owner is no member either,
 * the first function returns what the owner may see, and the second one no rows.
 */
export const monitoring = `
  -- When the oldest open transaction of this database began, or of another one that has an ID, which counts for all databases. A session
  -- that has not started yet has no database: it may be in this one.
  create function oldest_transaction_start() returns timestamptz language sql stable
    security definer set search_path = pg_catalog, pg_temp as $$
    select min(xact_start) from pg_catalog.pg_stat_activity
    where (datname = current_database() or datname is null or backend_xid is not null) and backend_type = 'client backend'
      and pid <> pg_backend_pid()
  $$;

  -- The standbys and other receivers of the write-ahead log, and how many bytes of it each has not replayed yet. Those that replay
  -- nothing count as having replayed what they have stored or received.
  create function replication_state() returns table (name text, sync_state text, lag_bytes numeric) language sql stable
    security definer set search_path = pg_catalog, pg_temp as $$
    select application_name, sync_state, pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(replay_lsn, flush_lsn, write_lsn, sent_lsn))
    from pg_catalog.pg_stat_replication where state in ('catchup', 'streaming')
  $$;
`
