-- Fills a workspace with @wallets@ wallets, @rows@ orders in dollars between two of them, and a tenth as many in euros
-- between two others, ten milliseconds apart. Balances and MACs are not valid: lists do not check them. Triggers are
-- disabled, also those of foreign keys.
begin;
set local session_replication_role = replica;

insert into transfer (workspace_id, id, type, biz_id, number, amount, currency, actor, request_id, client_address,
    created_at, source_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_wallet_id,
    target_sequence, target_order_count, target_balance, target_mac)
  select '@workspace@', uuidv7((n - @orders@) * interval '10 ms'), 'TRANSFER', case n % 10 when 0 then 'order-' || n end, n,
    round((1 + n * 7919 % 100000) / 100.0, 2), pair.currency, 'key:ak_00000000000000000000000000',
    'req_00000000-0000-0000-0000-000000000000', '127.0.0.1', now() + (n - @orders@) * interval '10 ms',
    case n % 2 when 0 then pair.a else pair.b end, pair.sequence, pair.sequence, 100000, mac,
    case n % 2 when 0 then pair.b else pair.a end, pair.sequence, pair.sequence, 100000, mac
  from generate_series(1::bigint, @orders@) n, decode(repeat('01', 33), 'hex') mac, lateral (
    select 'USD' as currency, uuid '@dollarA@' as a, uuid '@dollarB@' as b, n - n / 11 as sequence where n % 11 <> 0
    union all select 'EUR', '@euroA@', '@euroB@', n / 11 where n % 11 = 0) pair;

insert into wallet (workspace_id, id, number, kind, name, currency, status, balance, created_at, updated_at, revision, mac)
  select '@workspace@', uuidv7((n - @wallets@) * interval '1 s'), n, 'CUSTOMER', 'Wallet ' || n * 7919 % @wallets@,
    case n % 10 when 0 then 'EUR' else 'USD' end, case n % 100 when 0 then 'FROZEN' else 'ACTIVE' end,
    n * 7919 % 100000 / 100.0, at, at, 1, ''
  from generate_series(5::bigint, @wallets@) n, lateral (select now() + n * interval '1 ms' as at) _;

update wallet set balance = 100000, sequence = count, order_count = count
  from (values (uuid '@dollarA@', @rows@), ('@dollarB@', @rows@), ('@euroA@', @orders@ - @rows@),
    ('@euroB@', @orders@ - @rows@)) filled (wallet_id, count)
  where workspace_id = '@workspace@' and id = wallet_id;
update ledger set wallet_count = @wallets@, order_count = @orders@, last_posted_at = now()
  where workspace_id = '@workspace@';
commit;
