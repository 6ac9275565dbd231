import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid, type Uuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { backOff, CoreUnavailable, classifyDatabaseError } from '../../database/errors.ts'
import type { CommittedRow } from '../../database/history.ts'
import type { ChainedDecisions } from '../decide/chain-decisions.ts'
import {
  type LedgerRequest,
  type RequestResult,
  refusal,
  requestIdOf,
  unavailable,
  workspacesOf,
} from '../decide/requests.ts'
import type { Halts } from '../store/halt.ts'
import { findLockable } from '../store/queries.ts'
import type { Breach } from '../store/require-signed.ts'
import { CommitUnknown } from '../store/transaction.ts'
import { commitFromMemory } from './commit-from-memory.ts'
import { commitUnderLock, type Outcome } from './commit-under-lock.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'

export type LedgerStore = {
  pool: Pool
  chainKey: KeyObject
  log: Log
  remembered: RememberedLedgers
  halts: Halts
  /** Called after each commit, before anything of it is acknowledged, with a row that it has written. */
  onCommitted?: (row: CommittedRow) => void
  /** Called after each commit with the rows that were written. If it throws, the error is logged. */
  onWritten?: (rows: ChainedDecisions) => void
}

const maxAttempts = 5

/**
 * Posts a batch. Returns one result for each request, in order, after what was posted is durable. Never throws.
 *
 * What a result promises:
 *
 * - `posted`, `replayed`: certainly posted, by this batch or before it.
 * - S003: unknown. Repeating the command with the same bizId resolves it.
 * - Any other rejection: certainly not posted. After S002 the same command may be repeated. S001 is an unexpected error.
 *
 * A batch is in one of these states. Each attempt to commit is one transaction, so that all of it is committed or nothing:
 *
 * - FROM MEMORY
 * - UNDER LOCK
 * - LOOKED UP
 * - LOCKABLE ONLY
 * - IN HALVES
 * - HALTED
 * - COMMIT UNKNOWN
 *
 * ## FROM MEMORY
 *
 * The first state: `commitFromMemory` decides from the remembered ledgers, and writes in one round trip without a lock.
 *
 * - Committed: all requests are posted. None is rejected in this state.
 * - Nothing was written, because memory does not suffice or is out of date: UNDER LOCK.
 * - An error: as in UNDER LOCK.
 *
 * ## UNDER LOCK
 *
 * `commitUnderLock` locks the ledgers, reads what the decision needs, decides, and writes.
 *
 * - Committed: each request is posted, replayed or rejected. If rows of a workspace were modified outside the service, its
 *   requests have failed with S002, and it is HALTED.
 * - The connection was lost after COMMIT was sent: COMMIT UNKNOWN.
 * - Any other error: nothing is posted, and the ledgers of the batch are forgotten. After
 *   - a conflict with another transaction: FROM MEMORY again, up to `maxAttempts` attempts in all, then S002 for all;
 *   - a duplicate, unless all transferIds were looked up: LOOKED UP;
 *   - a database that is unavailable: S002 for all;
 *   - a timeout, while another session has locked some of the ledgers: LOCKABLE ONLY;
 *   - anything else, with several requests: IN HALVES;
 *   - anything else, with a single request: HALTED and S002 if one of its numbers is already taken, S002 after a timeout, and
 *     otherwise S001.
 *
 * ## LOOKED UP
 *
 * `retryWithLookup` posts the batch UNDER LOCK, and also looks up transferIds. A transfer that exists already is then a replay or
 * T005, and no longer makes the batch fail. For a while, later batches of these ledgers are not decided from memory.
 *
 * ## LOCKABLE ONLY
 *
 * `retryLockable` posts the requests whose ledgers can be locked, as a batch of their own. The others fail with S002.
 *
 * ## IN HALVES
 *
 * `retryInHalves` posts each half as a batch of its own, one after the other, until the request that fails is alone. Each attempt may
 * take seconds: requests whose deadline has passed meanwhile fail with S002.
 *
 * ## HALTED
 *
 * `Halts` stops all postings to one ledger until an operator reopens it, in a transaction of its own after those of the batch. It
 * changes no result. Only the requests of this workspace wait for it (`after`), for a short time.
 *
 * ## COMMIT UNKNOWN
 *
 * `resolveCommit` looks up the transferIds UNDER LOCK. The lock is granted only when the lost session has ended, after which it
 * cannot commit any more. What it has committed is replayed, and the rest is posted now.
 *
 * - Committed: results as in UNDER LOCK.
 * - An error: COMMIT UNKNOWN again, up to `maxAttempts` attempts in all, then S003 for all.
 */
export async function postBatch(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await commitOnce(store, requests)
    } catch (error) {
      if (error instanceof CommitUnknown) return resolveCommit(store, requests, attempt)
      if (classifyDatabaseError(error) !== 'conflict' || attempt >= maxAttempts)
        return handleFailure(store, requests, error)
      await backOff(attempt)
    }
  }
}

const coreUnavailable = (): RequestResult => refusal(new CoreUnavailable())

/** Posts what can be posted of a batch that was rolled back. */
async function handleFailure(store: LedgerStore, requests: LedgerRequest[], error: unknown): Promise<RequestResult[]> {
  const fault = classifyDatabaseError(error)
  if (fault === 'duplicate' && requests.some(request => !request.mayBePosted)) return retryWithLookup(store, requests)
  if (fault === 'unavailable' || fault === 'conflict') {
    store.log.warn({ err: error, requests: requests.length }, 'a batch could not be posted')
    return requests.map(fault === 'unavailable' ? coreUnavailable : unavailable)
  }
  const lockable = fault === 'timeout' ? await findLockable(store.pool, workspacesOf(requests)).catch(() => null) : null
  if (lockable && requests.some(({ workspaceId }) => !lockable.has(workspaceId)))
    return retryLockable(store, requests, lockable)
  if (requests.length > 1) return retryInHalves(store, requests)
  if (isDuplicateNumber(error)) {
    const reason = 'a counter of the workspace or of a wallet was set back: its next number is already taken'
    return haltFirst(store, requests, [unavailable()], [{ workspaceId: requests[0]!.workspaceId, reason }])
  }
  store.log.error({ err: error, requestId: requestIdOf(requests[0]!) }, 'a request failed')
  return requests.map(fault === 'timeout' ? unavailable : internalError)
}

async function retryWithLookup(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  const results = await postBatch(store, withLookup(requests))
  // From now on these ledgers are locked and loaded: a client that often repeats a bizId must not make every batch run twice.
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
  // In Citus, the name of an index ends with the number of its shard.
  return constraint !== undefined && numberConstraints.includes(constraint.replace(/_\d+$/, ''))
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

async function retryLockable(
  store: LedgerStore,
  requests: LedgerRequest[],
  lockable: ReadonlySet<Uuid<'workspace'>>,
): Promise<RequestResult[]> {
  const isLockable = ({ workspaceId }: LedgerRequest) => lockable.has(workspaceId)
  const chosen = requests.filter(isLockable)
  const results = (chosen.length > 0 ? await postBatch(store, chosen) : []).values()
  return requests.map(request => (isLockable(request) ? results.next().value! : unavailable()))
}

async function retryInHalves(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  // Grouped by workspace, so that few splits isolate a locked one. Within a workspace the order is kept.
  const order = requests.map((_, at) => at)
  order.sort((a, b) => compareText(requests[a]!.workspaceId, requests[b]!.workspaceId) || a - b)
  const middle = order.length >> 1
  const results = requests.map(unavailable)
  for (const half of [order.slice(0, middle), order.slice(middle)]) {
    const startMs = performance.now()
    const inTime = half.filter(at => requests[at]!.deadlineMs > startMs)
    if (inTime.length === 0) continue
    const posted = await postBatch(
      store,
      inTime.map(at => requests[at]!),
    )
    for (const [at, result] of posted.entries()) results[inTime[at]!] = result
  }
  return results
}

async function resolveCommit(store: LedgerStore, requests: LedgerRequest[], attempt: number): Promise<RequestResult[]> {
  if (attempt >= maxAttempts) return requests.map(outcomeUnknown)
  await backOff(attempt)
  try {
    return await commitOnce(store, withLookup(requests))
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

/** One attempt. @throws CommitUnknown; after any other error nothing was posted */
async function commitOnce(store: LedgerStore, requests: LedgerRequest[]): Promise<RequestResult[]> {
  const { results, written, breaches } = await commitOrForget(store, requests)
  if (written) {
    const last = lastRowOf(written.rows)
    if (last) store.onCommitted?.(last)
    noteWritten(store, requests, written)
  }
  return breaches.length > 0 ? haltFirst(store, requests, results, breaches) : results
}

/**
 * Lets the requests of workspaces that were modified wait until these are halted, and nobody else: the rest of the batch is committed.
 * If a halt fails, the next posting to that workspace detects the breach again.
 */
function haltFirst(
  { halts }: LedgerStore,
  requests: LedgerRequest[],
  results: RequestResult[],
  breaches: Breach[],
): RequestResult[] {
  const halted = new Map(breaches.map(breach => [breach.workspaceId, halts.halt(breach)]))
  return results.map((result, at) => {
    const after = halted.get(requests[at]!.workspaceId)
    return after && result.kind === 'refused' ? { ...result, after } : result
  })
}

/** A batch is one transaction: one of its rows stands for all. Undefined if every request was rejected. */
function lastRowOf({ postings, holds }: ChainedDecisions): CommittedRow | undefined {
  const posted = postings.transfers.at(-1)
  if (posted) {
    const { workspaceId, position } = posted.transfer
    return { table: 'transfer', workspaceId, position, mac: posted.source.mac }
  }
  const event = holds.events.at(-1)
  if (!event) return
  const { workspaceId, position, mac } = event
  return { table: 'journal', workspaceId, position, mac }
}

/** Remembers and counts the rows of a batch. They are committed: an error is logged and changes no result. */
function noteWritten(store: LedgerStore, requests: LedgerRequest[], written: NonNullable<Outcome['written']>): void {
  try {
    store.remembered.remember(written.rows, written)
    store.onWritten?.(written.rows)
  } catch (error) {
    forgetAll(store, requests)
    store.log.error({ err: error }, 'the rows of a posted batch could not be remembered or counted')
  }
}

async function commitOrForget(store: LedgerStore, requests: LedgerRequest[]): Promise<Outcome> {
  const { pool, chainKey, remembered } = store
  try {
    return (
      (await commitFromMemory(pool, chainKey, remembered, requests)) ??
      (await commitUnderLock(pool, chainKey, requests))
    )
  } catch (error) {
    forgetAll(store, requests)
    throw error
  }
}

function forgetAll({ remembered }: LedgerStore, requests: LedgerRequest[]): void {
  for (const workspaceId of workspacesOf(requests)) remembered.forget(workspaceId)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
