import { bounded } from './bounded.ts'

/** The audit: one chain per workspace, and one for actions on no workspace. For `security definer`, see access.ts. */
export const audit = `
  -- One row per administrative action, written in the same transaction: who did what and when, and what changed.
  create table audit (
    id bigint generated always as identity primary key check (id between 1 and 9007199254740991),
    at bounded_time not null,
    actor text not null,
    action text not null,
    -- The nil UUID stands for no workspace in audit_head: with both, two actions would share a position of that chain.
    workspace_id uuid check (workspace_id <> '00000000-0000-0000-0000-000000000000'),
    target text not null,
    -- json, not jsonb, because the MAC covers the original text.
    before json,
    after json,
    -- Why, if the actor has said so, and the call or request that did it.
    reason text,
    request_id text,
    -- 1…n within the workspace; actions on no workspace have their own sequence.
    position bigint not null,
    -- Covers the row except for its id, and the MAC of the previous action.
    mac bytea not null,
    ${bounded(1024, 'actor', 'action', 'target', 'reason', 'request_id', 'mac')},
    ${bounded(262_144, 'before::text', 'after::text')}
  );
  create index audit_workspace on audit (workspace_id, id);
  create unique index audit_position on audit (workspace_id, position) nulls not distinct;
  create index audit_actor on audit (actor, id);
  create index audit_target on audit (target, id);
  create index audit_request on audit (request_id, id) where request_id is not null;
  -- The actions that operators look for among millions of deposits.
  create index audit_record on audit (action, id)
    where action in ('ledger.verify', 'ledger.verify-incremental', 'ledger.checkpoint', 'system.backup');
  -- Those of all workspaces, which alerts depend on: however many others there are of single workspaces.
  create index audit_record_of_all on audit (action, id)
    where workspace_id is null
      and action in ('ledger.verify', 'ledger.verify-incremental', 'ledger.checkpoint', 'system.backup');
  -- What an incremental verification reads beside the newest actions.
  create index audit_administration on audit (workspace_id, position)
    where action not in ('wallet.deposit', 'wallet.withdraw');
  create index audit_at on audit (at);
  -- See access/nonce-generation.ts.
  create index audit_nonce_generation on audit ((after ->> 'tag'), id) where action = 'nonces.begin';

  create trigger audit_is_immutable before update or delete on audit for each row execute function refuse_change();
  create trigger audit_is_kept before truncate on audit for each statement execute function refuse_change();

  -- The last action of each workspace. The nil UUID stands for actions on no workspace.
  create table audit_head (
    workspace_id uuid primary key,
    position bigint not null,
    mac bytea not null,
    ${bounded(1024, 'mac')}
  );

  -- Locks the heads of these workspaces, always in the same order, and returns the time after the locks were granted. Those that
  -- do not exist have none, nor those that another transaction has stopped because they move to another place. The second statement
  -- sees what was committed while the first one waited.
  create function lock_audit(workspaces uuid[])
    returns table (workspace_id uuid, "position" bigint, mac bytea, now timestamptz) language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    insert into {schema}.audit_head select distinct w, 0, ''::bytea from unnest(workspaces) w
      where w = '00000000-0000-0000-0000-000000000000' or (select true from {schema}.workspace where id = w limit 1)
      order by w on conflict do nothing;
    perform from {schema}.audit_head a where a.workspace_id = any (workspaces) order by a.workspace_id for no key update;
    return query select h.workspace_id, h.position, h.mac, date_trunc('milliseconds', clock_timestamp())
      from {schema}.audit_head h
      where h.workspace_id = any (workspaces) and not exists (
        select from {schema}.ledger l where l.workspace_id = h.workspace_id and l.status = 'MOVING');
  end $$;

  -- Accepts an action only if it has the next position of its workspace and the current time. Those of a workspace that arrives from
  -- another place keep their times.
  create function append_audit() returns trigger language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if new.at not between transaction_timestamp() - interval '1 min' and clock_timestamp() + interval '1 min'
      and not {schema}.is_moved_by_owner(new.workspace_id, '{ARRIVING}')
    then
      raise exception 'the time of an audit action must be the time of its transaction' using errcode = 'restrict_violation';
    end if;
    update {schema}.audit_head set position = new.position, mac = new.mac
      where workspace_id = coalesce(new.workspace_id, '00000000-0000-0000-0000-000000000000')
        and position = new.position - 1;
    if not found then
      raise exception 'position % is not the next one of the audit', new.position using errcode = 'serialization_failure';
    end if;
    return new;
  end $$;
  create trigger audit_is_appended before insert on audit for each row execute function append_audit();
`
