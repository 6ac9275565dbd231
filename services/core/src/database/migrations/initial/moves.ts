import { signature } from './signature.ts'
import { shownTimes } from './times.ts'

/**
 * Moves of workspaces between places (see moves/operations.ts). Core writes the rows, which it signs; the owner of the tables copies and
 * removes what they concern. The service role gets no right on money by them: the exceptions below are for sessions of the owner.
 */
export const moves = `
  -- The last move of each workspace that has ever moved here or away from here.
  create table workspace_move (
    workspace_id uuid primary key check (workspace_id <> '00000000-0000-0000-0000-000000000000'),
    -- Counts the moves of the workspace, over all places: the highest one is valid.
    generation bigint not null check (generation > 0),
    -- ARRIVING: its rows are copied to here, and are not used. PRESENT: it is here. LEAVING: it is here until it has arrived, and nothing
    -- of it changes. LEFT: it is elsewhere, and rows that remain here are not used.
    state text collate "C" not null check (state in ('ARRIVING', 'PRESENT', 'LEAVING', 'LEFT')),
    -- The numbers of the places.
    from_place integer not null check (from_place >= 0),
    to_place integer not null check (to_place >= 0),
    at timestamptz(3) not null,
    -- The access revision of the change, by which cores forget where the workspace was.
    access_revision bigint not null,
    ${signature},
    ${shownTimes('at')}
  );
  create index workspace_move_access_revision on workspace_move (access_revision);
  create index workspace_move_hidden on workspace_move (workspace_id) where state in ('ARRIVING', 'LEFT');

  -- Not by the generation: core must be able to replace a row that somebody else has written.
  create trigger workspace_move_update_is_checked before update on workspace_move for each row
    when (old.workspace_id <> new.workspace_id or new.revision <> old.revision + 1)
    execute function refuse_row_change();
  create trigger workspace_move_access_revision_is_checked before insert or update of access_revision on workspace_move for each row
    execute function check_access_revision();
  create trigger workspace_move_begins_with_revision_1 before insert on workspace_move for each row
    when (new.revision <> 1) execute function refuse_row_change();

  -- From the moment when a workspace is stopped, its rows at the place that it leaves stay as they are. Those of members, workspaces and
  -- the terms of keys and webhooks change with an entry in the audit, which lock_audit refuses; deliveries and uses of keys do not.
  create function refuse_change_while_leaving() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
  begin
    if exists (select from {schema}.ledger l where l.workspace_id = new.workspace_id and l.status = 'MOVING') then
      -- Callers retry, as after a lock that they waited for in vain.
      raise exception 'this update of % is refused: its workspace is moving to another place', tg_table_name
        using errcode = 'lock_not_available';
    end if;
    return new;
  end $$;
  create trigger webhook_stays_while_leaving before update on webhook for each row
    execute function refuse_change_while_leaving();
  create trigger api_key_stays_while_leaving before update on api_key for each row
    when (old.last_used_at is distinct from new.last_used_at) execute function refuse_change_while_leaving();
`
