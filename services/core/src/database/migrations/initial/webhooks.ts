import { changed } from './changed.ts'
import { signature } from './signature.ts'
import { shownTimes } from './times.ts'

/**
 * Webhooks. Core writes their rows. The delivery state, from `position` on, is not signed. Bounds keep a row that somebody else
 * writes from failing the statements and programs that read it together with others.
 */
export const webhooks = `
  create table webhook (
    id uuid primary key,
    workspace_id uuid not null references ledger,
    biz_id text collate "C" not null check (octet_length(biz_id) <= 64),
    -- A MAC of workspace and bizId. Without the chain key, nobody can take a bizId that no webhook has had.
    biz_id_mac bytea not null unique check (octet_length(biz_id_mac) <= 64),
    url text not null check (octet_length(url) <= 2048),
    -- Empty: all types of events.
    types text[] not null check (cardinality(types) <= 100 and octet_length(array_to_string(types, ',', ' ')) <= 1024),
    concurrency smallint not null check (concurrency between 1 and 16),
    status text not null check (status in ('ACTIVE', 'PAUSED')),
    secret text not null check (octet_length(secret) <= 1024),
    secret_version integer not null check (secret_version > 0),
    previous_secret text check (octet_length(previous_secret) <= 1024),
    previous_secret_until timestamptz(3),
    deleted_at timestamptz(3),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    -- Every event of the workspace up to this position is delivered or of another type.
    position bigint not null check (position between 0 and 9007199254740991),
    -- Another random one with each lease and each change. A report with another generation has no effect.
    generation uuid not null,
    -- The generation of the last lease, which ends at leased_until or when its courier reports.
    leased_generation uuid,
    leased_until timestamptz(3) not null,
    next_attempt_at timestamptz(3) not null,
    -- Failures since the last success.
    failures integer not null check (failures >= 0),
    failing_since timestamptz(3),
    last_status integer check (last_status between 100 and 999),
    last_error text check (last_error in ('ADDRESS', 'CONNECTION', 'TLS', 'TIMEOUT', 'PROTOCOL')),
    last_attempt_at timestamptz(3),
    ${signature},
    check ((previous_secret is null) = (previous_secret_until is null)),
    ${shownTimes(
      'previous_secret_until',
      'deleted_at',
      'created_at',
      'updated_at',
      'leased_until',
      'next_attempt_at',
      'failing_since',
      'last_attempt_at',
    )}
  ) with (fillfactor = 50);
  -- So that deleted webhooks, of which there can be any number, cost nothing.
  create index webhook_existing on webhook (workspace_id) where deleted_at is null;
  -- From when on the webhooks of each workspace may be leased: a call reads the first of each workspace, however many rows it has.
  create index webhook_due on webhook (workspace_id, greatest(leased_until, next_attempt_at))
    where deleted_at is null and status = 'ACTIVE';

  -- For operators: waits for those that lock rows of webhooks, and makes others wait (see lock_access).
  create function lock_webhooks() returns void language sql
    security definer set search_path = pg_catalog, pg_temp as $$
    lock table {schema}.webhook in exclusive mode
  $$;

  -- The row of a deleted webhook is kept: a deleted row could be inserted again with its old MAC, and bizIds are unique for
  -- ever. The state of delivery changes without a new revision of the row.
  create trigger webhook_update_is_checked before update on webhook for each row
    when (old.id <> new.id or old.workspace_id <> new.workspace_id or old.biz_id <> new.biz_id
      or old.biz_id_mac <> new.biz_id_mac
      or old.created_at <> new.created_at or new.secret_version < old.secret_version
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at)
      -- The difference cannot overflow, whatever the owner of the tables has stored.
      or (new.revision - 1 <> old.revision and (${changed('revision', 'mac', 'url', 'types', 'concurrency', 'status', 'secret', 'secret_version', 'previous_secret', 'previous_secret_until', 'deleted_at', 'updated_at')})))
    execute function refuse_row_change();
  create trigger webhook_begins_with_revision_1 before insert on webhook for each row
    when (new.revision <> 1) execute function refuse_row_change();
`
