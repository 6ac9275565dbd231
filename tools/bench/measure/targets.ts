/** The target of a key. Every key is a ratio of two figures of one run, except those compared with a number of bytes. */
export type Target = { key: string; what: string; bound: 'atLeast' | 'atMost'; value: number }

const atLeast = (value: number, key: string, what: string): Target => ({ key, what, bound: 'atLeast', value })
const atMost = (value: number, key: string, what: string): Target => ({ key, what, bound: 'atMost', value })

export const targets = [
  atLeast(1, 'transfer_c1_vs_transaction', 'signed transfers / one transaction per request, 1 connection'),
  atLeast(1.15, 'transfer_c4_vs_transaction', 'the same, 4 connections'),
  atLeast(1.8, 'transfer_c16_vs_transaction', 'the same, 16 connections'),
  atLeast(3, 'transfer_c64_vs_transaction', 'the same, 64 connections'),
  atLeast(5, 'transfer_c256_vs_transaction', 'the same, 256 connections'),
  atLeast(0.9, 'transfer_c1_vs_pgledger', 'signed transfers / one call of pgledger per request, 1 connection'),
  atLeast(1.5, 'transfer_c16_vs_pgledger', 'the same, 16 connections'),
  atLeast(4, 'transfer_c256_vs_pgledger', 'the same, 256 connections'),
  atMost(1, 'p50_c1_vs_transaction', 'median latency / of one transaction per request, 1 connection'),
  atMost(0.3, 'p99_c256_vs_transaction', 'p99 latency / of one transaction per request, 256 connections'),
  atMost(0.7, 'postgres_cpu_c1_vs_transaction', "PostgreSQL's CPU per transfer / of one transaction per request"),
  atMost(0.35, 'postgres_cpu_c16_vs_transaction', 'the same, 16 connections'),
  atMost(0.09, 'postgres_cpu_c256_vs_transaction', 'the same, 256 connections'),
  ...(['balance', 'order', 'page'] as const).flatMap(read => [
    atMost(1.3, `${read}_p50_c1_vs_transaction`, 'median latency of the read / in the Express service, 1 connection'),
    atMost(1.3, `${read}_p50_c16_vs_transaction`, 'the same, 16 connections'),
  ]),
  atLeast(1.5, 'transfer_uniform_c64_vs_best', '64 connections, spread wallets / pgbench at its best client count'),
  atLeast(3, 'transfer_hot_c64_vs_best', '64 connections, one hot wallet / pgbench at its best client count'),
  atLeast(2.5, 'transfer_uniform_c256_vs_32', '256 connections, spread wallets / pgbench with 32 clients'),
  atLeast(6.5, 'transfer_hot_c256_vs_32', '256 connections, one hot wallet / pgbench with 32 clients'),
  atLeast(0.95, 'hot_vs_uniform', 'the service: one hot wallet / spread wallets, 64 connections'),
  atMost(
    0.45,
    'cpu_uniform_c256_vs_function',
    'CPU per transfer of gateway, core, PostgreSQL and Redis / of PostgreSQL and pgbench at its best client count',
  ),
  atMost(1.1, 'cpu_8_places_vs_1', 'CPU time of core and PostgreSQL per transfer, over 8 places / 1'),
  atMost(0.75, 'wal_per_transfer', 'bytes of WAL per transfer in batches of 100 / 2,500'),
  atMost(0.7, 'bytes_per_transfer', 'bytes of tables and indexes per transfer / 1,500'),
  atMost(0.25, 'batch_of_100_vs_singles', 'CPU per transfer in batches of 100 / in single creates, 64 connections'),
  atLeast(0.3, 'balance_vs_express', 'signed GET balance / an Express hello, 64 connections'),
  atLeast(
    0.75,
    'gateway_vs_nginx',
    'throughput / that of nginx with the same checks in Lua, both with a trivial upstream',
  ),
  atMost(2, 'gateway_cpu_vs_nginx', 'CPU per request of the gateway / of nginx, the same contenders'),
  atMost(1.2, 'last_page_wallet_flows', 'last page / first page, default order, exact totals'),
  atMost(1.2, 'last_page_wallet_transfers', 'last page / first page, default order, exact totals'),
  atMost(1.2, 'last_page_orders', 'last page / first page, default order, exact totals'),
  atMost(1.2, 'last_page_events', 'the last 500 events of the log / the first 500'),
  atMost(1.5, 'first_page_vs_point_read', 'time of a first page of 20 in PostgreSQL / of one row by its key'),
  atMost(
    2,
    'victim_list_p95',
    'p95 of a list while four other workspaces request the most expensive lists / its p95 alone',
  ),
  atMost(2, 'event_page_cpu', "core's CPU per event of a page of 500 / per flow of a page of 100"),
  atMost(
    4,
    'victim_transfer_p50',
    'median latency of a transfer while others read pages of 500 events, or send batches of transfers / alone',
  ),
  atLeast(
    0.9,
    'overload_goodput',
    'transfers that succeed when twice as many arrive as the service can make / the most',
  ),
  atMost(
    0.001,
    'memory_slope',
    'growth of the heap after collection per minute / its size, the larger of core and gateway',
  ),
] as const

export function isReached({ bound, value }: Target, measured: number): boolean {
  return bound === 'atLeast' ? measured >= value : measured <= value
}
