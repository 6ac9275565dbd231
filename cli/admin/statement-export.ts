import {
  type BalanceAt,
  Decimal,
  type Flow,
  maxFlowsAfter,
  statementCsv,
  type WalletStatement,
} from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { flowRecord, statementRecord } from '@workspace-wallet/gateway/records'
import { onWorkspace } from './on-workspace.ts'

export type StatementScope = { workspaceId: string; walletId: string; from: Date; to: Date }

export type Format = {
  header: string
  /** One flow as a line. */
  flow: (flow: Flow) => string
  /** The last lines. */
  totals: (statement: WalletStatement) => string
}

export const formats = {
  csv: statementCsv,
  /** JSON Lines: each flow as the public API returns it, and last the statement. */
  jsonl: {
    header: '',
    flow: flow => `${JSON.stringify(flowRecord(flow))}\n`,
    totals: statement => `${JSON.stringify({ statement: statementRecord(statement) })}\n`,
  },
} as const satisfies Record<string, Format>

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
    yield flows.map(flow => format.flow(flow)).join('')
    onProgress(sums.count, sums.total)
  }
  const statement = { walletId, from, to, ...sums.totals() }
  yield format.totals(statement)
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
