-- The wallets of the baseline: 8 workspaces with 100 wallets each. Their IDs are made from the numbers that pgbench draws.
create function bench_id(number bigint) returns uuid language sql immutable
  return lpad(to_hex(number), 32, '0')::uuid;

insert into currency values ('USD', 2);
insert into ledger (workspace_id, wallet_count, last_posted_at)
  select bench_id(w), 100, now() from generate_series(1, 8) w;
insert into wallet (workspace_id, id, number, kind, name, currency, status, balance, created_at, updated_at)
  select bench_id(w), bench_id(w * 1000 + n), n + 1, 'CUSTOMER', 'bench', 'USD', 'ACTIVE', 100000, now(), now()
  from generate_series(1, 8) w, generate_series(0, 99) n;
