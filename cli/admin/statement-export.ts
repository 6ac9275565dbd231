import { type BalanceAt, Decimal, type Flow, maxFlowsAfter, type WalletStatement } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { flowRecord, statementRecord } from '@workspace-wallet/gateway/records'
import { onWorkspace } from './on-workspace.ts'

export type StatementScope = { workspaceId: string; walletId: string; from: Date; to: Date }

export type Format = {
  header: string
  /** One flow as a line. */
  flow: (flow: ReturnType<typeof flowRecord>) => string
  /** The last lines. */
  totals: (statement: ReturnType<typeof statementRecord>) => string
}

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

export const formats = {
  /** RFC 4180. The last four rows have the totals and the balances in the columns of flows. */
  csv: {
    header: csvLine(columns),
    flow: csvRow,
    totals: ({ from, to, currency, opening, closing, totalIn, totalOut }) =>
      [
        csvRow({ createdAt: from, type: 'OPENING', balanceAfter: opening, currency }),
        csvRow({ direction: 'IN', type: 'TOTAL', amount: totalIn, currency }),
        csvRow({ direction: 'OUT', type: 'TOTAL', amount: totalOut, currency }),
        csvRow({ createdAt: to, type: 'CLOSING', balanceAfter: closing, currency }),
      ].join(''),
  },
  /** JSON Lines: each flow as the public API returns it, and last the statement. */
  jsonl: {
    header: '',
    flow: flow => `${JSON.stringify(flow)}\n`,
    totals: statement => `${JSON.stringify({ statement })}\n`,
  },
} as const satisfies Record<string, Format>

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

/**
 * The lines of a statement, with its totals at the end, in constant memory. The range may have any length.
 *
 * @throws TRPCClientError core's error; Error if the flows do not lead from the opening to the closing balance
 */
export async function* exportLines(
  core: CoreClient,
  scope: StatementScope,
  format: Format,
  onProgress: (lines: number, total: number) => void,
): AsyncGenerator<string, WalletStatement> {
  const { workspaceId, walletId, from, to } = scope
  const of = { ...onWorkspace(workspaceId), walletId }
  // The later one first: if it is too late, that is the error.
  const closing = await core.wallets.balanceAt.query({ ...of, at: to })
  const opening = await core.wallets.balanceAt.query({ ...of, at: from })
  const sums = new Sums(opening, closing)
  yield format.header
  for await (const flows of readAhead(
    after => core.wallets.flowsAfter.query({ ...of, after, upTo: closing.sequence }),
    sums,
  )) {
    for (const flow of flows) sums.add(flow)
    yield flows.map(flow => format.flow(flowRecord(flow))).join('')
    onProgress(sums.count, sums.total)
  }
  const statement = { walletId, from, to, ...sums.totals() }
  yield format.totals(statementRecord(statement))
  return statement
}

/** Reads pages of flows, each while the caller handles the one before. Sequences have no gaps. */
async function* readAhead(
  read: (after: number) => Promise<{ content: Flow[] }>,
  { first, last }: Sums,
): AsyncGenerator<Flow[]> {
  let next = first < last ? read(first) : null
  for (let after = first; next; after += maxFlowsAfter) {
    const page = await next
    const following = after + maxFlowsAfter
    next = following < last ? read(following) : null
    // The next iteration throws its failure. If the caller stops iterating, it is ignored.
    next?.catch(() => {})
    yield page.content
  }
}

/** Sums up flows, and checks that they continue from the opening balance to the closing balance. */
class Sums {
  count = 0
  readonly #opening: BalanceAt
  readonly #closing: BalanceAt
  #balance: Decimal
  #totalIn = new Decimal(0)
  #totalOut = new Decimal(0)

  constructor(opening: BalanceAt, closing: BalanceAt) {
    this.#opening = opening
    this.#closing = closing
    this.#balance = opening.balance
  }

  get first(): number {
    return this.#opening.sequence
  }

  get last(): number {
    return this.#closing.sequence
  }

  get total(): number {
    return this.last - this.first
  }

  add({ sequence, direction, amount, balanceAfter }: Flow): void {
    this.count++
    if (direction === 'IN') this.#totalIn = this.#totalIn.plus(amount)
    else this.#totalOut = this.#totalOut.plus(amount)
    this.#balance = direction === 'IN' ? this.#balance.plus(amount) : this.#balance.minus(amount)
    if (sequence !== this.first + this.count || !this.#balance.equals(balanceAfter)) throw notContinued(sequence)
  }

  totals() {
    const { count, first, last } = this
    if (count !== this.total || !this.#balance.equals(this.#closing.balance)) throw notContinued(last)
    return {
      currency: this.#closing.currency,
      opening: this.#opening.balance,
      closing: this.#closing.balance,
      totalIn: this.#totalIn,
      totalOut: this.#totalOut,
      flowCount: count,
      firstSequence: count > 0 ? first + 1 : null,
      lastSequence: count > 0 ? last : null,
    }
  }
}

function notContinued(sequence: number): Error {
  return new Error(
    `Flow ${sequence} does not continue the balance before it, so nothing was exported: run ledger verify, and check the log of core.`,
  )
}
