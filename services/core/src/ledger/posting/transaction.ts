import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid, postingGraceMs } from '@workspace-wallet/contract'
import type { Pool, PoolClient } from 'pg'
import { type Action, type AuditHead, appendActions, lockAudit } from '../../audit/chain/chain.ts'
import { runOn } from '../../database/run.ts'
import { ledgerMac, walletMac } from '../../database/signed-rows.ts'
import { emptyHead, entryMac, transferDigest } from '../chain/chain.ts'
import type { Transfer } from '../chain/transfer.ts'
import { beginFor } from './batch-log.ts'
import { chainDecisions } from './chain-decisions.ts'
import { decide } from './decide.ts'
import type { Breach } from './halt.ts'
import { findByBizId, findById, findSourceEntries, loadWallets, lockLedgers } from './load.ts'
import { type ChainedPostings, type Posted, post } from './post.ts'
import {
  type Decision,
  type LedgerState,
  type Posting,
  type PostingResult,
  refusal,
  unavailable,
  walletsOf,
  workspacesOf,
} from './posting.ts'
import type { RememberedLedgers } from './remembered-ledgers.ts'

/** The connection was lost after COMMIT was sent and before its result arrived: the outcome is unknown. */
export class CommitUnknown extends Error {}

/** The outcome of a batch. Results are in the order of its postings. */
export type Outcome = {
  results: PostingResult[]
  /** The rows that were written; null when there were none. */
  posted: (Posted & { postings: ChainedPostings }) | null
  /** Workspaces whose rows were modified outside the service. Nothing was posted to them. */
  breaches: Breach[]
}

/** Posts a batch in one transaction of two round trips: lock and load, then write and commit. */
export async function postLocked(pool: Pool, chainKey: KeyObject, postings: Posting[]): Promise<Outcome> {
  return withConnection(pool, async client => {
    const { ledgers, forged, audit, now } = await load(client, chainKey, postings)
    const decisions: Decision[] = []
    const breaches: Breach[] = []
    const results = byWorkspace(postings, (workspaceId, own) => {
      const ledger = ledgers.get(workspaceId)
      if (!ledger) return own.map(() => refusal(new DomainError('GA2032')))
      const reason = ledger.status === 'OPEN' ? breachOf(chainKey, ledger, forged) : null
      if (reason) {
        breaches.push({ workspaceId, reason })
        return own.map(unavailable)
      }
      const decision = decide(ledger, own, now, performance.now())
      if (decision.transfers.length > 0) decisions.push(decision)
      return decision.results
    })
    return { results, posted: await write(client, chainKey, decisions, audit), breaches }
  })
}

/** Calls `decideOwn` with the postings of each workspace. Returns the results in the order of all postings. */
export function byWorkspace(
  postings: readonly Posting[],
  decideOwn: (workspaceId: string, own: Posting[]) => PostingResult[],
): PostingResult[] {
  const results = new Array<PostingResult>(postings.length)
  for (const [workspaceId, places] of Map.groupBy(postings.keys(), at => postings[at]!.workspaceId)) {
    const own = decideOwn(
      workspaceId,
      places.map(at => postings[at]!),
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

async function load(client: PoolClient, chainKey: KeyObject, postings: Posting[]): Promise<Loaded> {
  const withBizId = postings.flatMap(({ workspaceId, bizId }) => (bizId === null ? [] : [{ workspaceId, bizId }]))
  const resent = postings.filter(posting => posting.mayBePosted)
  const audited = workspacesOf(postings.filter(({ type }) => type !== 'TRANSFER'))

  const queries = [
    client.query(beginFor(postings)),
    lockLedgers(client, workspacesOf(postings)),
    loadWallets(client, walletsOf(postings)),
    withBizId.length > 0 ? findByBizId(client, withBizId) : [],
    resent.length > 0 ? findById(client, resent) : [],
    audited.length > 0 ? lockAudit(runOn(client), audited) : [],
  ] as const
  await Promise.allSettled(queries)
  const [, ledgers, wallets, byBizId, byId, audit] = await Promise.all(queries)

  const existing = [...byBizId, ...byId]
  const walletsByWorkspace = Map.groupBy(wallets, ({ wallet }) => wallet.workspaceId)
  const transfersByWorkspace = Map.groupBy(existing, ({ workspaceId }) => workspaceId)
  const states = ledgers.map((ledger): LedgerState => {
    const transfers = transfersByWorkspace.get(ledger.workspaceId) ?? []
    const own = walletsByWorkspace.get(ledger.workspaceId) ?? []
    return {
      ...ledger,
      wallets: new Map(own.map(({ wallet }) => [wallet.id, wallet])),
      byBizId: new Map(transfers.flatMap(transfer => (transfer.bizId === null ? [] : [[transfer.bizId, transfer]]))),
      byTransferId: new Map(transfers.map(transfer => [transfer.transferId, transfer])),
    }
  })
  return {
    ledgers: new Map(states.map(state => [state.workspaceId, state])),
    forged: existing.length > 0 ? await findForged(client, chainKey, existing) : [],
    audit,
    now: wallets.reduce((latest, wallet) => (wallet.now > latest ? wallet.now : latest), new Date(0)),
  }
}

/** The transfers whose entry does not continue the chain of the source wallet: they were written outside the service. */
async function findForged(client: PoolClient, chainKey: KeyObject, existing: Transfer[]): Promise<Transfer[]> {
  const entries = await findSourceEntries(client, existing)
  return existing.filter((transfer, at) => {
    const { balanceAfter, orderCount, mac, previous } = entries[at]!
    if (!mac || balanceAfter === null || orderCount === null) return true
    const { workspaceId, transferId, amount, createdAt } = transfer
    const place = { walletId: transfer.sourceWalletId, sequence: transfer.sourceSequence, direction: 'OUT' as const }
    const entry = { workspaceId, transferId, amount, createdAt, ...place, balanceAfter, orderCount }
    return !entryMac(chainKey, entry, transferDigest(transfer), previous ?? emptyHead).equals(mac)
  })
}

/** Names the first row of a ledger that was modified outside the service; null when all MACs are valid. */
function breachOf(chainKey: KeyObject, ledger: LedgerState, forged: readonly Transfer[]): string | null {
  const forgedHere = forged.find(({ workspaceId }) => workspaceId === ledger.workspaceId)
  if (forgedHere) return `transfer ${idFromUuid('transfer', forgedHere.transferId)} was written outside the service`
  if (!ledgerMac(chainKey, ledger).equals(ledger.mac)) return 'the row of its ledger was modified outside the service'
  for (const wallet of ledger.wallets.values())
    if (!walletMac(chainKey, wallet).equals(wallet.mac))
      return `the row of wallet ${idFromUuid('wallet', wallet.id)} was modified outside the service`
  return null
}

/**
 * Posts a batch in one round trip, from the remembered ledgers and without reading first.
 *
 * @returns null when nothing was posted and the batch must be posted with `postLocked`: a ledger or wallet is not
 *   remembered, another core has posted since, it is too late, or a posting would be refused. Such a refusal may be
 *   wrong, because existing transfers with the same bizId were not looked up.
 */
export async function postRemembered(
  pool: Pool,
  chainKey: KeyObject,
  remembered: RememberedLedgers,
  postings: Posting[],
): Promise<Outcome | null> {
  const now = remembered.now()
  const ledgers = postings.every(canPostFromMemory) ? remembered.recall(postings) : null
  if (!now || !ledgers) return null
  const decisions: Decision[] = []
  const results = byWorkspace(postings, (workspaceId, own) => {
    const decision = decide(ledgers.get(workspaceId)!, own, now, performance.now())
    decisions.push(decision)
    return decision.results
  })
  if (results.some(({ kind }) => kind !== 'posted')) return null
  const chained = chainDecisions(chainKey, decisions)
  const posted = await postUnlocked(pool, chained, beginFor(postings), postableUntil(postings, now))
  if (!posted) remembered.distrust(workspacesOf(postings))
  return posted && { results, posted: { ...posted, postings: chained }, breaches: [] }
}

/**
 * The latest time at which PostgreSQL may write a batch that is decided from memory now. No lock is held while the batch
 * is in transit, and a stalled connection may deliver it late: after its callers have received S002, "not posted".
 */
function postableUntil(postings: readonly Posting[], now: Date): Date {
  const leftMs = postings.map(({ deadlineMs }) => deadlineMs + postingGraceMs - performance.now())
  return new Date(now.getTime() + Math.min(...leftMs, maxTransitMs))
}

/** Returns null when nothing was written: the stored rows differ from the remembered ones, or it is too late. */
async function postUnlocked(
  pool: Pool,
  postings: ChainedPostings,
  begin: string,
  notAfter: Date,
): Promise<Posted | null> {
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

/** Deposits and withdrawals have to lock the audit; a posting that may already exist has to be looked up. */
function canPostFromMemory({ type, mayBePosted }: Posting): boolean {
  return type === 'TRANSFER' && !mayBePosted
}

async function write(
  client: PoolClient,
  chainKey: KeyObject,
  decisions: Decision[],
  audit: AuditHead[],
): Promise<Outcome['posted']> {
  const postings = chainDecisions(chainKey, decisions)
  const actions = decisions.flatMap(({ transfers }) => transfers.flatMap(actionsOf))
  const posting = decisions.length > 0 ? post(client, postings, null) : null
  // Deposits and withdrawals are administrative actions: the audit records them in the same transaction.
  const appending = actions.length > 0 ? appendActions(runOn(client), chainKey, audit, actions) : null
  const writes = [posting, appending].filter(each => each !== null)
  await committed(writes, client.query('commit'))
  return posting && { ...(await posting)!, postings }
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
