import type { KeyObject } from 'node:crypto'
import { DomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { backOff, classifyDatabaseError } from '../../database/errors.ts'
import { halt } from './halt.ts'
import { findLockable } from './load.ts'
import { type Posting, type PostingResult, workspacesOf } from './posting.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'
import { CommitUnknown, postLocked, postRemembered, refusal, unavailable } from './transaction.ts'

export type LedgerStore = { pool: Pool; chainKey: KeyObject; log: Log; remembered: RememberedLedgers }

const maxAttempts = 5

/**
 * Posts a batch in one transaction and returns a result for each posting, in order. Durable when it returns.
 *
 * Every posting gets a result whatever happens: S002 when it is certainly not posted, S003 when that cannot be
 * told. Conflicts are run again; a posting that breaks the whole batch is found by halving and fails alone.
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
        const results = await postBatch(store, lookingFirst(postings))
        // A client that often repeats a bizId must not make each batch be written twice.
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
        return postWhere(store, postings, ({ workspaceId }) => lockable.has(workspaceId))
      if (postings.length > 1) return postHalves(store, postings)
      if (isTakenNumber(error)) {
        const reason = 'a counter of the workspace, or of a wallet, names a number that is taken'
        await halt(store, { workspaceId: postings[0]!.workspaceId, reason })
        return [unavailable()]
      }
      store.log.error({ err: error, transferId: postings[0]?.transferId }, 'a posting could not be posted')
      return postings.map(fault === 'timeout' ? unavailable : broken)
    }
  }
}

/**
 * Numbers are given under the ledger's lock, one after the other. One that is taken already means that a counter was
 * set back: somebody, or a bug, wrote past the ledger.
 */
function isTakenNumber(error: unknown): boolean {
  const { constraint } = error as { constraint?: string }
  return constraint === 'flow_pkey' || constraint === 'flow_order' || constraint === 'transfer_number'
}

/** Posts those that can be posted; the others were waited for in vain. */
async function postWhere(
  store: LedgerStore,
  postings: Posting[],
  canBe: (posting: Posting) => boolean,
): Promise<PostingResult[]> {
  const chosen = postings.filter(canBe)
  const posted = chosen.length > 0 ? (await postBatch(store, chosen)).values() : [].values()
  return postings.map(posting => (canBe(posting) ? posted.next().value! : unavailable()))
}

/** One bad neighbour (a locked workspace, a row that the schema refuses) must not fail the rest. */
async function postHalves(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  // Postings of one workspace stand together, so that a locked one is cut off in few steps. Their order is kept.
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
 * Whether a lost COMMIT took effect is read from the database: the ledger's lock waits for the old session to end,
 * then what was committed is found by its id and answered as a replay, and what was not is posted now.
 */
async function resolveCommit(store: LedgerStore, postings: Posting[], attempt: number): Promise<PostingResult[]> {
  if (attempt >= maxAttempts) return postings.map(unknown)
  await backOff(attempt)
  try {
    return await postOnce(store, lookingFirst(postings))
  } catch (error) {
    store.log.warn({ err: error, attempt }, 'the outcome of a commit is not known yet')
    return resolveCommit(store, postings, attempt + 1)
  }
}

function lookingFirst(postings: Posting[]): Posting[] {
  return postings.map(posting => ({ ...posting, mayBePosted: true }))
}

const broken = (): PostingResult => refusal(new DomainError('S001'))
const unknown = ({ transferId }: Posting): PostingResult => refusal(new DomainError('S003', { transferId }))

async function postOnce(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  const { pool, chainKey, remembered } = store
  try {
    const { results, posted, breaches } =
      (await postRemembered(pool, chainKey, remembered, postings)) ?? (await postLocked(pool, chainKey, postings))
    if (posted) remembered.remember(posted.postings, posted)
    // The other workspaces of the batch are posted by now. A breach that cannot be halted is found again by the next posting.
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
