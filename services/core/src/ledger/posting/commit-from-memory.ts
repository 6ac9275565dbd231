import type { KeyObject } from 'node:crypto'
import { postingGraceMs } from '@workspace-wallet/contract'
import { withSpan } from '@workspace-wallet/runtime/tracing'
import type { Pool } from 'pg'
import { type ChainedPostings, chainDecisions } from '../decide/chain-decisions.ts'
import { decide } from '../decide/decide.ts'
import { isPlain, type LedgerRequest, resultsByWorkspace, workspacesOf } from '../decide/requests.ts'
import type { Decision } from '../decide/state.ts'
import { batchName, committed, withConnection } from '../store/transaction.ts'
import { singleOf, type Written, writeSingle, writeTransfers } from '../store/write-transfers.ts'
import type { Outcome } from './commit-under-lock.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'
import { transactionSpan } from './transaction-span.ts'

/** Maximum time, in milliseconds, for a batch that was decided from memory to reach PostgreSQL. */
const maxTransitMs = 3_000
/** The SQLSTATE of `post` for a decision that does not continue from the stored rows. */
const restrictViolation = '23001'
/** The SQLSTATE of `post_transfer` for a transfer that comes too late. */
const serializationFailure = '40001'

/**
 * Posts a batch in one round trip, from the remembered ledgers and without reading first.
 *
 * @returns null when nothing was posted and the batch must be posted with `commitUnderLock`: a ledger or wallet is not
 *   remembered, another core has posted since, it is too late, or a request would be rejected. Such a rejection may be
 *   wrong, because existing transfers with the same bizId were not looked up.
 */
export async function commitFromMemory(
  pool: Pool,
  chainKey: KeyObject,
  remembered: RememberedLedgers,
  requests: LedgerRequest[],
): Promise<Outcome | null> {
  const now = remembered.now()
  // Deposits and withdrawals have to lock the audit; holds, and a request that may already be posted, have to be looked up.
  const ledgers = now && requests.every(isPlain) ? remembered.recall(requests, now) : null
  if (!now || !ledgers) return null
  const decisions: Decision[] = []
  const results = resultsByWorkspace(requests, (workspaceId, own) => {
    const decision = decide(ledgers.get(workspaceId)!, own, now, performance.now())
    decisions.push(decision)
    return decision.results
  })
  if (results.some(({ kind }) => kind !== 'posted')) return null
  const rows = chainDecisions(chainKey, decisions)
  const written = await withSpan('commit from memory', transactionSpan(requests), () =>
    writeUnlocked(pool, rows.postings, batchName(requests), writableUntil(requests, now)),
  )
  if (!written) remembered.distrust(workspacesOf(requests))
  return written && { results, written: { ...written, rows }, breaches: [] }
}

/**
 * The latest time at which PostgreSQL may write a batch that is decided from memory now. No lock is held while the batch
 * is in transit, and a stalled connection may deliver it late: after its callers have received S002, "not posted".
 */
function writableUntil(requests: readonly LedgerRequest[], now: Date): Date {
  const leftMs = requests.map(({ deadlineMs }) => deadlineMs + postingGraceMs - performance.now())
  return new Date(now.getTime() + Math.min(...leftMs, maxTransitMs))
}

/** Returns null when nothing was written: the stored rows differ from the remembered ones, or it is too late. */
async function writeUnlocked(
  pool: Pool,
  postings: ChainedPostings,
  name: string,
  notAfter: Date,
): Promise<Written | null> {
  try {
    return await withConnection(pool, async client => {
      const single = singleOf(postings)
      const posting = single
        ? writeSingle(client, single, notAfter, name)
        : writeTransfers(client, postings, { notAfter, name })
      // A statement outside a transaction commits by itself: its result is that of COMMIT.
      await committed([posting], posting)
      return await posting
    })
  } catch (error) {
    // A row was modified outside the service. `commitUnderLock` reads the rows and finds out which.
    const { code } = error as { code?: unknown }
    if (code === restrictViolation || code === serializationFailure) return null
    throw error
  }
}
