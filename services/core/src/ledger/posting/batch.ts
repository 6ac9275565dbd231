import type { KeyObject } from 'node:crypto'
import type { Socket } from 'node:net'
import { DomainError, idFromUuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Client, Pool, PoolClient } from 'pg'
import { type Action, type AuditHead, appendActions, lockAudit } from '../../audit/chain/chain.ts'
import { backOff, classifyDatabaseError } from '../../database/errors.ts'
import { ledgerMac, walletMac } from '../../database/signed-rows.ts'
import { run, type Statement } from '../../database/statement.ts'
import { emptyHead, entryMac, transferDigest } from '../chain/chain.ts'
import type { Transfer } from '../chain/transfer.ts'
import { beginFor } from './batch-log.ts'
import { decide } from './decide.ts'
import { type Breach, halt } from './halt.ts'
import { type Decision, isMalformedWallet, type LedgerState, type Posting, type PostingResult } from './posting.ts'
import {
  type ChainedPostings,
  findByBizId,
  findById,
  findLockable,
  findSourceEntries,
  type LoadedWallet,
  loadWallets,
  lockLedgers,
  writePostings,
} from './queries.ts'

export type LedgerStore = { pool: Pool; chainKey: KeyObject; log: Log }

const maxAttempts = 5

/** The connection was lost between sending COMMIT and hearing of it. */
class CommitUnknown extends Error {}

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
      if (fault === 'duplicate' && postings.some(posting => !posting.mayBePosted))
        return postBatch(store, lookingFirst(postings))
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

function workspacesOf(postings: Posting[]): string[] {
  return [...new Set(postings.map(({ workspaceId }) => workspaceId))]
}

function lookingFirst(postings: Posting[]): Posting[] {
  return postings.map(posting => ({ ...posting, mayBePosted: true }))
}

/** Certainly not posted: safe to send again. */
export const unavailable = (): PostingResult => ({
  kind: 'refused',
  error: new DomainError('S002', { retryAfterSeconds: 1 }),
})
const broken = (): PostingResult => ({ kind: 'refused', error: new DomainError('S001') })
const unknown = ({ transferId }: Posting): PostingResult => ({
  kind: 'refused',
  error: new DomainError('S003', { transferId }),
})

/** One transaction, two round trips: lock and load, then write and commit. */
async function postOnce(store: LedgerStore, postings: Posting[]): Promise<PostingResult[]> {
  const client = await store.pool.connect()
  let lost: Error | undefined
  let breaches: Breach[] = []
  try {
    const { ledgers, audit } = await load(client, store.chainKey, postings)
    const results = new Array<PostingResult>(postings.length)
    const judgements: Judgement[] = []
    for (const [workspaceId, places] of Map.groupBy(postings.keys(), at => postings[at]!.workspaceId)) {
      const judgement = judge(
        store.chainKey,
        ledgers.get(workspaceId),
        places.map(at => postings[at]!),
      )
      for (const [at, result] of judgement.results.entries()) results[places[at]!] = result
      judgements.push(judgement)
    }
    await write(client, store.chainKey, judgements, audit)
    breaches = judgements.flatMap(({ breach }) => breach ?? [])
    return results
  } catch (error) {
    if (isAnswer(error)) await client.query('rollback').catch(failure => (lost = failure))
    else lost = error as Error
    throw error
  } finally {
    // A connection that was lost may be in the middle of anything: closing it rolls back.
    client.release(lost)
    // Neighbours are posted by now. A breach that could not be halted is met again by the next posting.
    for (const breach of breaches) await halt(store, breach)
  }
}

type LoadedLedger = {
  state: LedgerState
  mac: Buffer
  wallets: LoadedWallet[]
  /** Of the transfers that exist already, one that no core wrote. */
  forged: Transfer | undefined
  now: Date
}
type Loaded = { ledgers: Map<string, LoadedLedger>; audit: AuditHead[] }

async function load(client: PoolClient, chainKey: KeyObject, postings: Posting[]): Promise<Loaded> {
  const workspaceIds = workspacesOf(postings)
  const walletKeys = new Map<string, { workspaceId: string; id: string }>()
  for (const { workspaceId, sourceWalletId, targetWalletId } of postings)
    for (const id of [sourceWalletId, targetWalletId])
      if (!isMalformedWallet(id)) walletKeys.set(`${workspaceId}/${id}`, { workspaceId, id })
  const named = postings.flatMap(({ workspaceId, bizId }) => (bizId === null ? [] : [{ workspaceId, bizId }]))
  const resent = postings.filter(posting => posting.mayBePosted)
  const funded = workspacesOf(postings.filter(({ type }) => type !== 'TRANSFER'))

  const sent = inOneWrite(
    client,
    () =>
      [
        client.query(beginFor(postings)),
        lockLedgers(client, workspaceIds),
        loadWallets(client, [...walletKeys.values()]),
        named.length > 0 ? findByBizId(client, named) : [],
        resent.length > 0 ? findById(client, resent) : [],
        funded.length > 0 ? lockAudit(runOn(client), funded) : [],
      ] as const,
  )
  await Promise.allSettled(sent)
  const [, ledgers, wallets, byBizId, byId, audit] = await Promise.all(sent)

  const existing = [...byBizId, ...byId]
  const forged = existing.length > 0 ? await findForged(client, chainKey, existing) : []
  const now = wallets.reduce((latest, wallet) => (wallet.now > latest ? wallet.now : latest), new Date(0))
  const walletsByWorkspace = Map.groupBy(wallets, ({ wallet }) => wallet.workspaceId)
  const transfersByWorkspace = Map.groupBy(existing, ({ workspaceId }) => workspaceId)
  const loaded = ledgers.map(({ mac, ...ledger }): [string, LoadedLedger] => {
    const own = walletsByWorkspace.get(ledger.workspaceId) ?? []
    const transfers = transfersByWorkspace.get(ledger.workspaceId) ?? []
    const state: LedgerState = {
      ...ledger,
      wallets: new Map(own.map(({ wallet }) => [wallet.id, wallet])),
      byBizId: new Map(transfers.flatMap(transfer => (transfer.bizId === null ? [] : [[transfer.bizId, transfer]]))),
      byTransferId: new Map(transfers.map(transfer => [transfer.transferId, transfer])),
    }
    const forgedHere = forged.find(({ workspaceId }) => workspaceId === ledger.workspaceId)
    return [ledger.workspaceId, { state, mac, wallets: own, forged: forgedHere, now }]
  })
  return { ledgers: new Map(loaded), audit }
}

type Judgement = { results: PostingResult[]; decision?: Decision; breach?: Breach }

/** Whoever asks for a transfer again is told of it only if its flow continues the chain of its source. */
async function findForged(client: PoolClient, chainKey: KeyObject, existing: Transfer[]): Promise<Transfer[]> {
  const entries = await findSourceEntries(client, existing)
  return existing.filter((transfer, at) => {
    const { balanceAfter, orderNumber, mac, previous } = entries[at]!
    if (!mac || balanceAfter === null) return true
    const { workspaceId, transferId, amount, createdAt } = transfer
    const place = { walletId: transfer.sourceWalletId, sequence: transfer.sourceSequence, direction: 'OUT' as const }
    const entry = { workspaceId, transferId, amount, createdAt, ...place, balanceAfter, orderNumber }
    return !entryMac(chainKey, entry, transferDigest(transfer), previous ?? emptyHead).equals(mac)
  })
}

/** What postings do to one ledger: nothing when there is none, or when it is not sound. */
function judge(chainKey: KeyObject, ledger: LoadedLedger | undefined, postings: Posting[]): Judgement {
  if (!ledger) return { results: postings.map(() => ({ kind: 'refused', error: new DomainError('GA2032') })) }
  const { state, now } = ledger
  const reason = state.status === 'OPEN' ? breachOf(chainKey, ledger) : null
  if (reason) return { results: postings.map(unavailable), breach: { workspaceId: state.workspaceId, reason } }
  const decision = decide(state, postings, now, performance.now())
  return { results: decision.results, decision }
}

/** Whether a row was not written by a core: nothing is built on it. */
function breachOf(chainKey: KeyObject, { state, mac, wallets, forged }: LoadedLedger): string | null {
  if (forged) return `transfer ${idFromUuid('transfer', forged.transferId)} was written outside the service`
  if (!ledgerMac(chainKey, state).equals(mac)) return `the row of its ledger ${notOurs}`
  const foreign = wallets.find(({ wallet, mac }) => !walletMac(chainKey, wallet).equals(mac))
  return foreign ? `the row of wallet ${idFromUuid('wallet', foreign.wallet.id)} ${notOurs}` : null
}

const notOurs = 'was modified outside the service'

async function write(
  client: PoolClient,
  chainKey: KeyObject,
  judgements: Judgement[],
  audit: AuditHead[],
): Promise<void> {
  const decisions = judgements.flatMap(({ decision }) => (decision && decision.transfers.length > 0 ? [decision] : []))
  const postings = chained(chainKey, decisions)
  const actions = postings.transfers.flatMap(({ transfer }) => (transfer.type === 'TRANSFER' ? [] : actionOf(transfer)))
  const { writes, commit } = inOneWrite(client, () => {
    const writes: Promise<unknown>[] = []
    if (decisions.length > 0) writes.push(writePostings(client, postings))
    // Money from outside is an administrative action as well: it stands in the audit, in the same transaction.
    if (actions.length > 0) writes.push(appendActions(runOn(client), chainKey, audit, actions))
    return { writes, commit: client.query('commit') }
  })
  const outcomes = await Promise.allSettled([...writes, commit])
  const failure = outcomes.find(({ status }) => status === 'rejected')
  if (!failure) return
  // COMMIT went out together with the writes. Only when PostgreSQL itself refused a write do we know how it ended.
  const refusal = outcomes.slice(0, -1).find(outcome => outcome.status === 'rejected' && isAnswer(outcome.reason))
  if (refusal) throw (refusal as PromiseRejectedResult).reason
  if (writes.length === 0) throw (failure as PromiseRejectedResult).reason
  throw new CommitUnknown('the answer to COMMIT was lost', { cause: (failure as PromiseRejectedResult).reason })
}

/** Whether PostgreSQL itself answered with this error, and the session goes on. */
function isAnswer(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === 'ERROR'
}

/** Binds entries to the chain and wallets to their new heads, and signs the rows. */
function chained(chainKey: KeyObject, decisions: Decision[]): ChainedPostings {
  const transfers = decisions.flatMap(({ transfers, entries, wallets }) => {
    const walletById = new Map(wallets.map(wallet => [wallet.id, wallet]))
    return transfers.map((transfer, at) => {
      const digest = transferDigest(transfer)
      const [paid, received] = [entries[2 * at]!, entries[2 * at + 1]!].map(entry => {
        const wallet = walletById.get(entry.walletId)!
        wallet.head = entryMac(chainKey, entry, digest, wallet.head)
        return { balanceAfter: entry.balanceAfter, orderNumber: entry.orderNumber, mac: wallet.head }
      })
      return { transfer, paid: paid!, received: received! }
    })
  })
  return {
    transfers,
    wallets: decisions.flatMap(({ wallets }) => wallets.map(row => ({ ...row, mac: walletMac(chainKey, row) }))),
    ledgers: decisions.map(({ ledger }) => ({ ...ledger, mac: ledgerMac(chainKey, ledger) })),
  }
}

function actionOf({ workspaceId, transferId, type, ...transfer }: Transfer): Action {
  const { actor, bizId, amount, currency, sourceWalletId, targetWalletId } = transfer
  return {
    actor,
    action: type === 'DEPOSIT' ? 'wallet.deposit' : 'wallet.withdraw',
    workspaceId,
    target: idFromUuid('wallet', type === 'DEPOSIT' ? targetWalletId : sourceWalletId),
    before: null,
    after: JSON.stringify({ transferId: idFromUuid('transfer', transferId), bizId, amount, currency }),
  }
}

function runOn(client: PoolClient) {
  return <Row>(statement: Statement<Row>, values: unknown[]) => run(client, statement, values)
}

/** What is sent meanwhile leaves in one write: each write to a socket costs more than most statements. */
function inOneWrite<Sent>(client: PoolClient, send: () => Sent): Sent {
  const { stream } = (client as unknown as Client).connection as unknown as { stream: Socket }
  stream.cork()
  try {
    return send()
  } finally {
    stream.uncork()
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
