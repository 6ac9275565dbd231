/** The target of a key. Every key is a ratio of two figures of one run. */
export type Target = { key: string; what: string; bound: 'atLeast' | 'atMost'; value: number }

const atLeast = (value: number, key: string, what: string): Target => ({ key, what, bound: 'atLeast', value })
const atMost = (value: number, key: string, what: string): Target => ({ key, what, bound: 'atMost', value })

export const targets = [
  atLeast(1.25, 'transfer_uniform_c64_vs_best', '64 connections, spread wallets / pgbench at its best client count'),
  atLeast(1.7, 'transfer_hot_c64_vs_best', '64 connections, one hot wallet / pgbench at its best client count'),
  atLeast(1.3, 'transfer_uniform_c64_vs_32', '64 connections, spread wallets / pgbench with 32 clients'),
  atLeast(4, 'transfer_hot_c64_vs_32', '64 connections, one hot wallet / pgbench with 32 clients'),
  atLeast(2, 'transfer_uniform_c256_vs_32', '256 connections, spread wallets / pgbench with 32 clients'),
  atLeast(6, 'transfer_hot_c256_vs_32', '256 connections, one hot wallet / pgbench with 32 clients'),
  atLeast(0.95, 'hot_vs_uniform', 'the service: one hot wallet / spread wallets, 64 connections'),
  atLeast(0.5, 'balance_vs_express', 'signed GET balance / an Express hello, 64 connections'),
  atLeast(
    0.6,
    'gateway_vs_nginx',
    'throughput / that of nginx with the same checks in Lua, both with a trivial upstream',
  ),
  atMost(
    1.5,
    'added_p50_vs_nginx',
    'median latency added to that of the upstream / the same for nginx, one connection',
  ),
  atMost(1.5, 'last_page_wallet_flows', 'last page / first page, default order, exact totals'),
  atMost(1.5, 'last_page_wallet_transfers', 'last page / first page, default order, exact totals'),
  atMost(1.5, 'last_page_orders', 'last page / first page, default order, exact totals'),
  atMost(3, 'first_page_vs_point_read', 'time of a first page of 20 in PostgreSQL / of one row by its key'),
  atMost(
    3,
    'victim_list_p95',
    'p95 of a list while four other workspaces request the most expensive lists / its p95 alone',
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
