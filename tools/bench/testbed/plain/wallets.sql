-- The wallets of the plain schema: 8 workspaces with 100 wallets each. Their IDs are made from the numbers that pgbench draws.
create function bench_id(number bigint) returns uuid language sql immutable
  return lpad(to_hex(number), 32, '0')::uuid;

insert into workspace (id, name) select bench_id(w), 'bench' from generate_series(1, 8) w;
insert into wallet (id, workspace_id, name, currency, balance)
  select bench_id(w * 1000 + n), bench_id(w), 'bench', 'USD', 100000
  from generate_series(1, 8) w, generate_series(0, 99) n;
