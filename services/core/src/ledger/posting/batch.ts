import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { backOff, classifyDatabaseError } from '../../database/errors.ts'
import type { ChainedDecisions } from '../decide/chain-decisions.ts'
import {
  type LedgerRequest,
  type RequestResult,
  refusal,
  requestIdOf,
  unavailable,
  workspacesOf,
} from '../decide/requests.ts'
import { halt } from '../store/halt.ts'
import { findLockable } from '../store/load.ts'
import { CommitUnknown } from '../store/transaction.ts'
import { postLocked } from './post-locked.ts'
import { postRemembered } from './post-remembered.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'

export type LedgerStore = {
  pool: Pool
  chainKey: KeyObject
  log: Log
  remembered: RememberedLedgers
  /** Called after each commit with the rows that were written. */
  onWritten?: (rows: ChainedDecisions) => void
}

const maxAttempts = 5

/**
 * Posts a batch in one transaction. Returns one result per request, in order, after the transaction is durable.
 *
 * Never throws: a request fails with S002 when it was certainly not posted, with S003 when its outcome is unknown, and
 * with S001 on an unexpected error. Conflicts are retried. When one request makes the whole batch fail, the batch is
 * split in half repeatedly until that request fails alone.
 */
export async function postBatch(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await postOnce(store, requests)
    } catch (error) {
      if (error instanceof CommitUnknown) return resolveCommit(store, requests, attempt)
      if (classifyDatabaseError(error) !== 'conflict' || attempt >= maxAttempts)
        return postAfterFailure(store, requests, error)
      await backOff(attempt)
    }
  }
}

/** Posts what can be posted of a batch that failed as a whole, and was rolled back. */
async function postAfterFailure(
  store: LedgerStore,
  requests: LedgerRequest[],
  error: unknown,
): Promise<RequestResult[]> {
  const fault = classifyDatabaseError(error)
  if (fault === 'duplicate' && requests.some(request => !request.mayBePosted)) return postRepeated(store, requests)
  if (fault === 'unavailable' || fault === 'conflict') {
    store.log.warn({ err: error, requests: requests.length }, 'a batch could not be posted')
    return requests.map(unavailable)
  }
  const lockable = fault === 'timeout' ? await findLockable(store.pool, workspacesOf(requests)).catch(() => null) : null
  if (lockable && requests.some(({ workspaceId }) => !lockable.has(workspaceId)))
    return postLockable(store, requests, lockable)
  if (requests.length > 1) return postHalves(store, requests)
  if (isDuplicateNumber(error)) {
    const reason = 'a counter of the workspace or of a wallet was set back: its next number is already taken'
    await halt(store, { workspaceId: requests[0]!.workspaceId, reason })
    return [unavailable()]
  }
  store.log.error({ err: error, requestId: requestIdOf(requests[0]!) }, 'a request failed')
  return requests.map(fault === 'timeout' ? unavailable : internalError)
}

/** Posts a batch in which something exists already, after looking that up. */
async function postRepeated(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  const results = await postBatch(store, withLookup(requests))
  // From now on these ledgers are read first: a client that often repeats a bizId must not make every batch run twice.
  const repeated = requests.filter((_, at) => results[at]!.kind !== 'posted')
  store.remembered.distrust(workspacesOf(repeated))
  return results
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
  'transfer_position',
  'journal_pkey',
  'hold_number',
  'hold_wallet_number',
  'transfer_source',
  'transfer_target',
]

/** Posts to the lockable workspaces; requests of the others fail with S002, because their locks timed out. */
async function postLockable(
  store: LedgerStore,
  requests: LedgerRequest[],
  lockable: ReadonlySet<string>,
): Promise<RequestResult[]> {
  const isLockable = ({ workspaceId }: LedgerRequest) => lockable.has(workspaceId)
  const chosen = requests.filter(isLockable)
  const results = (chosen.length > 0 ? await postBatch(store, chosen) : []).values()
  return requests.map(request => (isLockable(request) ? results.next().value! : unavailable()))
}

/** Posts each half in its own transaction, so that one bad request does not make the others fail. */
async function postHalves(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  // Grouped by workspace, so that few splits isolate a locked one. Within a workspace the order is kept.
  const order = requests.map((_, at) => at)
  order.sort((a, b) => compareText(requests[a]!.workspaceId, requests[b]!.workspaceId) || a - b)
  const middle = order.length >> 1
  const results = new Array<RequestResult>(requests.length)
  for (const half of [order.slice(0, middle), order.slice(middle)]) {
    const posted = await postBatch(
      store,
      half.map(at => requests[at]!),
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
async function resolveCommit(store: LedgerStore, requests: LedgerRequest[], attempt: number): Promise<RequestResult[]> {
  if (attempt >= maxAttempts) return requests.map(outcomeUnknown)
  await backOff(attempt)
  try {
    return await postOnce(store, withLookup(requests))
  } catch (error) {
    store.log.warn({ err: error, attempt }, 'the outcome of COMMIT is still unknown')
    return resolveCommit(store, requests, attempt + 1)
  }
}

/** The same requests, to be looked up by transferId before they are posted. */
function withLookup(requests: LedgerRequest[]): LedgerRequest[] {
  return requests.map(request => ({ ...request, mayBePosted: true }))
}

const internalError = (): RequestResult => refusal(new DomainError('S001'))

function outcomeUnknown({ commands }: LedgerRequest): RequestResult {
  const [first] = commands
  if (!first || !('transferId' in first)) return refusal(new DomainError('S003'))
  return refusal(new DomainError('S003', { transferId: idFromUuid('transfer', first.transferId) }))
}

async function postOnce(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  const { pool, chainKey, remembered } = store
  try {
    const { results, written, breaches } =
      (await postRemembered(pool, chainKey, remembered, requests)) ?? (await postLocked(pool, chainKey, requests))
    if (written) {
      remembered.remember(written.rows, written)
      store.onWritten?.(written.rows)
    }
    // The rest of the batch is committed. If a halt fails, the next posting to that workspace detects the breach again.
    for (const breach of breaches) await halt(store, breach)
    return results
  } catch (error) {
    for (const workspaceId of workspacesOf(requests)) remembered.forget(workspaceId)
    throw error
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
