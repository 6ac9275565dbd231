import { bounded } from './bounded.ts'
import { signature } from './signature.ts'

/** Currencies, ledgers (the lock and counters of each workspace) and wallets. */
export const wallets = `
  -- The migration step writes the currencies that core supports.
  create table currency (
    code text collate "C" primary key,
    decimals smallint not null check (decimals between 0 and 18)
  );

  -- One row per workspace: its lock and its counters. Every posting locks it first, so the postings of a workspace have
  -- one order, and their numbers have no gaps.
  create table ledger (
    workspace_id uuid primary key,
    status text not null default 'OPEN' check (status in ('OPEN', 'CLOSED', 'HALTED', 'MOVING')),
    wallet_count bigint not null default 0,
    order_count bigint not null default 0,
    hold_count bigint not null default 0,
    limit_count bigint not null default 0,
    -- The position of the last event, and the MAC of the last row of the journal; empty before the first.
    position bigint not null default 0,
    journal_head bytea not null default '',
    last_posted_at timestamptz(3) not null,
    halt_reason text,
    ${signature},
    check (isfinite(last_posted_at)),
    ${bounded(1024, 'halt_reason', 'journal_head')}
  ) with (fillfactor = 50);
  create index ledger_not_open on ledger (workspace_id) where status <> 'OPEN';

  create table wallet (
    workspace_id uuid not null references ledger,
    id uuid not null,
    -- 1…n within the workspace; null for the hidden EXTERNAL wallets.
    number bigint,
    kind text not null check (kind in ('CUSTOMER', 'EXTERNAL')),
    -- The bizId that the client chose, if any.
    biz_id text collate "C",
    name text collate "C" not null,
    currency text collate "C" not null references currency,
    status text collate "C" not null check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
    frozen_by text collate "C" check (frozen_by in ('WORKSPACE', 'OPERATOR')),
    balance numeric not null default 0,
    -- The sum that open holds reserve, and a time that is not after the first of them expires.
    held numeric not null default 0,
    held_until timestamptz(3),
    sequence bigint not null default 0,
    -- Number of flows that belong to transfers between wallets, not to deposits and withdrawals.
    order_count bigint not null default 0,
    hold_count bigint not null default 0,
    -- The MAC of the last flow; empty before the first.
    head bytea not null default '',
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    ${signature},
    primary key (workspace_id, id),
    -- Also excludes NaN, which PostgreSQL sorts above Infinity.
    check (balance > '-Infinity' and balance < 'Infinity'),
    check (kind = 'EXTERNAL' or balance >= 0),
    check ((kind = 'CUSTOMER') = (number is not null)),
    check (status <> 'CLOSED' or balance = 0),
    check ((status = 'FROZEN') = (frozen_by is not null)),
    check (held >= 0 and (kind = 'EXTERNAL' or held <= balance)),
    check (kind = 'CUSTOMER' or num_nonnulls(held_until, biz_id) = 0),
    check ((held = 0) = (held_until is null)),
    check (order_count <= sequence),
    ${bounded(1024, 'biz_id', 'name', 'currency', 'head')},
    check (isfinite(created_at) and isfinite(updated_at) and isfinite(held_until))
  ) with (fillfactor = 50);
  create unique index wallet_biz_id on wallet (workspace_id, biz_id) where biz_id is not null;
  -- Referenced by holds.
  create unique index wallet_id_currency on wallet (workspace_id, id, currency);
  create unique index wallet_external on wallet (workspace_id, currency) where kind = 'EXTERNAL';
  -- For the lists of section 4 of the specification. No index has a column that a posting changes, so that wallet updates
  -- stay HOT.
  create unique index wallet_number on wallet (workspace_id, number) where number is not null;
  create index wallet_name on wallet (workspace_id, name, number) where number is not null;
  create index wallet_currency on wallet (workspace_id, currency, number) where number is not null;
  create index wallet_status on wallet (workspace_id, status, number) where number is not null;

  -- For searches of operators over all workspaces.
  create index wallet_found_by_id on wallet (id) where kind = 'CUSTOMER';
  create index wallet_found_by_name on wallet (name, id) where kind = 'CUSTOMER';

  create trigger wallet_is_kept before delete on wallet for each row execute function refuse_change();
  create trigger wallet_is_not_truncated before truncate on wallet for each statement execute function refuse_change();
`
