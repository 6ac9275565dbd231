-- One function call per transfer on the tables of schema.sql, as a competent engineer would write it: it locks the ledger,
-- then both wallets, checks them, and writes the same rows as the first release. It does not do the other work of core:
-- MACs are constants of the right length, and earlier transfers are not looked up.
create function bench_transfer(workspace uuid, source uuid, target uuid, amount numeric) returns uuid
language plpgsql as $$
declare
  -- In order of time, like the IDs of core: random IDs would each touch another page of the index.
  transfer_id uuid := uuidv7();
  flow_mac bytea := decode(repeat('01', 33), 'hex');
  posted_at timestamptz(3);
  order_number bigint;
  lower wallet;
  upper wallet;
  paid wallet;
  received wallet;
begin
  update ledger set order_count = order_count + 1, last_posted_at = clock_timestamp()
    where workspace_id = workspace and status = 'OPEN'
    returning order_count, last_posted_at into strict order_number, posted_at;
  -- Always in the same order, so that two transfers between the same wallets cannot deadlock.
  select * into strict lower from wallet where workspace_id = workspace and id = least(source, target) for no key update;
  select * into strict upper from wallet where workspace_id = workspace and id = greatest(source, target) for no key update;
  if source < target then paid := lower; received := upper; else paid := upper; received := lower; end if;
  if paid.status <> 'ACTIVE' or received.status <> 'ACTIVE' then raise exception 'W002'; end if;
  if paid.currency <> received.currency then raise exception 'T003'; end if;
  if paid.balance < amount then raise exception 'T002'; end if;
  insert into transfer (workspace_id, id, type, number, amount, currency, source_wallet_id, target_wallet_id,
      source_sequence, target_sequence, actor, request_id, client_address, created_at)
    values (workspace, transfer_id, 'TRANSFER', order_number, amount, paid.currency, source, target,
      paid.sequence + 1, received.sequence + 1, 'key:ak_00000000000000000000000000',
      'req_00000000-0000-0000-0000-000000000000', '127.0.0.1', posted_at);
  insert into flow (workspace_id, wallet_id, sequence, transfer_id, direction, amount, balance_after, order_number,
      created_at, mac)
    values
      (workspace, source, paid.sequence + 1, transfer_id, 'OUT', amount, paid.balance - amount, paid.order_count + 1,
        posted_at, flow_mac),
      (workspace, target, received.sequence + 1, transfer_id, 'IN', amount, received.balance + amount,
        received.order_count + 1, posted_at, flow_mac);
  update wallet set balance = balance - amount, sequence = sequence + 1, order_count = order_count + 1, head = flow_mac,
      updated_at = posted_at
    where workspace_id = workspace and id = source;
  update wallet set balance = balance + amount, sequence = sequence + 1, order_count = order_count + 1, head = flow_mac,
      updated_at = posted_at
    where workspace_id = workspace and id = target;
  return transfer_id;
end $$;
