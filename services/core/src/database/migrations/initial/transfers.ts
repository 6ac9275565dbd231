/** Transfers: one row each, with the entry on its source wallet and the entry on its target. `post` writes them (posting.ts). */
export const transfers = `
  create table transfer (
    workspace_id uuid not null,
    id uuid not null,
    type text collate "C" not null check (type in ('TRANSFER', 'DEPOSIT', 'WITHDRAWAL')),
    -- The bizId that the client chose, if any.
    biz_id text collate "C",
    -- Counts the workspace's transfers between wallets 1…n, in order of posting.
    number bigint,
    -- 38 digits at most, as in the contract.
    amount numeric not null check (amount > 0 and amount < 1e38 and scale(amount) <= 18),
    currency text collate "C" not null,
    remark text,
    actor text not null,
    request_id text not null,
    client_address text,
    created_at timestamptz(3) not null,
    -- The entry on the source wallet, which pays: its place among the wallet's entries, how many entries up to this one are
    -- of transfers between wallets, the balance after it, and its MAC.
    source_wallet_id uuid not null,
    source_sequence bigint not null check (source_sequence > 0),
    source_order_count bigint not null,
    source_balance numeric not null,
    source_mac bytea not null,
    -- The entry on the target wallet, which receives.
    target_wallet_id uuid not null,
    target_sequence bigint not null check (target_sequence > 0),
    target_order_count bigint not null,
    target_balance numeric not null,
    target_mac bytea not null,
    primary key (workspace_id, id),
    check (source_wallet_id <> target_wallet_id),
    check ((number is not null) = (type = 'TRANSFER'))
  );
  create unique index transfer_biz_id on transfer (workspace_id, biz_id) where biz_id is not null;
  create unique index transfer_number on transfer (workspace_id, number) where number is not null;
  create index transfer_amount on transfer (workspace_id, amount, number) include (currency) where number is not null;
  create index transfer_currency on transfer (workspace_id, currency, number) where number is not null;

  -- Each wallet's entries, in order. A wallet that pays and receives is in both indexes; post checks that no sequence is in both.
  create unique index transfer_source on transfer (workspace_id, source_wallet_id, source_sequence);
  create unique index transfer_target on transfer (workspace_id, target_wallet_id, target_sequence);
  create index transfer_source_amount on transfer (workspace_id, source_wallet_id, amount, source_sequence)
    include (type);
  create index transfer_target_amount on transfer (workspace_id, target_wallet_id, amount, target_sequence)
    include (type);
  -- Deposits and withdrawals by sequence, for lists of them, and by the number of orders before them, from which follows the
  -- sequence of each order (see wallets/queries.ts).
  create index transfer_deposit on transfer (workspace_id, target_wallet_id, target_sequence) where type = 'DEPOSIT';
  create index transfer_withdrawal on transfer (workspace_id, source_wallet_id, source_sequence)
    where type = 'WITHDRAWAL';
  create index transfer_deposit_order on transfer (workspace_id, target_wallet_id, target_order_count, target_sequence)
    where type = 'DEPOSIT';
  create index transfer_withdrawal_order on transfer (workspace_id, source_wallet_id, source_order_count, source_sequence)
    where type = 'WITHDRAWAL';

  create trigger transfer_is_immutable before update or delete on transfer for each row execute function refuse_change();
  create trigger transfer_is_kept before truncate on transfer for each statement execute function refuse_change();

  -- The entries, one for each wallet and sequence.
  create view flow with (security_invoker = true) as
    select workspace_id, source_wallet_id as wallet_id, source_sequence as sequence, 'OUT' as direction,
      source_order_count as order_count, source_balance as balance_after, source_mac as mac, id as transfer_id, type, biz_id,
      amount, currency, source_wallet_id, target_wallet_id, remark, created_at
    from transfer
    union all
    select workspace_id, target_wallet_id, target_sequence, 'IN', target_order_count, target_balance, target_mac, id, type,
      biz_id, amount, currency, source_wallet_id, target_wallet_id, remark, created_at
    from transfer;
`
