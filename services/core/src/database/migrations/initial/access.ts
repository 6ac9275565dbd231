import { changed } from './changed.ts'
import { signature } from './signature.ts'
import { shownTimes } from './times.ts'

/**
 * API keys, and the access revision by which gateways detect changes.
 *
 * Functions with `security definer` run with the rights of the owner of the tables, so that the service role can write
 * such rows only through them. They schema-qualify every name, so that the caller's objects are not used instead.
 */
export const access = `
  -- One row. Each change of access takes the next revision and locks this row, so revisions are in commit order.
  create table access_revision (
    singleton boolean primary key default true check (singleton),
    revision bigint not null
  );
  insert into access_revision (revision) values (0);

  -- A random epoch for each access revision. A restored database assigns the same revisions again, with other epochs.
  create table access_change (
    revision bigint primary key,
    epoch uuid not null default gen_random_uuid()
  );
  insert into access_change (revision) values (0);

  create function record_access_change() returns trigger language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if new.revision <> old.revision + 1 then
      raise exception 'the access revision must rise by one' using errcode = 'restrict_violation';
    end if;
    insert into {schema}.access_change (revision) values (new.revision);
    return new;
  end $$;
  create trigger access_change_is_recorded before update on access_revision for each row
    execute function record_access_change();

  -- Waits for other changes of access, operators and moves, and makes later ones wait. A lock on the one row of \`access_revision\` would not
  -- do: sessions that share a row one after another never let another one have it. Whoever waits for a table is served in turn. Reads do
  -- not wait.
  create function lock_access() returns void language sql
    security definer set search_path = pg_catalog, pg_temp as $$
    lock table {schema}.access_revision, {schema}.workspace, {schema}.member, {schema}.api_key, {schema}.operator,
      {schema}.workspace_move in exclusive mode
  $$;

  create table api_key (
    id uuid primary key,
    workspace_id uuid not null references workspace,
    owner_user_id text collate "C" not null check (octet_length(owner_user_id) <= 1024),
    name text not null check (octet_length(name) <= 1024),
    status text not null check (status in ('ACTIVE', 'DISABLED')),
    scopes text[] not null check (cardinality(scopes) between 1 and 100 and octet_length(array_to_string(scopes, ',', ' ')) <= 1024),
    -- The audit takes it also if each byte is escaped in JSON.
    ip_allowlist text[] not null
      check (cardinality(ip_allowlist) <= 256 and octet_length(array_to_string(ip_allowlist, ',', ' ')) <= 32768),
    secret text not null check (octet_length(secret) <= 1024),
    secret_version integer not null check (secret_version > 0),
    previous_secret text check (octet_length(previous_secret) <= 1024),
    previous_secret_until timestamptz(3),
    expires_at timestamptz(3),
    deleted_at timestamptz(3),
    last_used_at timestamptz(3),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    -- The access revision of the last change that affects gateways.
    access_revision bigint not null,
    ${signature},
    check ((previous_secret is null) = (previous_secret_until is null)),
    ${shownTimes('previous_secret_until', 'expires_at', 'deleted_at', 'last_used_at', 'created_at', 'updated_at')}
  );
  create index api_key_access_revision on api_key (access_revision);
  create index api_key_workspace on api_key (workspace_id, owner_user_id);

  -- A key whose revision is ahead of the counter could not be changed until the counter reaches it. The table name is
  -- schema-qualified: otherwise a temporary table of the caller would come first.
  create function check_access_revision() returns trigger language plpgsql
    set search_path = pg_catalog, pg_temp as $$
  begin
    if new.access_revision > (select revision from {schema}.access_revision) then
      raise exception 'access revision % does not exist yet', new.access_revision using errcode = 'restrict_violation';
    end if;
    return new;
  end $$;
  create trigger api_key_access_revision_is_checked before insert or update of access_revision on api_key for each row
    execute function check_access_revision();

  -- last_used_at and access_revision are not signed and may change without a new revision of the row.
  create trigger api_key_update_is_checked before update on api_key for each row
    when (old.id <> new.id or old.workspace_id <> new.workspace_id or old.owner_user_id <> new.owner_user_id
      or old.created_at <> new.created_at or new.secret_version < old.secret_version
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at)
      or new.access_revision < old.access_revision
      or (new.revision <> old.revision + 1 and (${changed('revision', 'mac', 'name', 'status', 'scopes', 'ip_allowlist', 'secret', 'secret_version', 'previous_secret', 'previous_secret_until', 'expires_at', 'deleted_at', 'updated_at')})))
    execute function refuse_row_change();
  create trigger api_key_begins_with_revision_1 before insert on api_key for each row
    when (new.revision <> 1) execute function refuse_row_change();
`
