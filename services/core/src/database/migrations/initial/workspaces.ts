import { signature } from './signature.ts'
import { shownTimes } from './times.ts'

/** Workspaces and their members. */
export const workspaces = `
  create table workspace (
    -- The nil UUID stands for no workspace in the audit.
    id uuid primary key check (id <> '00000000-0000-0000-0000-000000000000'),
    name text not null check (octet_length(name) <= 1024),
    -- The number of the place.
    created_in integer not null default 0 check (created_in >= 0),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    deleted_at timestamptz(3),
    ${signature},
    ${shownTimes('created_at', 'updated_at', 'deleted_at')}
  );

  -- The row of a removed member is kept: a deleted row could be inserted again with its old MAC.
  create table member (
    workspace_id uuid not null references workspace,
    user_id text collate "C" not null check (octet_length(user_id) <= 1024),
    created_at timestamptz(3) not null,
    removed_at timestamptz(3),
    ${signature},
    primary key (workspace_id, user_id),
    ${shownTimes('created_at', 'removed_at')}
  );

  create trigger workspace_update_is_checked before update on workspace for each row
    when (old.id <> new.id or old.created_at <> new.created_at or new.revision <> old.revision + 1
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at))
    execute function refuse_row_change();

  create trigger member_update_is_checked before update on member for each row
    when (old.workspace_id <> new.workspace_id or old.user_id <> new.user_id or new.revision <> old.revision + 1)
    execute function refuse_row_change();

  create trigger workspace_begins_with_revision_1 before insert on workspace for each row
    when (new.revision <> 1) execute function refuse_row_change();
  create trigger member_begins_with_revision_1 before insert on member for each row
    when (new.revision <> 1) execute function refuse_row_change();
`
