-- The tables of money of the first release, with its constraints, foreign keys, indexes and triggers. They are frozen: the
-- benchmark compares every later version with them. The other tables of that release are omitted, because no transfer
-- used them.

create table currency (
  code text collate "C" primary key,
  decimals smallint not null check (decimals between 0 and 18)
);

-- One row per workspace: its lock and its counters.
create table ledger (
  workspace_id uuid primary key,
  status text not null default 'OPEN' check (status in ('OPEN', 'CLOSED', 'HALTED')),
  wallet_count bigint not null default 0,
  order_count bigint not null default 0,
  last_posted_at timestamptz(3) not null,
  halt_reason text
) with (fillfactor = 50);

create table wallet (
  workspace_id uuid not null references ledger,
  id uuid not null,
  number bigint,
  kind text not null check (kind in ('CUSTOMER', 'EXTERNAL')),
  name text collate "C" not null,
  currency text collate "C" not null references currency,
  status text collate "C" not null check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
  balance numeric not null default 0,
  sequence bigint not null default 0,
  order_count bigint not null default 0,
  head bytea not null default '',
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (workspace_id, id),
  unique (workspace_id, id, currency),
  check (balance > '-Infinity' and balance < 'Infinity'),
  check (kind = 'EXTERNAL' or balance >= 0),
  check ((kind = 'CUSTOMER') = (number is not null)),
  check (status <> 'CLOSED' or balance = 0),
  check (order_count <= sequence)
) with (fillfactor = 50);
create unique index wallet_external on wallet (workspace_id, currency) where kind = 'EXTERNAL';
create unique index wallet_number on wallet (workspace_id, number) where number is not null;
create index wallet_name on wallet (workspace_id, name, number) where number is not null;
create index wallet_currency on wallet (workspace_id, currency, number) where number is not null;
create index wallet_status on wallet (workspace_id, status, number) where number is not null;

create table transfer (
  workspace_id uuid not null,
  id uuid not null,
  type text collate "C" not null check (type in ('TRANSFER', 'DEPOSIT', 'WITHDRAWAL')),
  biz_id text collate "C",
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

create table flow (
  workspace_id uuid not null,
  wallet_id uuid not null,
  sequence bigint not null check (sequence > 0),
  transfer_id uuid not null,
  direction text collate "C" not null check (direction in ('IN', 'OUT')),
  amount numeric not null check (amount > 0 and amount < 'Infinity'),
  balance_after numeric not null,
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

-- The identity of a wallet never changes; its balance and head change only together with its sequence.
create function refuse_wallet_change() returns trigger language plpgsql as $$
begin
  raise exception 'a wallet keeps its workspace, id, number, kind and currency, and its sequence never decreases'
    using errcode = 'restrict_violation';
end $$;
create trigger wallet_keeps_its_identity before update on wallet for each row
  when (old.workspace_id <> new.workspace_id or old.id <> new.id or old.number is distinct from new.number
    or old.kind <> new.kind or old.currency <> new.currency or new.sequence < old.sequence
    or (new.sequence = old.sequence and (new.balance <> old.balance or new.head <> old.head)))
  execute function refuse_wallet_change();
