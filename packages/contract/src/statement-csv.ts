import { formatBalance } from './money.ts'
import { formatTime } from './records.ts'
import type { WalletStatement } from './statements.ts'
import type { Flow } from './wallets.ts'

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

/** A statement as CSV (RFC 4180): the header, a line for each flow, and last the totals. Each line ends with CR LF. */
export const statementCsv = {
  header: csvLine(columns),

  flow: (flow: Flow): string =>
    csvRow({
      ...flow,
      createdAt: formatTime(flow.createdAt),
      balanceAfter: formatBalance(flow.balanceAfter, flow.currency),
    }),

  /** Four lines, with the totals and the balances in the columns of flows. */
  totals({ from, to, currency, ...sums }: WalletStatement): string {
    const text = (name: 'opening' | 'closing' | 'totalIn' | 'totalOut') => formatBalance(sums[name], currency)
    return [
      csvRow({ createdAt: formatTime(from), type: 'OPENING', balanceAfter: text('opening'), currency }),
      csvRow({ direction: 'IN', type: 'TOTAL', amount: text('totalIn'), currency }),
      csvRow({ direction: 'OUT', type: 'TOTAL', amount: text('totalOut'), currency }),
      csvRow({ createdAt: formatTime(to), type: 'CLOSING', balanceAfter: text('closing'), currency }),
    ].join('')
  },
}

function csvRow(row: Row): string {
  return csvLine(columns.map(column => row[column] ?? ''))
}

/** One record of RFC 4180. */
export function csvLine(fields: readonly (string | number)[]): string {
  return `${fields.map(csvField).join(',')}\r\n`
}

/**
 * A spreadsheet executes a cell that begins with one of these characters as a formula; an apostrophe makes it text. No column
 * has text of clients: this is for columns to come.
 */
function csvField(value: string | number): string {
  const text = /^[=+\-@\t\r]/.test(String(value)) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
