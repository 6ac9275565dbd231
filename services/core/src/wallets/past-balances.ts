import { Decimal, type Flow, maxFlowsAfter, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { bisection } from '../database/lists/bisection.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { numbersBetween } from '../database/lists/numbers.ts'
import { statement, timeText } from '../database/statement.ts'
import { selectColumns } from '../database/tables/table.ts'
import { type FoundFlow, flowColumns, flowsOfWallet, toFlow } from './queries.ts'

/** The sequence of the last flow before a time, and the balance after it; 0 before the first. */
export type PastBalance = { sequence: number; balance: Decimal }

/** A wallet at two times. */
export type PastBalances = {
  workspace: Uuid<'workspace'>
  wallet: Uuid<'wallet'>
  currency: string
  opening: PastBalance
  closing: PastBalance
  /** When the workspace last posted. Later postings have this time or a later one. */
  lastPostedAt: Date
}

type Row = { now: Date } & (
  | { currency: null }
  | {
      currency: string
      opening: number
      closing: number
      openingBalance: string | null
      closingBalance: string | null
      lastPostedAt: Date
    }
)

const balanceAfter = (sequence: string) => `
  (select f.balance_after from flow f where ${numbersBetween(flowsOfWallet, sequence, sequence)} limit 1)`

/**
 * One statement, so that all of it sees the same ledger. It always returns a row. The times of a wallet's flows never
 * decrease, so bisection finds a time in as many steps as the number of flows has binary digits.
 */
const readPastBalancesStatement = statement<Row>(
  'read-past-balances',
  `with recursive owner as (${flowsOfWallet.owner}),
   ${bisection('span', flowsOfWallet, '$3::timestamptz', '$4::timestamptz')}
   select date_trunc('milliseconds', statement_timestamp()) as now, past.*
   from (select) as always left join (
     select w.currency, l.last_posted_at as "lastPostedAt", low - 1 as opening, high as closing,
       ${balanceAfter('low - 1')} as "openingBalance", ${balanceAfter('high')} as "closingBalance"
     from span, (select currency from wallet where workspace_id = $1 and id = $2 limit 1) w,
       (select last_posted_at from ledger where workspace_id = $1 limit 1) l) past on true`,
)

/**
 * The balances of a wallet after all flows before `from`, and before `to`; null if the workspace has no such wallet. `now`: the
 * clock of PostgreSQL.
 *
 * @throws DomainError S002 if too many lists wait
 */
export async function readPastBalances(
  db: ListDatabase,
  workspaceId: string,
  walletId: string,
  { from, to }: { from: Date; to: Date },
): Promise<{ now: Date; wallet: PastBalances | null }> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  const [row] = await db.read({
    workspace: workspace ?? '',
    cost: 'bounded',
    statement: readPastBalancesStatement,
    values: [workspace, wallet, timeText(from), timeText(to)],
  })
  const { now } = row!
  if (row!.currency === null || !workspace || !wallet) return { now, wallet: null }
  const { currency, opening, closing, openingBalance, closingBalance, lastPostedAt } = row!
  return {
    now,
    wallet: {
      workspace,
      wallet,
      currency,
      opening: { sequence: opening, balance: new Decimal(openingBalance ?? 0) },
      closing: { sequence: closing, balance: new Decimal(closingBalance ?? 0) },
      lastPostedAt,
    },
  }
}

/** Flows of a wallet with sequences above `after`, up to `upTo`. */
type SequenceRange = { after: number; upTo: number }

/**
 * Reads the range in the index of sequences. The condition on `source_mac`, which is true, keeps PostgreSQL from an index-only
 * scan in the index of amounts: that reads all flows of the wallet.
 */
const sumOutStatement = statement<{ sum: string }>(
  '',
  `select coalesce(sum(amount) filter (where source_mac is not null), 0) as sum from transfer
   where workspace_id = $1 and source_wallet_id = $2 and source_sequence > $3 and source_sequence <= $4`,
)

/**
 * The sum of the outgoing flows in a range. The cost grows with the number of flows in the range.
 *
 * @throws DomainError S012 TOO_EXPENSIVE, S002 (see ListReader)
 */
export async function sumOut(
  db: ListDatabase,
  { workspace, wallet }: Pick<PastBalances, 'workspace' | 'wallet'>,
  { after, upTo }: SequenceRange,
): Promise<Decimal> {
  const values = [workspace, wallet, after, upTo]
  const [row] = await db.read({ workspace, cost: 'search', blamed: 'from', statement: sumOutStatement, values })
  return new Decimal(row!.sum)
}

const readFlowsAfterStatement = statement<FoundFlow>(
  'read-flows-after',
  `select ${selectColumns(flowColumns, 'f')} from flow f
   where ${flowsOfWallet.where} and f.sequence > $3 and f.sequence <= $4
     and exists (select from wallet where workspace_id = $1 and id = $2 and kind = 'CUSTOMER')
   order by f.sequence limit ${maxFlowsAfter}`,
)

/** The first flows of a range, in order. None if the workspace has no such wallet. */
export async function readFlowsAfter(
  db: ListDatabase,
  workspaceId: string,
  walletId: string,
  { after, upTo }: SequenceRange,
): Promise<Flow[]> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  if (!workspace || !wallet) return []
  const values = [workspace, wallet, after, upTo]
  const rows = await db.read({ workspace, cost: 'bounded', statement: readFlowsAfterStatement, values })
  return rows.map(row => toFlow(walletId, row))
}
