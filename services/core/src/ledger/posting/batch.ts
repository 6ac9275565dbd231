import type { KeyObject } from 'node:crypto'
import { DomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { backOff, classifyDatabaseError } from '../../database/errors.ts'
import { halt } from './halt.ts'
import { findLockable } from './load.ts'
import { type Posting, type PostingResult, refusal, unavailable, workspacesOf } from './posting.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'
import { CommitUnknown, postLocked, postRemembered } from './transaction.ts'

export type LedgerStore = { pool: Pool; chainKey: KeyObject; log: Log; remembered: RememberedLedgers }

const maxAttempts = 5

/**
 * Posts a batch in one transaction. Returns one result per posting, in order, after the transaction is durable.
 *
 * Never throws: a posting fails with S002 when it was certainly not posted, with S003 when its outcome is unknown, and
 * with S001 on an unexpected error. Conflicts are retried. When one posting makes the whole batch fail, the batch is
 * split in half repeatedly until that posting fails alone.
 */
export async function postBatch(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await postOnce(store, postings)
    } catch (error) {
      if (error instanceof CommitUnknown) return resolveCommit(store, postings, attempt)
      const fault = classifyDatabaseError(error)
      if (fault === 'conflict' && attempt < maxAttempts) {
        await backOff(attempt)
        continue
      }
      if (fault === 'duplicate' && postings.some(posting => !posting.mayBePosted)) {
        const results = await postBatch(store, withLookup(postings))
        // From now on these ledgers are read first: a client that often repeats a bizId must not make every batch run
        // twice.
        const repeated = postings.filter((_, at) => results[at]!.kind !== 'posted')
        store.remembered.distrust(workspacesOf(repeated))
        return results
      }
      if (fault === 'unavailable' || fault === 'conflict') {
        store.log.warn({ err: error, postings: postings.length }, 'a batch could not be posted')
        return postings.map(unavailable)
      }
      const lockable =
        fault === 'timeout' ? await findLockable(store.pool, workspacesOf(postings)).catch(() => null) : null
      if (lockable && postings.some(({ workspaceId }) => !lockable.has(workspaceId)))
        return postLockable(store, postings, lockable)
      if (postings.length > 1) return postHalves(store, postings)
      if (isDuplicateNumber(error)) {
        const reason = 'a counter of the workspace or of a wallet was set back: its next number is already taken'
        await halt(store, { workspaceId: postings[0]!.workspaceId, reason })
        return [unavailable()]
      }
      store.log.error({ err: error, transferId: postings[0]?.transferId }, 'a posting failed')
      return postings.map(fault === 'timeout' ? unavailable : internalError)
    }
  }
}

/**
 * Whether a number that this batch assigned already exists. Numbers continue the counters of the stored rows, which cannot
 * change before the batch is written, so a duplicate means that a counter was modified outside the service.
 */
function isDuplicateNumber(error: unknown): boolean {
  const { constraint } = error as { constraint?: string }
  return constraint !== undefined && numberConstraints.includes(constraint)
}
const numberConstraints = [
  // Raised by the function `post`.
  'entry_sequence',
  'transfer_number',
  'transfer_source',
  'transfer_target',
]

/** Posts to the lockable workspaces; postings of the others fail with S002, because their locks timed out. */
async function postLockable(
  store: LedgerStore,
  postings: Posting[],
  lockable: ReadonlySet<string>,
): Promise<PostingResult[]> {
  const isLockable = ({ workspaceId }: Posting) => lockable.has(workspaceId)
  const chosen = postings.filter(isLockable)
  const results = (chosen.length > 0 ? await postBatch(store, chosen) : []).values()
  return postings.map(posting => (isLockable(posting) ? results.next().value! : unavailable()))
}

/** Posts each half in its own transaction, so that one bad posting does not make the others fail. */
async function postHalves(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  // Grouped by workspace, so that few splits isolate a locked one. Within a workspace the order is kept.
  const order = postings.map((_, at) => at)
  order.sort((a, b) => compareText(postings[a]!.workspaceId, postings[b]!.workspaceId) || a - b)
  const middle = order.length >> 1
  const results = new Array<PostingResult>(postings.length)
  for (const half of [order.slice(0, middle), order.slice(middle)]) {
    const posted = await postBatch(
      store,
      half.map(at => postings[at]!),
    )
    for (const [at, result] of posted.entries()) results[half[at]!] = result
  }
  return results
}

/**
 * Resolves a COMMIT whose result was lost. Locking the ledgers waits until the old session has ended. Postings that
 * it committed are then found by transferId and returned as replays; the others are posted now. S003 if every
 * attempt fails.
 */
async function resolveCommit(store: LedgerStore, postings: Posting[], attempt: number): Promise<PostingResult[]> {
  if (attempt >= maxAttempts) return postings.map(outcomeUnknown)
  await backOff(attempt)
  try {
    return await postOnce(store, withLookup(postings))
  } catch (error) {
    store.log.warn({ err: error, attempt }, 'the outcome of COMMIT is still unknown')
    return resolveCommit(store, postings, attempt + 1)
  }
}

/** The same postings, to be looked up by transferId before they are posted. */
function withLookup(postings: Posting[]): Posting[] {
  return postings.map(posting => ({ ...posting, mayBePosted: true }))
}

const internalError = (): PostingResult => refusal(new DomainError('S001'))
const outcomeUnknown = ({ transferId }: Posting): PostingResult => refusal(new DomainError('S003', { transferId }))

async function postOnce(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  const { pool, chainKey, remembered } = store
  try {
    const { results, posted, breaches } =
      (await postRemembered(pool, chainKey, remembered, postings)) ?? (await postLocked(pool, chainKey, postings))
    if (posted) remembered.remember(posted.postings, posted)
    // The rest of the batch is committed. If a halt fails, the next posting to that workspace detects the breach again.
    for (const breach of breaches) await halt(store, breach)
    return results
  } catch (error) {
    for (const workspaceId of workspacesOf(postings)) remembered.forget(workspaceId)
    throw error
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
