import { rowCheck } from './row-check.ts'

/** Transfers: one row each, with the flow on its source wallet and the flow on its target. `post` writes them (posting.ts). */
export const transfers = `
  create table transfer (
    workspace_id uuid not null,
    id uuid not null,
    -- The place among the events of the workspace (see journal.ts).
    position positive_bigint not null,
    -- How many of the workspace's transfers up to this one are orders, which is what transfers between wallets are called.
    order_count bigint not null,
    type transfer_type collate "C" not null,
    -- The bizId that the client chose, if any.
    biz_id bounded_text collate "C",
    reference bounded_text collate "C",
    amount positive_amount not null,
    currency bounded_text collate "C" not null,
    remark bounded_text,
    -- The hold that this transfer captures, and what remains of it afterwards.
    hold_id uuid,
    hold_remaining bounded_amount,
    -- The order that this one reverses, and the sum of that one's reversals up to this one.
    reverses_id uuid,
    reversed_total bounded_amount,
    -- The first transfer of the batch.
    batch_id uuid,
    actor bounded_text not null,
    request_id bounded_text not null,
    client_address bounded_text,
    created_at bounded_time not null,
    -- The flow on the source wallet, which pays: its place among the wallet's flows, how many flows up to this one are
    -- of transfers between wallets, the balance after it, and its MAC.
    source_wallet_id uuid not null,
    source_sequence positive_bigint not null,
    source_order_count bigint not null,
    source_balance bounded_amount not null,
    source_mac bounded_bytes not null,
    -- The flow on the target wallet, which receives.
    target_wallet_id uuid not null,
    target_sequence positive_bigint not null,
    target_order_count bigint not null,
    target_balance bounded_amount not null,
    target_mac bounded_bytes not null,
    primary key (workspace_id, id)
  );
  create unique index transfer_biz_id on transfer (workspace_id, biz_id) where biz_id is not null;
  create unique index transfer_position on transfer (workspace_id, position);
  create index transfer_amount on transfer (workspace_id, amount, position) include (currency) where type = 'TRANSFER';
  create index transfer_currency on transfer (workspace_id, currency, position) where type = 'TRANSFER';
  create index transfer_reference on transfer (workspace_id, reference, position) where reference is not null;
  create index transfer_hold on transfer (workspace_id, hold_id, position) where hold_id is not null;
  create index transfer_reverses on transfer (workspace_id, reverses_id, position) where reverses_id is not null;
  create index transfer_batch on transfer (workspace_id, batch_id, position) where batch_id is not null;

  -- For searches of operators over all workspaces, which are rare. A range of blocks gets its summary when it is full, by autovacuum,
  -- so a posting pays next to nothing for this index.
  create index transfer_origin on transfer using brin
    (created_at, request_id text_bloom_ops (n_distinct_per_range = 2000),
      actor text_bloom_ops (n_distinct_per_range = 100))
    with (pages_per_range = 64, autosummarize = on);

  -- Each wallet's flows, in order. A wallet that pays and receives is in both indexes; post checks that no sequence is in both.
  create unique index transfer_source on transfer (workspace_id, source_wallet_id, source_sequence);
  create unique index transfer_target on transfer (workspace_id, target_wallet_id, target_sequence);
  create index transfer_source_amount on transfer (workspace_id, source_wallet_id, amount, source_sequence)
    include (type);
  create index transfer_target_amount on transfer (workspace_id, target_wallet_id, amount, target_sequence)
    include (type);
  -- Deposits and withdrawals by sequence, for lists of them, and by the number of orders before them: from it follow the
  -- sequence and the position of each order (see wallets/queries.ts, transfers/queries.ts).
  create index transfer_deposit on transfer (workspace_id, target_wallet_id, target_sequence) where type = 'DEPOSIT';
  create index transfer_withdrawal on transfer (workspace_id, source_wallet_id, source_sequence)
    where type = 'WITHDRAWAL';
  create index transfer_funding on transfer (workspace_id, order_count, position) where type <> 'TRANSFER';
  create index transfer_deposit_order on transfer (workspace_id, target_wallet_id, target_order_count, target_sequence)
    where type = 'DEPOSIT';
  create index transfer_withdrawal_order on transfer (workspace_id, source_wallet_id, source_order_count, source_sequence)
    where type = 'WITHDRAWAL';

  create trigger transfer_is_immutable before update or delete on transfer for each row execute function refuse_change();
  create trigger transfer_is_kept before truncate on transfer for each statement execute function refuse_change();

  ${rowCheck(
    'transfer',
    'insert',
    `
      new.source_wallet_id <> new.target_wallet_id
      and (new.hold_id is null) = (new.hold_remaining is null) and (new.reverses_id is null) = (new.reversed_total is null)
      and (new.type = 'TRANSFER' or new.reverses_id is null and new.batch_id is null)
      and (new.hold_id is null or new.type in ('TRANSFER', 'WITHDRAWAL') and new.reverses_id is null)`,
  )}

  create function check_transfer_links() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
  declare
    available numeric;
    reversed numeric;
  begin
    if new.hold_id is not null then
      select coalesce(
        (select t.hold_remaining from {schema}.transfer t
         where t.workspace_id = new.workspace_id and t.hold_id between new.hold_id and new.hold_id and t.position < new.position
         order by t.hold_id desc, t.position desc limit 1), h.amount)
      into available from {schema}.hold h
      where h.workspace_id = new.workspace_id and h.id between new.hold_id and new.hold_id
        and h.wallet_id = new.source_wallet_id and h.currency = new.currency
      order by h.id limit 1;
      if (new.amount <= available and new.hold_remaining in (available - new.amount, 0)) is not true then
        raise exception 'transfer % is refused: its hold does not have this amount left', new.id
          using errcode = 'restrict_violation';
      end if;
    end if;
    if new.reverses_id is not null then
      select o.amount, coalesce(
        (select t.reversed_total from {schema}.transfer t
         where t.workspace_id = new.workspace_id and t.reverses_id between new.reverses_id and new.reverses_id
           and t.position < new.position
         order by t.reverses_id desc, t.position desc limit 1), 0)
      into available, reversed from {schema}.transfer o
      where o.workspace_id = new.workspace_id and o.id between new.reverses_id and new.reverses_id
        and o.position < new.position and o.type = 'TRANSFER' and o.reverses_id is null and o.currency = new.currency
        and o.source_wallet_id = new.target_wallet_id and o.target_wallet_id = new.source_wallet_id
      order by o.id limit 1;
      if (new.reversed_total = reversed + new.amount and new.reversed_total <= available) is not true then
        raise exception 'transfer % is refused: it does not reverse what is left of an order between its wallets', new.id
          using errcode = 'restrict_violation';
      end if;
    end if;
    return null;
  end $$;
  create trigger transfer_links_are_checked after insert on transfer for each row
    when (new.hold_id is not null or new.reverses_id is not null) execute function check_transfer_links();

  -- The flows, one for each wallet and sequence.
  create view flow with (security_invoker = true) as
    select workspace_id, source_wallet_id as wallet_id, source_sequence as sequence, 'OUT' as direction,
      source_order_count as order_count, source_balance as balance_after, source_mac as mac, id as transfer_id, type, biz_id,
      amount, currency, source_wallet_id, target_wallet_id, reference, hold_id, reverses_id, batch_id, remark, created_at
    from transfer
    union all
    select workspace_id, target_wallet_id, target_sequence, 'IN', target_order_count, target_balance, target_mac, id, type,
      biz_id, amount, currency, source_wallet_id, target_wallet_id, reference, hold_id, reverses_id, batch_id, remark,
      created_at
    from transfer;
`
