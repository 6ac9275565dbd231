-- Fills a workspace with @wallets@ wallets, @rows@ orders in dollars between two of them, and a tenth as many in euros
-- between two others, ten milliseconds apart, and with as many holds. Balances and MACs are not valid: lists do not check
-- them. Triggers are disabled, also those of foreign keys.
begin;
set local session_replication_role = replica;

insert into transfer (workspace_id, id, position, order_count, type, biz_id, reference, amount, currency, actor, request_id,
    client_address, created_at, source_wallet_id, source_sequence, source_order_count, source_balance, source_mac,
    target_wallet_id, target_sequence, target_order_count, target_balance, target_mac)
  select ledger.workspace_id, uuidv7((n - @orders@) * interval '10 ms'), ledger.position + n, n, 'TRANSFER',
    case n % 10 when 0 then 'order-' || n end, case n % 10 when 1 then 'invoice-' || n / 100 end,
    round((1 + n * 7919 % 100000) / 100.0, 2), pair.currency, 'key:ak_00000000000000000000000000',
    'req_00000000-0000-0000-0000-000000000000', '127.0.0.1', now() + (n - @orders@) * interval '10 ms',
    case n % 2 when 0 then pair.a else pair.b end, pair.sequence, pair.sequence, 100000, mac,
    case n % 2 when 0 then pair.b else pair.a end, pair.sequence, pair.sequence, 100000, mac
  from (select workspace_id, position from ledger where workspace_id = '@workspace@') ledger,
    generate_series(1::bigint, @orders@) n, decode(repeat('01', 33), 'hex') mac, lateral (
    select 'USD' as currency, uuid '@dollarA@' as a, uuid '@dollarB@' as b, n - n / 11 as sequence where n % 11 <> 0
    union all select 'EUR', '@euroA@', '@euroB@', n / 11 where n % 11 = 0) pair;

insert into hold (workspace_id, id, number, wallet_number, biz_id, wallet_id, currency, amount, captured, remaining, status,
    expires_at, reference, created_at, updated_at, revision, mac)
  select '@workspace@', uuidv7((n - @orders@) * interval '10 ms'), n, own.number, 'hold-' || n, own.wallet, own.currency,
    amount, case state when 'CAPTURED' then amount else 0 end, case state when 'OPEN' then amount else 0 end, state,
    at + interval '1 day', case n % 10 when 1 then 'invoice-' || n / 100 end, at, at, 1, decode(repeat('01', 33), 'hex')
  from generate_series(1::bigint, @orders@) n, lateral (
    select now() + (n - @orders@) * interval '10 ms' as at, round((1 + n * 7919 % 100000) / 100.0, 2) as amount,
      case when n % 100 = 0 then 'OPEN' when n % 10 = 0 then 'EXPIRED' when n % 10 = 1 then 'RELEASED' else 'CAPTURED' end
        as state) _, lateral (
    select 'USD' as currency, uuid '@dollarA@' as wallet, n - n / 11 as number where n % 11 <> 0
    union all select 'EUR', '@euroA@', n / 11 where n % 11 = 0) own;

insert into wallet (workspace_id, id, number, kind, name, currency, status, frozen_by, balance, created_at, updated_at,
    revision, mac)
  select '@workspace@', uuidv7((n - @wallets@) * interval '1 s'), n, 'CUSTOMER', 'Wallet ' || n * 7919 % @wallets@,
    case n % 10 when 0 then 'EUR' else 'USD' end, case n % 100 when 0 then 'FROZEN' else 'ACTIVE' end,
    case n % 100 when 0 then 'OPERATOR' end, round(n * 7919 % 100000 / 100.0, 2), at, at, 1, ''
  from generate_series(5::bigint, @wallets@) n, lateral (select now() + n * interval '1 ms' as at) _;

update wallet set balance = 100000, sequence = count, order_count = count, hold_count = case holds when true then count else 0 end
  from (values (uuid '@dollarA@', @rows@, true), ('@dollarB@', @rows@, false), ('@euroA@', @orders@ - @rows@, true),
    ('@euroB@', @orders@ - @rows@, false)) filled (wallet_id, count, holds)
  where workspace_id = '@workspace@' and id = wallet_id;
update ledger set wallet_count = @wallets@, order_count = @orders@, hold_count = @orders@, position = position + @orders@,
    last_posted_at = now()
  where workspace_id = '@workspace@';
commit;
