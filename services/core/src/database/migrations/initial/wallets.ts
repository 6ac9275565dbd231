import { signature } from './signature.ts'

/** The lock and the counters of each workspace, and its wallets. */
export const wallets = `
  -- Written from the code's table by the migration step.
  create table currency (
    code text collate "C" primary key,
    decimals smallint not null check (decimals between 0 and 18)
  );

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

  create trigger ledger_only_goes_on before update on ledger for each row
    when (old.workspace_id <> new.workspace_id or new.revision <> old.revision + 1
      or (old.status = 'CLOSED' and new.status <> 'CLOSED'))
    execute function refuse_row_change();

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

  create trigger wallet_is_kept before delete on wallet for each row execute function refuse_change();
  create trigger wallet_is_not_truncated before truncate on wallet for each statement execute function refuse_change();

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
`
