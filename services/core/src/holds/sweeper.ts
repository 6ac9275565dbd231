import { setTimeout } from 'node:timers/promises'
import { DomainError, type Uuid } from '@workspace-wallet/contract'
import { type Log, pause } from '@workspace-wallet/runtime'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { coreItself, type LedgerRequest } from '../ledger/decide/requests.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import { dueHoldLimit } from '../ledger/store/queries.ts'
import { LeftOut } from './left-out.ts'

const intervalMs = 1_000
/** Among how many due holds, the earliest ones, the workspaces take turns. */
const searchedHolds = 10_000
/** Maximum number of wallets whose due holds one sweep expires. */
const walletLimit = 256
/** Workspaces whose holds are expired at a time. In the queue, each weighs as much as a hundred transfers, for which room must remain. */
const workspacesAtATime = 8
/**
 * A sweep looks for holds that expired this long ago at most, in seconds; every `sweepsPerFullOne`th looks for all. The due holds
 * of closed and halted workspaces stay open, and would otherwise be read by every sweep.
 */
const recentSeconds = 600
const sweepsPerFullOne = 60
const allSeconds = 100 * 365 * 86_400

type DueWallet = {
  workspaceId: Uuid<'workspace'>
  walletId: Uuid<'wallet'>
  /** How many of its holds are due. */
  holds: number
}

/**
 * The wallets of each workspace in turn, so that no number of due holds of one delays the others. $1: how long ago the holds expired at
 * most, in seconds. $2: workspaces to leave out.
 */
export const findDueStatement = statement<DueWallet>(
  'find-wallets-with-due-holds',
  `select due.workspace_id as "workspaceId", due.wallet_id as "walletId", due.holds
   from (
     select h.workspace_id, h.wallet_id, count(*) as holds, min(h.expires_at) as since,
       row_number() over (partition by h.workspace_id order by min(h.expires_at)) as turn
     from (
       select hold.workspace_id, hold.wallet_id, hold.expires_at
       from hold join ledger on ledger.workspace_id = hold.workspace_id
       where hold.status = 'OPEN' and ledger.status = 'OPEN' and hold.expires_at <= statement_timestamp()
         and hold.expires_at > statement_timestamp() - $1::bigint * interval '1 second'
         and hold.workspace_id <> all ($2::uuid[])
       order by hold.expires_at limit ${searchedHolds}) h
     group by h.workspace_id, h.wallet_id) due
   order by due.turn, due.since limit ${walletLimit}`,
)

type Sweeper = { reads: Queryable; shards: Pick<Shards, 'post'>; log: Log }

/**
 * Writes the expiry of due holds once a second, until `stopping`, and without a pause while a sweep leaves some. Nothing waits for it:
 * reads show a due hold as expired, and every posting expires the due holds of its wallets first. Several cores may sweep the same
 * holds.
 */
export async function sweepDueHolds(sweeper: Sweeper, stopping: AbortSignal): Promise<void> {
  const leftOut = new LeftOut()
  for (let sweep = 0; !stopping.aborted; sweep++) {
    const sinceSeconds = sweep % sweepsPerFullOne === 0 ? allSeconds : recentSeconds
    const isDone = await sweepOnce(sweeper, leftOut, sinceSeconds).catch(error => {
      sweeper.log.warn({ err: error }, 'due holds could not be expired')
      return true
    })
    if (isDone) await pause(intervalMs, stopping)
  }
}

/**
 * Expires the holds that are due now, up to the limits. Returns whether the next sweep can wait: all that were found are expired, or
 * none of them.
 *
 * @throws when the database cannot be read or written
 */
async function sweepOnce({ reads, shards }: Sweeper, leftOut: LeftOut, sinceSeconds: number): Promise<boolean> {
  const due = await run(reads, findDueStatement, [sinceSeconds, plainArray(leftOut.list())])
  const left = Map.groupBy(due, ({ workspaceId }) => workspaceId).entries()
  const outcomes: boolean[] = []
  let isLate = false
  const expireNext = async () => {
    while (!isLate) {
      const { done, value } = left.next()
      if (done) return
      outcomes.push(await expire(shards, leftOut, expiryOf(...value)))
    }
  }
  const late = setTimeout(intervalMs, undefined, { ref: false })
  await Promise.race([Promise.all(Array.from({ length: workspacesAtATime }, expireNext)), late])
  isLate = true
  const hasMore =
    !left.next().done || due.length === walletLimit || due.reduce((sum, { holds }) => sum + holds, 0) > dueHoldLimit
  return !(hasMore && outcomes.includes(true))
}

/** Returns false if the workspace has meanwhile been closed or halted, or its queue is full. @throws when the database cannot be written */
async function expire(shards: Sweeper['shards'], leftOut: LeftOut, request: LedgerRequest): Promise<boolean> {
  const { workspaceId } = request
  let isExpired = false
  leftOut.start(workspaceId)
  try {
    await shards.post(request)
    isExpired = true
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
  } finally {
    leftOut.end(workspaceId, isExpired)
  }
  return isExpired
}

function expiryOf(workspaceId: Uuid<'workspace'>, wallets: DueWallet[]): LedgerRequest {
  const commands = wallets.map(({ walletId }) => ({ kind: 'expiry' as const, walletId, ...coreItself }))
  return { workspaceId, commands, mayBePosted: false, deadlineMs: performance.now() + intervalMs }
}
