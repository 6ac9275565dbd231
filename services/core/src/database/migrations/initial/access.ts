import { signature } from './signature.ts'

/**
 * API keys, and the changes that gateways follow.
 *
 * Functions with `security definer` run with the rights of whoever owns the tables, and name what they use in full: the
 * service's role cannot write these rows in any other way.
 */
export const access = `
  -- One row. Whoever changes what a key may do takes the next number, so numbers are in order of commit.
  create table access_revision (
    the_only_row boolean primary key default true check (the_only_row),
    revision bigint not null
  );
  insert into access_revision (revision) values (0);

  -- A name for each access revision. A database that was restored counts the same numbers again; epochs do not repeat.
  create table access_change (
    revision bigint primary key,
    epoch uuid not null default gen_random_uuid()
  );
  insert into access_change (revision) values (0);

  create function name_access_change() returns trigger language plpgsql
    security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if new.revision <> old.revision + 1 then
      raise exception 'the access revision counts each change' using errcode = 'restrict_violation';
    end if;
    insert into public.access_change (revision) values (new.revision);
    return new;
  end $$;
  create trigger access_change_has_a_name before update on access_revision for each row
    execute function name_access_change();

  create table api_key (
    id uuid primary key,
    workspace_id uuid not null references workspace,
    owner_user_id text collate "C" not null,
    name text not null,
    status text not null check (status in ('ACTIVE', 'DISABLED')),
    scopes text[] not null check (cardinality(scopes) > 0),
    ip_allowlist text[] not null,
    secret text not null,
    secret_version integer not null check (secret_version > 0),
    previous_secret text,
    previous_secret_until timestamptz(3),
    expires_at timestamptz(3),
    deleted_at timestamptz(3),
    last_used_at timestamptz(3),
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    -- Of the last change that a gateway must know of.
    access_revision bigint not null,
    ${signature},
    check ((previous_secret is null) = (previous_secret_until is null)),
    check (isfinite(previous_secret_until) and isfinite(expires_at) and isfinite(deleted_at)
      and isfinite(last_used_at) and isfinite(created_at) and isfinite(updated_at))
  );
  create index api_key_access_revision on api_key (access_revision);
  create index api_key_workspace on api_key (workspace_id, owner_user_id);

  -- One ahead of the counter could not be changed again until the counter is there.
  -- Names it in full: a temporary table of the caller comes first otherwise.
  create function check_access_revision() returns trigger language plpgsql
    set search_path = pg_catalog, pg_temp as $$
  begin
    if new.access_revision > (select revision from public.access_revision) then
      raise exception 'there is no access revision % yet', new.access_revision using errcode = 'restrict_violation';
    end if;
    return new;
  end $$;
  create trigger api_key_names_an_access_revision before insert or update of access_revision on api_key for each row
    execute function check_access_revision();

  -- When a key was used, and which change gateways must know of, is not signed: both change alone.
  create trigger api_key_only_goes_on before update on api_key for each row
    when (old.id <> new.id or old.workspace_id <> new.workspace_id or old.owner_user_id <> new.owner_user_id
      or old.created_at <> new.created_at or new.secret_version < old.secret_version
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at)
      or new.access_revision < old.access_revision
      or (new.revision <> old.revision + 1 and (new.revision, new.mac, new.name, new.status, new.scopes,
          new.ip_allowlist, new.secret, new.secret_version, new.previous_secret, new.previous_secret_until,
          new.expires_at, new.deleted_at, new.updated_at)
        is distinct from (old.revision, old.mac, old.name, old.status, old.scopes,
          old.ip_allowlist, old.secret, old.secret_version, old.previous_secret, old.previous_secret_until,
          old.expires_at, old.deleted_at, old.updated_at)))
    execute function refuse_row_change();
`
