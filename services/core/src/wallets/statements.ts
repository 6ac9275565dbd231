import {
  type BalanceAt,
  DomainError,
  maxStatementDays,
  settledAfterMs,
  type WalletStatement,
} from '@workspace-wallet/contract'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import type { LedgerWaits } from '../ledger/posting/ledger-waits.ts'
import { type PastBalances, readPastBalances, sumOut } from './past-balances.ts'

type Reads = { lists: ListDatabase; ledgerWaits: Pick<LedgerWaits, 'wait'> }
type OfWallet = { workspaceId: string; walletId: string }

/**
 * The balance of a wallet after all flows before a time.
 *
 * @throws DomainError S012 if the time is less than 30 seconds ago; W001; S002
 */
export async function balanceAt(reads: Reads, of: OfWallet & { at: Date }): Promise<BalanceAt> {
  const { workspaceId, walletId, at } = of
  const { currency, closing } = await readSettled(reads, { workspaceId, walletId, from: at, to: at }, 'at')
  return { walletId, currency, at, balance: closing.balance, sequence: closing.sequence }
}

/**
 * The sums of the flows of a wallet from `from` on and before `to`.
 *
 * @throws DomainError S012 if the times are in the wrong order, more than 400 days apart or less than 30 seconds ago, or if
 *   summing up the flows takes too long; W001; S002
 */
export async function statementOf(reads: Reads, of: OfWallet & { from: Date; to: Date }): Promise<WalletStatement> {
  const { walletId, from, to } = of
  if (from > to) throw new DomainError('S012', { field: 'from', reason: 'TOO_LARGE', limit: to.toISOString() })
  const earliest = new Date(to.getTime() - maxStatementDays * dayMs)
  if (from < earliest)
    throw new DomainError('S012', { field: 'from', reason: 'TOO_SMALL', limit: earliest.toISOString() })
  const settled = await readSettled(reads, of, 'to')
  const { currency, opening, closing } = settled
  const flowCount = closing.sequence - opening.sequence
  const range = { after: opening.sequence, upTo: closing.sequence }
  const totalOut = await sumOut(reads.lists, settled, range)
  return {
    walletId,
    currency,
    from,
    to,
    opening: opening.balance,
    closing: closing.balance,
    totalIn: closing.balance.minus(opening.balance).plus(totalOut),
    totalOut,
    flowCount,
    firstSequence: flowCount > 0 ? opening.sequence + 1 : null,
    lastSequence: flowCount > 0 ? closing.sequence : null,
  }
}

const dayMs = 86_400_000

/**
 * Reads balances that never change again, because no flow before `to` can still become visible:
 *
 * - Flows that are not posted yet will be later: their times are those of PostgreSQL's clock, never earlier than
 *   `last_posted_at` and at most ten seconds old.
 * - A transaction in progress may have posted earlier flows, if its commit takes long, for example because it waits for a
 *   standby. If the ledger has a posting at `to` or later, all such transactions have ended. Otherwise this waits for the
 *   lock of the ledger, which they hold, and reads again.
 */
async function readSettled(
  { lists, ledgerWaits }: Reads,
  { workspaceId, walletId, from, to }: OfWallet & { from: Date; to: Date },
  field: string,
): Promise<PastBalances> {
  const read = () => readPastBalances(lists, workspaceId, walletId, { from, to })
  const { now, wallet } = await read()
  const latest = new Date(now.getTime() - settledAfterMs)
  if (to > latest) throw new DomainError('S012', { field, reason: 'TOO_LARGE', limit: latest.toISOString() })
  if (!wallet) throw new DomainError('W001', { field: 'walletId' })
  if (wallet.lastPostedAt >= to) return wallet
  await ledgerWaits.wait(wallet.workspace)
  return (await read()).wallet ?? wallet
}
