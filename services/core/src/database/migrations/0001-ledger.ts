import { Migration } from '@mikro-orm/migrations'

/**
 * The whole schema of the first release. What the ledger promises is enforced here, by PostgreSQL itself:
 * a bug in the code above, or a person with the service's role, cannot break it.
 */
export class Migration0001Ledger extends Migration {
  override up(): void {
    this.addSql(directory)
    this.addSql(access)
    this.addSql(wallets)
    this.addSql(transfers)
    this.addSql(flows)
    this.addSql(checkpoints)
    this.addSql(immutability)
  }
}

/**
 * What every row has that decides about money or access: how often it was written, and a MAC over all that decides
 * (db/row-mac.ts). The count only rises (see `immutability`), so an earlier row cannot be put back with its MAC.
 */
const signature = `
    revision bigint not null check (revision > 0),
    mac bytea not null`

const directory = `
  create table workspace (
    id uuid primary key,
    name text not null,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    deleted_at timestamptz(3),
    ${signature},
    check (isfinite(created_at) and isfinite(updated_at) and isfinite(deleted_at))
  );

  -- A member who was removed keeps the row: one that is gone could be inserted again as it was.
  create table member (
    workspace_id uuid not null references workspace,
    user_id text collate "C" not null,
    created_at timestamptz(3) not null,
    removed_at timestamptz(3),
    ${signature},
    primary key (workspace_id, user_id),
    check (isfinite(created_at) and isfinite(removed_at))
  );

  -- Written from the code's table by the migration step.
  create table currency (
    code text collate "C" primary key,
    decimals smallint not null check (decimals between 0 and 18)
  );
`

const access = `
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

  -- One row. Whoever changes what a key may do takes the next number, so numbers are in order of commit.
  create table access_revision (
    the_only_row boolean primary key default true check (the_only_row),
    revision bigint not null
  );
  insert into access_revision (revision) values (0);
`

const wallets = `
  -- One row per workspace: its lock and its counters. Every posting locks it first, so postings of a workspace
  -- have one order, and that order is gapless.
  create table ledger (
    workspace_id uuid primary key,
    status text not null default 'OPEN' check (status in ('OPEN', 'CLOSED', 'HALTED')),
    wallet_count bigint not null default 0,
    order_count bigint not null default 0,
    last_posted_at timestamptz(3) not null,
    halt_reason text,
    ${signature},
    check (isfinite(last_posted_at))
  ) with (fillfactor = 50);

  -- One row: tells the key of the chain (see src/ledger/chain.ts) from any other, and not what it is.
  create table chain_key (
    the_only_row boolean primary key default true check (the_only_row),
    fingerprint bytea not null
  );

  create table wallet (
    workspace_id uuid not null references ledger,
    id uuid not null,
    -- Counts the workspace's own wallets 1…n; none for the hidden EXTERNAL ones.
    number bigint,
    kind text not null check (kind in ('CUSTOMER', 'EXTERNAL')),
    name text collate "C" not null,
    currency text collate "C" not null references currency,
    status text collate "C" not null check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
    balance numeric not null default 0,
    sequence bigint not null default 0,
    -- How many of the flows are transfers between wallets, as opposed to deposits and withdrawals.
    order_count bigint not null default 0,
    -- The MAC of the last flow; empty before the first.
    head bytea not null default '',
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    ${signature},
    primary key (workspace_id, id),
    unique (workspace_id, id, currency),
    -- PostgreSQL sorts NaN above every number, and Infinity below it.
    check (balance > '-Infinity' and balance < 'Infinity'),
    check (kind = 'EXTERNAL' or balance >= 0),
    check ((kind = 'CUSTOMER') = (number is not null)),
    check (status <> 'CLOSED' or balance = 0),
    check (order_count <= sequence),
    check (isfinite(created_at) and isfinite(updated_at))
  ) with (fillfactor = 50);
  create unique index wallet_external on wallet (workspace_id, currency) where kind = 'EXTERNAL';
  -- The lists of section 4. No index on what a posting changes: wallet updates stay HOT.
  create unique index wallet_number on wallet (workspace_id, number) where number is not null;
  create index wallet_name on wallet (workspace_id, name, number) where number is not null;
  create index wallet_currency on wallet (workspace_id, currency, number) where number is not null;
  create index wallet_status on wallet (workspace_id, status, number) where number is not null;
`

const transfers = `
  create table transfer (
    workspace_id uuid not null,
    id uuid not null,
    type text collate "C" not null check (type in ('TRANSFER', 'DEPOSIT', 'WITHDRAWAL')),
    -- What the client named it; null when it left the naming to us.
    biz_id text collate "C",
    -- Counts the workspace's transfers between wallets 1…n, in order of posting.
    number bigint,
    amount numeric not null check (amount > 0 and amount < 'Infinity'),
    currency text collate "C" not null,
    source_wallet_id uuid not null,
    target_wallet_id uuid not null,
    source_sequence bigint not null,
    target_sequence bigint not null,
    remark text,
    actor text not null,
    request_id text not null,
    client_address text,
    created_at timestamptz(3) not null,
    primary key (workspace_id, id),
    check (source_wallet_id <> target_wallet_id),
    check ((type = 'TRANSFER') = (number is not null)),
    foreign key (workspace_id, source_wallet_id, currency) references wallet (workspace_id, id, currency),
    foreign key (workspace_id, target_wallet_id, currency) references wallet (workspace_id, id, currency)
  );
  create unique index transfer_biz_id on transfer (workspace_id, biz_id) where biz_id is not null;
  create unique index transfer_number on transfer (workspace_id, number) where number is not null;
  create index transfer_amount on transfer (workspace_id, amount, number) include (currency) where number is not null;
  create index transfer_currency on transfer (workspace_id, currency, number) where number is not null;
`

const flows = `
  create table flow (
    workspace_id uuid not null,
    wallet_id uuid not null,
    sequence bigint not null check (sequence > 0),
    transfer_id uuid not null,
    direction text collate "C" not null check (direction in ('IN', 'OUT')),
    amount numeric not null check (amount > 0 and amount < 'Infinity'),
    balance_after numeric not null,
    -- Counts the wallet's transfers between wallets 1…n; null for deposits and withdrawals.
    order_number bigint,
    created_at timestamptz(3) not null,
    mac bytea not null,
    primary key (workspace_id, wallet_id, sequence),
    foreign key (workspace_id, transfer_id) references transfer (workspace_id, id),
    foreign key (workspace_id, wallet_id) references wallet (workspace_id, id)
  );
  create unique index flow_order on flow (workspace_id, wallet_id, order_number) where order_number is not null;
  create index flow_funding on flow (workspace_id, wallet_id, direction, sequence) where order_number is null;
  create index flow_amount on flow (workspace_id, wallet_id, direction, amount, sequence) include (order_number);
`

const checkpoints = `
  -- Parts of a checkpoint that somebody verifies the ledger against, for as long as that takes. Each is signed under the
  -- chain key, which is not here: whoever changes or removes one makes the verification fail, and nothing else.
  create table checkpoint_part (
    upload_id uuid not null,
    part integer not null,
    content text not null,
    uploaded_at timestamptz(3) not null default clock_timestamp(),
    primary key (upload_id, part)
  );
`

const immutability = `
  create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% on % is refused: entries are immutable', tg_op, tg_table_name using errcode = 'restrict_violation';
  end $$;

  create trigger transfer_is_immutable before update or delete on transfer for each row execute function refuse_change();
  create trigger transfer_is_kept before truncate on transfer for each statement execute function refuse_change();
  create trigger flow_is_immutable before update or delete on flow for each row execute function refuse_change();
  create trigger flow_is_kept before truncate on flow for each statement execute function refuse_change();
  create trigger wallet_is_kept before delete on wallet for each row execute function refuse_change();
  create trigger wallet_is_not_truncated before truncate on wallet for each statement execute function refuse_change();

  -- Each update of a signed row counts one on, and nothing that was ended begins again.
  create function refuse_row_change() returns trigger language plpgsql as $$
  begin
    raise exception 'this update of % is refused: its rows keep their identity, count each change, and stay ended',
      tg_table_name using errcode = 'restrict_violation';
  end $$;

  -- What a wallet is never changes.
  create trigger wallet_only_goes_on before update on wallet for each row
    when (old.workspace_id <> new.workspace_id or old.id <> new.id or old.number is distinct from new.number
      or old.kind <> new.kind or old.currency <> new.currency or old.created_at <> new.created_at
      or new.revision <> old.revision + 1 or (old.status = 'CLOSED' and new.status <> 'CLOSED'))
    execute function refuse_row_change();

  -- What it holds changes only together with a flow, or to what its last flow says.
  create function refuse_balance_change() returns trigger language plpgsql as $$
  begin
    if not exists (
        select from public.flow f
        where f.workspace_id = new.workspace_id and f.wallet_id = new.id and f.sequence > new.sequence)
      and ((new.sequence = 0 and new.balance = 0 and new.head = '') or exists (
        select from public.flow f
        where f.workspace_id = new.workspace_id and f.wallet_id = new.id and f.sequence = new.sequence
          and f.balance_after = new.balance and f.mac = new.head))
    then
      return new;
    end if;
    raise exception 'this update of wallet is refused: a balance changes with a flow, and a sequence never runs back'
      using errcode = 'restrict_violation';
  end $$;
  create trigger wallet_follows_its_flows before update on wallet for each row
    when (new.sequence < old.sequence
      or (new.sequence = old.sequence and (new.balance <> old.balance or new.head <> old.head)))
    execute function refuse_balance_change();

  create trigger ledger_only_goes_on before update on ledger for each row
    when (old.workspace_id <> new.workspace_id or new.revision <> old.revision + 1
      or (old.status = 'CLOSED' and new.status <> 'CLOSED'))
    execute function refuse_row_change();
  create trigger workspace_only_goes_on before update on workspace for each row
    when (old.id <> new.id or old.created_at <> new.created_at or new.revision <> old.revision + 1
      or (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at))
    execute function refuse_row_change();
  create trigger member_only_goes_on before update on member for each row
    when (old.workspace_id <> new.workspace_id or old.user_id <> new.user_id or new.revision <> old.revision + 1)
    execute function refuse_row_change();
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
