-- Writes the transfers of a batch, their flows, the wallets and the counters of the ledgers, as the first release did.
with posted as (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::numeric[], $7::text[],
    $8::uuid[], $9::uuid[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[],
    $16::timestamptz[], $17::numeric[], $18::numeric[], $19::bigint[], $20::bigint[], $21::bytea[], $22::bytea[])
  as posted (workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
    source_sequence, target_sequence, remark, actor, request_id, client_address, created_at,
    source_balance, target_balance, source_order, target_order, source_mac, target_mac)),
transfers as (
  insert into transfer (workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
    source_sequence, target_sequence, remark, actor, request_id, client_address, created_at)
  select workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
    source_sequence, target_sequence, remark, actor, request_id, client_address, created_at from posted),
flows as (
  insert into flow (workspace_id, wallet_id, sequence, transfer_id, direction, amount, balance_after, order_number,
    created_at, mac)
  select workspace_id, source_wallet_id, source_sequence, id, 'OUT', amount, source_balance, source_order,
    created_at, source_mac from posted
  union all
  select workspace_id, target_wallet_id, target_sequence, id, 'IN', amount, target_balance, target_order,
    created_at, target_mac from posted),
wallets as (
  update wallet w
  set balance = new.balance, sequence = new.sequence, order_count = new.order_count, head = new.head,
    updated_at = new.updated_at
  from unnest($23::uuid[], $24::uuid[], $25::numeric[], $26::bigint[], $27::bigint[], $28::bytea[], $29::timestamptz[])
    as new (workspace_id, id, balance, sequence, order_count, head, updated_at)
  where w.workspace_id = new.workspace_id and w.id = new.id)
update ledger l
set order_count = new.order_count, last_posted_at = new.last_posted_at
from unnest($30::uuid[], $31::bigint[], $32::timestamptz[]) as new (workspace_id, order_count, last_posted_at)
where l.workspace_id = new.workspace_id
