-- A plain double-entry schema, as a team would write it for one transaction per transfer: wallets with a balance, transfers,
-- and two entries each, with the foreign keys, checks and indexes that a sound design needs. It never changes, so that
-- figures of later versions of the service can be compared with figures of earlier ones.

create table workspace (
  id uuid primary key,
  name text not null
);

create table wallet (
  id uuid primary key,
  workspace_id uuid not null references workspace,
  name text not null,
  currency text not null,
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'FROZEN', 'CLOSED')),
  balance numeric(38, 18) not null default 0 check (balance >= 0),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
) with (fillfactor = 80);
create index wallet_workspace on wallet (workspace_id, created_at);

create table transfer (
  id uuid primary key,
  workspace_id uuid not null references workspace,
  biz_id text not null,
  source_wallet_id uuid not null references wallet,
  target_wallet_id uuid not null references wallet,
  amount numeric(38, 18) not null check (amount > 0),
  currency text not null,
  remark text,
  created_at timestamptz not null default now(),
  unique (workspace_id, biz_id),
  check (source_wallet_id <> target_wallet_id)
);
create index transfer_workspace on transfer (workspace_id, created_at);

create table entry (
  id bigint generated always as identity primary key,
  transfer_id uuid not null references transfer,
  wallet_id uuid not null references wallet,
  amount numeric(38, 18) not null check (amount <> 0),
  balance_after numeric(38, 18) not null,
  created_at timestamptz not null default now()
);
create index entry_transfer on entry (transfer_id);
create index entry_wallet on entry (wallet_id, id);
