/**
 * The audit: a chain for each workspace, and one for the actions on none. Functions with `security definer`: see access.ts.
 */
export const audit = `
  -- Who did what, when, and what it changed. One row in the transaction of each administrative action.
  create table audit (
    id bigint generated always as identity primary key,
    at timestamptz(3) not null,
    actor text not null,
    action text not null,
    workspace_id uuid,
    target text not null,
    -- Not jsonb: the MAC is over the text as it was written.
    before json,
    after json,
    -- Counts the actions on a workspace 1…n, and apart from them those on none.
    position bigint not null,
    -- Over all of the row but its id, and the MAC of the action before it.
    mac bytea not null
  );
  create index audit_workspace on audit (workspace_id, id);
  create unique index audit_position on audit (workspace_id, position) nulls not distinct;
  create index audit_actor on audit (actor, id);
  create index audit_target on audit (target, id);
  create index audit_at on audit (at);

  create trigger audit_is_immutable before update or delete on audit for each row execute function refuse_change();
  create trigger audit_is_kept before truncate on audit for each statement execute function refuse_change();

  -- The last action of each workspace. The nil UUID stands for actions on no workspace.
  create table audit_head (
    workspace_id uuid primary key,
    position bigint not null,
    mac bytea not null
  );

  -- Locks the heads of these workspaces, in one order everywhere, and tells the time.
  create function lock_audit(workspaces uuid[])
    returns table (workspace_id uuid, "position" bigint, mac bytea, now timestamptz) language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    insert into public.audit_head select distinct w, 0, ''::bytea from unnest(workspaces) w order by w
      on conflict do nothing;
    return query select h.workspace_id, h.position, h.mac, date_trunc('milliseconds', clock_timestamp())
      from (select * from public.audit_head a where a.workspace_id = any (workspaces)
        order by a.workspace_id for no key update) h;
  end $$;

  -- Appends and nothing else: an action is the next one of its workspace, and of this moment.
  create function append_audit() returns trigger language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if new.at not between transaction_timestamp() - interval '1 min' and clock_timestamp() + interval '1 min' then
      raise exception 'an action in the audit is of the time of its transaction' using errcode = 'restrict_violation';
    end if;
    update public.audit_head set position = new.position, mac = new.mac
      where workspace_id = coalesce(new.workspace_id, '00000000-0000-0000-0000-000000000000')
        and position = new.position - 1;
    if not found then
      raise exception 'action % of the audit is not the next one', new.position using errcode = 'serialization_failure';
    end if;
    return new;
  end $$;
  create trigger audit_is_appended before insert on audit for each row execute function append_audit();
`
