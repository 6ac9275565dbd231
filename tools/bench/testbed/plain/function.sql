-- The same transfer in one call: it locks both wallets in the order of their IDs, checks them, and writes the transfer, its
-- entries and both balances.
create function bench_transfer(source uuid, target uuid, amount numeric) returns uuid
language plpgsql as $$
declare
  -- In order of time: random IDs would each touch another page of the index.
  transfer_id uuid := uuidv7();
  lower wallet;
  upper wallet;
  paid wallet;
  received wallet;
begin
  select * into strict lower from wallet where id = least(source, target) for no key update;
  select * into strict upper from wallet where id = greatest(source, target) for no key update;
  if source < target then paid := lower; received := upper; else paid := upper; received := lower; end if;
  if paid.workspace_id <> received.workspace_id then raise exception 'W001'; end if;
  if paid.status <> 'ACTIVE' or received.status <> 'ACTIVE' then raise exception 'W002'; end if;
  if paid.currency <> received.currency then raise exception 'T003'; end if;
  if paid.balance < amount then raise exception 'T002'; end if;
  insert into transfer (id, workspace_id, biz_id, source_wallet_id, target_wallet_id, amount, currency)
    values (transfer_id, paid.workspace_id, transfer_id, source, target, amount, paid.currency);
  insert into entry (transfer_id, wallet_id, amount, balance_after)
    values (transfer_id, source, -amount, paid.balance - amount), (transfer_id, target, amount, received.balance + amount);
  update wallet set balance = paid.balance - amount, updated_at = now() where id = source;
  update wallet set balance = received.balance + amount, updated_at = now() where id = target;
  return transfer_id;
end $$;
