import { setTimeout } from 'node:timers/promises'
import { DomainError, type Uuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { type Queryable, run, statement } from '../database/statement.ts'
import { coreItself, type LedgerRequest } from '../ledger/decide/requests.ts'
import type { Shards } from '../ledger/posting/shards.ts'

const intervalMs = 1_000
/** Maximum number of holds that one sweep finds. */
const sweepLimit = 256
/**
 * A sweep looks for holds that expired this long ago at most, in seconds; every `sweepsPerFullOne`th looks for all. The due holds
 * of closed and halted workspaces stay open, and would otherwise be read by every sweep.
 */
const recentSeconds = 600
const sweepsPerFullOne = 60
const allSeconds = 100 * 365 * 86_400

/** $1: how long ago the holds expired at most, in seconds. */
export const findDueStatement = statement<{ workspaceId: Uuid<'workspace'>; walletId: Uuid<'wallet'> }>(
  'find-wallets-with-due-holds',
  `select distinct h.workspace_id as "workspaceId", h.wallet_id as "walletId"
   from (
     select hold.workspace_id, hold.wallet_id
     from hold join ledger on ledger.workspace_id = hold.workspace_id
     where hold.status = 'OPEN' and ledger.status = 'OPEN' and hold.expires_at <= statement_timestamp()
       and hold.expires_at > statement_timestamp() - $1::bigint * interval '1 second'
     order by hold.expires_at limit ${sweepLimit}) h`,
)

/**
 * Writes the expiry of due holds once a second, until `stopping`. Nothing waits for it: reads show a due hold as expired,
 * and every posting expires the due holds of its wallets first. Several cores may sweep the same holds.
 */
export async function sweepDueHolds(
  { reads, shards, log }: { reads: Queryable; shards: Shards; log: Log },
  stopping: AbortSignal,
): Promise<void> {
  for (let sweep = 0; !stopping.aborted; sweep++) {
    const sinceSeconds = sweep % sweepsPerFullOne === 0 ? allSeconds : recentSeconds
    await sweepOnce(reads, shards, sinceSeconds).catch(error =>
      log.warn({ err: error }, 'due holds could not be expired'),
    )
    await setTimeout(intervalMs, undefined, { signal: stopping, ref: false }).catch(() => {})
  }
}

/** Expires the holds that are due now, up to the limit. @throws when the database cannot be read or written */
async function sweepOnce(reads: Queryable, shards: Shards, sinceSeconds: number): Promise<void> {
  const due = await run(reads, findDueStatement, [sinceSeconds])
  const byWorkspace = Map.groupBy(due, ({ workspaceId }) => workspaceId)
  const requests = Array.from(byWorkspace, ([workspaceId, wallets]) => expiryOf(workspaceId, wallets))
  await Promise.all(requests.map(request => shards.post(request).catch(ignoreRefusal)))
}

function expiryOf(workspaceId: Uuid<'workspace'>, wallets: { walletId: Uuid<'wallet'> }[]): LedgerRequest {
  const commands = wallets.map(({ walletId }) => ({ kind: 'expiry' as const, walletId, ...coreItself }))
  return { workspaceId, commands, mayBePosted: false, deadlineMs: performance.now() + intervalMs }
}

/** Meanwhile the workspace may be closed or halted, or its queue full. The next sweep finds the holds again. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof DomainError)) throw error
}
