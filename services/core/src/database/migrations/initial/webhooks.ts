import { signature } from './signature.ts'

/** Webhooks. Core writes their rows. The delivery state, from `position` on, is not signed. */
export const webhooks = `
  create table webhook (
    id uuid primary key,
    workspace_id uuid not null references ledger,
    biz_id text collate "C" not null,
    url text not null,
    -- Empty: all types of events.
    types text[] not null,
    concurrency smallint not null check (concurrency between 1 and 16),
    status text not null check (status in ('ACTIVE', 'PAUSED')),
    secret text not null,
    secret_version integer not null check (secret_version > 0),
    previous_secret text,
    previous_secret_until timestamptz(3),
    deleted_at timestamptz(3),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    -- Every event of the workspace up to this position is delivered or of another type.
    position bigint not null check (position >= 0),
    -- Rises with each lease and each change. A report with another generation has no effect.
    generation bigint not null check (generation > 0),
    -- The generation of the last lease, which ends at leased_until or when its courier reports.
    leased_generation bigint not null,
    leased_until timestamptz(3) not null,
    next_attempt_at timestamptz(3) not null,
    -- Failures since the last success.
    failures integer not null check (failures >= 0),
    failing_since timestamptz(3),
    last_status integer,
    last_error text check (last_error in ('ADDRESS', 'CONNECTION', 'TLS', 'TIMEOUT', 'PROTOCOL')),
    last_attempt_at timestamptz(3),
    ${signature},
    unique (workspace_id, biz_id),
    check ((previous_secret is null) = (previous_secret_until is null)),
    check (isfinite(previous_secret_until) and isfinite(deleted_at) and isfinite(created_at) and isfinite(updated_at)
      and isfinite(leased_until) and isfinite(next_attempt_at) and isfinite(failing_since) and isfinite(last_attempt_at))
  ) with (fillfactor = 50);
  -- So that deleted webhooks, of which there can be any number, cost nothing. It has no column that a delivery changes, so that
  -- deliveries do not write to it.
  create index webhook_existing on webhook (workspace_id) where deleted_at is null;

  -- The row of a deleted webhook is kept: a deleted row could be inserted again with its old MAC, and bizIds are unique for
  -- ever. The state of delivery changes without a new revision of the row.
  create trigger webhook_update_is_checked before update on webhook for each row
    when (old.id <> new.id or old.workspace_id <> new.workspace_id or old.biz_id <> new.biz_id
      or old.created_at <> new.created_at or new.secret_version < old.secret_version
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at)
      or new.generation < old.generation
      or (new.revision <> old.revision + 1 and (new.revision, new.mac, new.url, new.types, new.concurrency, new.status,
          new.secret, new.secret_version, new.previous_secret, new.previous_secret_until, new.deleted_at, new.updated_at)
        is distinct from (old.revision, old.mac, old.url, old.types, old.concurrency, old.status,
          old.secret, old.secret_version, old.previous_secret, old.previous_secret_until, old.deleted_at, old.updated_at)))
    execute function refuse_row_change();
`
