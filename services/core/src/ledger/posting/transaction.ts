import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid, postingGraceMs } from '@workspace-wallet/contract'
import type { Pool, PoolClient } from 'pg'
import { isKey } from '../../audit/chain/actors.ts'
import { type Action, type AuditHead, appendActions, lockAudit } from '../../audit/chain/chain.ts'
import { runOn } from '../../database/run.ts'
import { holdMac, ledgerMac, limitMac, walletMac } from '../../database/signed-rows.ts'
import { continuesChain } from '../chain/chain.ts'
import type { Transfer } from '../chain/transfer.ts'
import { beginFor } from './batch-log.ts'
import { type ChainedDecisions, chainDecisions } from './chain-decisions.ts'
import { changeHolds } from './change-holds.ts'
import { countSpending } from './count-spending.ts'
import { decide } from './decide.ts'
import { postingTime } from './draft.ts'
import type { Breach } from './halt.ts'
import {
  type DueHolds,
  type FoundTransfer,
  findDueHolds,
  findEntries,
  findHolds,
  findLimits,
  findTransfers,
  type LimitKey,
  type LoadedWallet,
  type LockedLedger,
  loadWallets,
  loadWalletsOf,
  lockLedgers,
} from './load.ts'
import { type ChainedPostings, post, type Written } from './post.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'
import {
  holdNamesOf,
  isPlain,
  type LedgerRequest,
  type RequestResult,
  type RowKey,
  refusal,
  reversedNamesOf,
  spendersOf,
  transferNamesOf,
  unavailable,
  walletsOf,
  workspacesOf,
} from './requests.ts'
import { limitKey, walletSubject } from './spending.ts'
import type { Decision, HoldState, LedgerState, LimitState } from './state.ts'

/** The connection was lost after COMMIT was sent and before its result arrived: the outcome is unknown. */
export class CommitUnknown extends Error {}

/** The outcome of a batch. Results are in the order of its requests. */
export type Outcome = {
  results: RequestResult[]
  /** The rows that were written; null when there were none. */
  written: (Written & { rows: ChainedDecisions }) | null
  /** Workspaces whose rows were modified outside the service. Nothing was posted to them. */
  breaches: Breach[]
}

/** Posts a batch in one transaction of two round trips: lock and load, then write and commit. */
export async function postLocked(pool: Pool, chainKey: KeyObject, requests: LedgerRequest[]): Promise<Outcome> {
  return withConnection(pool, async client => {
    const { ledgers, forged, audit, now } = await load(client, chainKey, requests)
    const decisions: Decision[] = []
    const breaches: Breach[] = []
    const results = byWorkspace(requests, (workspaceId, own) => {
      const ledger = ledgers.get(workspaceId)
      if (!ledger) return own.map(() => refusal(new DomainError('GA2032')))
      const isOpen = ledger.status === 'OPEN'
      // In a ledger that is not open, only replays succeed, which show nothing but these records.
      const reason = forgedRecordOf(chainKey, ledger, forged) ?? (isOpen ? modifiedRowOf(chainKey, ledger) : null)
      if (reason) {
        if (isOpen) breaches.push({ workspaceId, reason })
        return own.map(unavailable)
      }
      const decision = decide(ledger, own, now, performance.now())
      if (decision.wallets.length > 0) decisions.push(decision)
      return decision.results
    })
    return { results, written: await write(client, chainKey, decisions, audit), breaches }
  })
}

/** Calls `decideOwn` with the requests of each workspace. Returns the results in the order of all requests. */
export function byWorkspace(
  requests: readonly LedgerRequest[],
  decideOwn: (workspaceId: string, own: LedgerRequest[]) => RequestResult[],
): RequestResult[] {
  const results = new Array<RequestResult>(requests.length)
  for (const [workspaceId, places] of Map.groupBy(requests.keys(), at => requests[at]!.workspaceId)) {
    const own = decideOwn(
      workspaceId,
      places.map(at => requests[at]!),
    )
    for (const [at, result] of own.entries()) results[places[at]!] = result
  }
  return results
}

/** Runs a transaction. After an error from PostgreSQL it is rolled back; after any other error the connection is closed. */
export async function withConnection<Result>(
  pool: Pool,
  transaction: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let lost: Error | undefined
  try {
    return await transaction(client)
  } catch (error) {
    if (isServerError(error)) await client.query('rollback').catch(failure => (lost = failure))
    else lost = error as Error
    throw error
  } finally {
    // The state of a lost connection is unknown; closing it rolls the transaction back.
    client.release(lost)
  }
}

type Loaded = {
  ledgers: Map<string, LedgerState>
  /** The existing transfers that were written outside the service. */
  forged: Transfer[]
  audit: AuditHead[]
  /** The database's clock after the locks were granted. */
  now: Date
}

async function load(client: PoolClient, chainKey: KeyObject, requests: LedgerRequest[]): Promise<Loaded> {
  const holdNames = holdNamesOf(requests)
  const reversedNames = reversedNamesOf(requests)
  const audited = workspacesOf(requests.filter(isFunding))
  const queries = [
    client.query(beginFor(requests)),
    lockLedgers(client, workspacesOf(requests)),
    loadWallets(client, walletsOf(requests)),
    holdNames.length + reversedNames.length > 0 ? loadWalletsOf(client, holdNames, reversedNames) : [],
    findTransfers(client, [...transferNamesOf(requests), ...reversedNames]),
    findHolds(client, holdNames),
    audited.length > 0 ? lockAudit(runOn(client), audited) : [],
  ] as const
  await Promise.allSettled(queries)
  const [, ledgers, wallets, namedWallets, transfers, holds, audit] = await Promise.all(queries)

  const loadedWallets = [...wallets, ...namedWallets]
  const now = loadedWallets.reduce((latest, wallet) => (wallet.now > latest ? wallet.now : latest), new Date(0))
  const readings = [
    transfers.length > 0 ? findForged(client, chainKey, transfers) : [],
    findDueHolds(client, dueWallets(ledgers, loadedWallets, now)),
    findLimits(client, limitKeys(ledgers, loadedWallets, requests)),
  ] as const
  await Promise.allSettled(readings)
  const [forged, dueHolds, limits] = await Promise.all(readings)
  const states = statesOf(ledgers, loadedWallets, transfers, holds, dueHolds, limits)
  return { ledgers: new Map(states.map(state => [state.workspaceId, state])), forged, audit, now }
}

/** The wallets with holds that may be due at the posting time. */
function dueWallets(ledgers: readonly LockedLedger[], wallets: readonly LoadedWallet[], now: Date) {
  const postedAt = new Map(ledgers.map(ledger => [ledger.workspaceId, postingTime(ledger, now)]))
  const due = new Map<string, RowKey & { at: Date }>()
  for (const { wallet } of wallets) {
    const at = postedAt.get(wallet.workspaceId)
    if (at && wallet.heldUntil !== null && wallet.heldUntil <= at)
      due.set(wallet.id, { workspaceId: wallet.workspaceId, id: wallet.id, at })
  }
  return [...due.values()]
}

/** What identifies the limits that may apply to these requests. Most ledgers have none. */
function limitKeys(
  ledgers: readonly LockedLedger[],
  wallets: readonly LoadedWallet[],
  requests: readonly LedgerRequest[],
): LimitKey[] {
  const limited = new Set(ledgers.flatMap(({ workspaceId, limitCount }) => (limitCount > 0 ? [workspaceId] : [])))
  if (limited.size === 0) return []
  const keys = new Map<string, LimitKey>()
  const add = (workspaceId: string, subject: string, currency: string) => {
    const key = { workspaceId, subject, currency }
    if (limited.has(workspaceId)) keys.set(`${workspaceId} ${limitKey(key)}`, key)
  }
  for (const { wallet } of wallets) add(wallet.workspaceId, walletSubject(wallet.id), wallet.currency)
  for (const { workspaceId, actor, currency } of spendersOf(requests))
    if (isKey(actor)) add(workspaceId, actor, currency)
  return [...keys.values()]
}

function statesOf(
  ledgers: readonly LockedLedger[],
  wallets: readonly LoadedWallet[],
  transfers: readonly FoundTransfer[],
  holds: readonly HoldState[],
  { due, hasMore, nextExpiries }: DueHolds,
  limits: readonly LimitState[],
): LedgerState[] {
  const byWorkspace = <Row extends { workspaceId: string }>(rows: readonly Row[]) => {
    const groups = Map.groupBy(rows, ({ workspaceId }) => workspaceId)
    return (workspaceId: string) => groups.get(workspaceId) ?? []
  }
  const walletsOfWorkspace = byWorkspace(wallets.map(({ wallet }) => wallet))
  const transfersOfWorkspace = byWorkspace(transfers)
  const holdsOfWorkspace = byWorkspace([...holds, ...due])
  const expiriesOfWorkspace = byWorkspace(nextExpiries)
  const limitsOfWorkspace = byWorkspace(limits)
  return ledgers.map(ledger => {
    const own = transfersOfWorkspace(ledger.workspaceId)
    return {
      ...ledger,
      wallets: new Map(walletsOfWorkspace(ledger.workspaceId).map(wallet => [wallet.id, wallet])),
      byBizId: new Map(own.flatMap(transfer => (transfer.bizId === null ? [] : [[transfer.bizId, transfer]]))),
      byTransferId: new Map(own.map(transfer => [transfer.transferId, transfer])),
      reversedAmounts: new Map(
        own.flatMap(({ transferId, reversedAmount }) =>
          reversedAmount === null ? [] : [[transferId, reversedAmount]],
        ),
      ),
      holds: new Map(holdsOfWorkspace(ledger.workspaceId).map(hold => [hold.id, hold])),
      limits: new Map(limitsOfWorkspace(ledger.workspaceId).map(limit => [limitKey(limit), limit])),
      nextExpiries: new Map(expiriesOfWorkspace(ledger.workspaceId).map(({ id, expiresAt }) => [id, expiresAt])),
      hasMoreDueHolds: hasMore,
    }
  })
}

/** The transfers whose entry does not continue the chain of the source wallet: they were written outside the service. */
async function findForged(client: PoolClient, chainKey: KeyObject, existing: Transfer[]): Promise<Transfer[]> {
  const entries = await findEntries(
    client,
    existing.map(({ workspaceId, sourceWalletId, sourceSequence }) => ({
      workspaceId,
      walletId: sourceWalletId,
      sequence: sourceSequence,
    })),
  )
  return existing.filter((transfer, at) => !continuesChain(chainKey, transfer, 'OUT', entries[at]!))
}

/** Names the first transfer or hold of a ledger that was written outside the service; null when all are genuine. */
function forgedRecordOf(chainKey: KeyObject, ledger: LedgerState, forged: readonly Transfer[]): string | null {
  const forgedHere = forged.find(({ workspaceId }) => workspaceId === ledger.workspaceId)
  if (forgedHere) return `transfer ${idFromUuid('transfer', forgedHere.transferId)} was written outside the service`
  for (const hold of ledger.holds.values())
    if (!holdMac(chainKey, hold).equals(hold.mac!))
      return `the row of hold ${idFromUuid('hold', hold.id)} was modified outside the service`
  return null
}

/** Names the row of a ledger, or of a wallet, that was modified outside the service; null when their MACs are valid. */
function modifiedRowOf(chainKey: KeyObject, ledger: LedgerState): string | null {
  if (!ledgerMac(chainKey, ledger).equals(ledger.mac)) return 'the row of its ledger was modified outside the service'
  for (const wallet of ledger.wallets.values())
    if (!walletMac(chainKey, wallet).equals(wallet.mac))
      return `the row of wallet ${idFromUuid('wallet', wallet.id)} was modified outside the service`
  for (const limit of ledger.limits.values())
    if (!limitMac(chainKey, limit).equals(limit.mac))
      return `the limit of ${limit.subject} in ${limit.currency} was modified outside the service`
  return null
}

/**
 * Posts a batch in one round trip, from the remembered ledgers and without reading first.
 *
 * @returns null when nothing was posted and the batch must be posted with `postLocked`: a ledger or wallet is not
 *   remembered, another core has posted since, it is too late, or a request would be refused. Such a refusal may be
 *   wrong, because existing transfers with the same bizId were not looked up.
 */
export async function postRemembered(
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
  const results = byWorkspace(requests, (workspaceId, own) => {
    const decision = decide(ledgers.get(workspaceId)!, own, now, performance.now())
    decisions.push(decision)
    return decision.results
  })
  if (results.some(({ kind }) => kind !== 'posted')) return null
  const rows = chainDecisions(chainKey, decisions)
  const written = await postUnlocked(pool, rows.postings, beginFor(requests), postableUntil(requests, now))
  if (!written) remembered.distrust(workspacesOf(requests))
  return written && { results, written: { ...written, rows }, breaches: [] }
}

/**
 * The latest time at which PostgreSQL may write a batch that is decided from memory now. No lock is held while the batch
 * is in transit, and a stalled connection may deliver it late: after its callers have received S002, "not posted".
 */
function postableUntil(requests: readonly LedgerRequest[], now: Date): Date {
  const leftMs = requests.map(({ deadlineMs }) => deadlineMs + postingGraceMs - performance.now())
  return new Date(now.getTime() + Math.min(...leftMs, maxTransitMs))
}

/** Returns null when nothing was written: the stored rows differ from the remembered ones, or it is too late. */
async function postUnlocked(
  pool: Pool,
  postings: ChainedPostings,
  begin: string,
  notAfter: Date,
): Promise<Written | null> {
  try {
    return await withConnection(pool, async client => {
      const writes = [client.query(begin), post(client, postings, notAfter)] as const
      await committed([...writes], client.query('commit'))
      return await writes[1]
    })
  } catch (error) {
    // A row was modified outside the service. `postLocked` reads the rows and finds out which.
    if ((error as { code?: unknown }).code === restrictViolation) return null
    throw error
  }
}

/** Maximum time, in milliseconds, for a batch that was decided from memory to reach PostgreSQL. */
const maxTransitMs = 3_000
/** The SQLSTATE of `post` for a decision that does not continue from the stored rows. */
const restrictViolation = '23001'

function isFunding({ commands }: LedgerRequest): boolean {
  return commands.some(command => command.kind === 'posting' && command.type !== 'TRANSFER')
}

async function write(
  client: PoolClient,
  chainKey: KeyObject,
  decisions: Decision[],
  audit: AuditHead[],
): Promise<Outcome['written']> {
  const rows = chainDecisions(chainKey, decisions)
  const actions = decisions.flatMap(({ transfers }) => transfers.flatMap(actionsOf))
  const changing = rows.holds.wallets.length > 0 ? changeHolds(client, rows.holds) : null
  const counting = rows.limits.length > 0 ? countSpending(client, rows.limits) : null
  const posting = rows.postings.transfers.length > 0 ? post(client, rows.postings, null) : null
  // Deposits and withdrawals are administrative actions: the audit records them in the same transaction.
  const appending = actions.length > 0 ? appendActions(runOn(client), chainKey, audit, actions) : null
  const writes = [changing, counting, posting, appending].filter(each => each !== null)
  await committed(writes, client.query('commit'))
  const written = (await posting) ?? (await changing)
  return written && { ...written, rows }
}

/**
 * Waits for writes and for the COMMIT that was sent with them.
 *
 * @throws CommitUnknown when the connection was lost, unless there was nothing to commit
 */
export async function committed(writes: Promise<unknown>[], commit: Promise<unknown>): Promise<void> {
  const outcomes = await Promise.allSettled([...writes, commit])
  const failures = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  if (failures.length === 0) return
  // After an error from PostgreSQL, COMMIT is known to have rolled back. A lost connection says nothing.
  const refused = failures.find(isServerError)
  if (refused !== undefined) throw refused
  if (writes.length === 0) throw failures[0]
  throw new CommitUnknown('the connection was lost before the result of COMMIT arrived', { cause: failures[0] })
}

/** Whether this is an error that PostgreSQL returned and after which the session continues. */
function isServerError(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === 'ERROR'
}

/** The audit action of a deposit or withdrawal; none for a transfer between wallets. */
function actionsOf({ workspaceId, transferId, type, ...transfer }: Transfer): Action[] {
  if (type === 'TRANSFER') return []
  const { actor, bizId, amount, currency, sourceWalletId, targetWalletId } = transfer
  const action: Action = {
    actor,
    action: type === 'DEPOSIT' ? 'wallet.deposit' : 'wallet.withdraw',
    workspaceId,
    target: idFromUuid('wallet', type === 'DEPOSIT' ? targetWalletId : sourceWalletId),
    before: null,
    after: JSON.stringify({ transferId: idFromUuid('transfer', transferId), bizId, amount, currency }),
  }
  return [action]
}
