import { type Flow, formatBalance, type WalletStatement } from '@workspace-wallet/contract'

const columns = [
  'sequence',
  'createdAt',
  'direction',
  'type',
  'amount',
  'balanceAfter',
  'currency',
  'flowId',
  'transferId',
  'counterpartyWalletId',
] as const
type Row = Partial<Record<(typeof columns)[number], string | number | null>>

/**
 * A statement as CSV (RFC 4180), in the format of `statement export`: the flows, then balances and totals in the columns of flows.
 * No column has text of clients.
 */
export function csvOf({ from, to, currency, ...sums }: WalletStatement, flows: readonly Flow[]): string {
  const text = (name: 'opening' | 'closing' | 'totalIn' | 'totalOut') => formatBalance(sums[name], currency)
  const rows: Row[] = [
    ...flows.map(flow => ({
      ...flow,
      createdAt: flow.createdAt.toISOString(),
      balanceAfter: formatBalance(flow.balanceAfter, currency),
    })),
    { createdAt: from.toISOString(), type: 'OPENING', balanceAfter: text('opening'), currency },
    { direction: 'IN', type: 'TOTAL', amount: text('totalIn'), currency },
    { direction: 'OUT', type: 'TOTAL', amount: text('totalOut'), currency },
    { createdAt: to.toISOString(), type: 'CLOSING', balanceAfter: text('closing'), currency },
  ]
  const lines = [columns, ...rows.map(row => columns.map(column => row[column] ?? ''))]
  return lines.map(line => `${line.join(',')}\r\n`).join('')
}
