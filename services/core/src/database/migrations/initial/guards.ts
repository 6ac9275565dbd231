/**
 * Functions for the triggers of the other files. They reject a change.
 *
 * A workspace moves to another place with its whole history (see moves.ts), so its rows are inserted there as they are, and removed
 * afterwards where they were. The triggers let that pass for sessions of the owner of the tables only, and only for workspaces in the
 * states for it.
 */
export const guards = `
  -- Whether this session belongs to the owner of the tables, and the workspace is in one of these states here.
  create function is_moved_by_owner(workspace uuid, states text[]) returns boolean language plpgsql stable
    set search_path = pg_catalog, pg_temp as $$
  begin
    return pg_has_role(session_user, (select relowner from pg_class where oid = '{schema}.workspace_move'::regclass), 'member')
      and exists (select from {schema}.workspace_move m where m.workspace_id = workspace and m.state = any (states));
  end $$;

  create function refuse_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
  begin
    if tg_op = 'DELETE' and tg_level = 'ROW' then
      if {schema}.is_moved_by_owner(old.workspace_id, '{ARRIVING,LEFT}') then
        return old;
      end if;
    end if;
    raise exception '% on % is refused: entries are immutable', tg_op, tg_table_name using errcode = 'restrict_violation';
  end $$;

  -- For signed rows that do not begin with revision 1, and for updates of them that do not raise it by one, change the identity
  -- or restore a deleted row.
  create function refuse_row_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
  declare
    workspace uuid;
  begin
    if tg_op = 'INSERT' and tg_table_name in ('workspace', 'member', 'api_key', 'webhook') then
      workspace := to_jsonb(new) ->> case tg_table_name when 'workspace' then 'id' else 'workspace_id' end;
      if {schema}.is_moved_by_owner(workspace, '{ARRIVING}') then
        return new;
      end if;
    end if;
    raise exception 'this % of % is refused: revisions begin with 1 and rise by one, and identity and deletion are final',
      lower(tg_op), tg_table_name using errcode = 'restrict_violation';
  end $$;
`
