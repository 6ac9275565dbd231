/** What was posted: transfers, and the two flows of each. `post` checks their wallets: see posting.ts. */
export const transfers = `
  create table transfer (
    workspace_id uuid not null,
    id uuid not null,
    type text collate "C" not null check (type in ('TRANSFER', 'DEPOSIT', 'WITHDRAWAL')),
    -- What the client named it; null when it left the naming to us.
    biz_id text collate "C",
    -- Counts the workspace's transfers between wallets 1…n, in order of posting.
    number bigint,
    -- 38 digits at most, as in the contract.
    amount numeric not null check (amount > 0 and amount < 1e38 and scale(amount) <= 18),
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
    check ((type = 'TRANSFER') = (number is not null))
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
    -- Counts the wallet's transfers between wallets 1…n; null for deposits and withdrawals.
    order_number bigint,
    created_at timestamptz(3) not null,
    mac bytea not null,
    primary key (workspace_id, wallet_id, sequence)
  );
  create unique index flow_order on flow (workspace_id, wallet_id, order_number) where order_number is not null;
  create index flow_funding on flow (workspace_id, wallet_id, direction, sequence) where order_number is null;
  create index flow_amount on flow (workspace_id, wallet_id, direction, amount, sequence) include (order_number);

  create trigger transfer_is_immutable before update or delete on transfer for each row execute function refuse_change();
  create trigger transfer_is_kept before truncate on transfer for each statement execute function refuse_change();
  create trigger flow_is_immutable before update or delete on flow for each row execute function refuse_change();
  create trigger flow_is_kept before truncate on flow for each statement execute function refuse_change();
`
