import { AdminError, accessPollMs, DomainError, isDomainError } from '@workspace-wallet/contract'
import { changerOf } from '../audit/actors.ts'
import { writeActions } from '../audit/record.ts'
import { classifyDatabaseError, isLockTimeout, retryConflicts } from '../database/errors.ts'
import { type Em, transact } from '../database/orm.ts'
import type { CallContext } from './context.ts'

/**
 * Runs an administrative action and writes its audit entries, with the reason in `ctx`, in one transaction. Retries conflicts.
 *
 * @throws DomainError S003 if the connection was lost before the result of COMMIT arrived; AdminError BLOCKED if an operator's
 *   action waited too long for a lock, and a session that core may not end holds locks that core waits for
 */
export function inTransaction<Result>(
  { core, actor, requestId, reason }: CallContext,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  return retryConflicts(async () => {
    let isCommitting = false
    try {
      const { result, written } = await transact(core.orm, async em => {
        const result = await action(em, actor)
        await em.flush()
        const written = await writeActions(em, core.chainKey, { requestId, reason: reason ?? null })
        isCommitting = true
        return { result, written }
      })
      if (written) core.history.acknowledge({ table: 'audit', ...written })
      return result
    } catch (error) {
      if (isCommitting && classifyDatabaseError(error) === 'unavailable') throw new DomainError('S003')
      const blocking =
        isLockTimeout(error) && changerOf(actor) === 'OPERATOR' && core.foreignSessions.describeBlocking()
      if (blocking) throw new AdminError('BLOCKED', `Nothing was changed, because of a lock of ${blocking}`)
      throw error
    }
  })
}

/** `isIdempotent`: whether a repeated action finds what the first one has done. */
export type WorkspaceAction = { workspaceId: string; isIdempotent: boolean }

/**
 * Like `inTransaction`, for changes that wait for the lock of a ledger or webhook. Those of clients wait one at a time for each
 * workspace.
 *
 * @throws DomainError S002 if too many changes of clients wait; S003 if the outcome is unknown
 */
export function inWorkspaceTransaction<Result>(
  ctx: CallContext,
  { workspaceId, isIdempotent }: WorkspaceAction,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  const attempt = () => inTransaction(ctx, action)
  const run = isIdempotent ? () => repeatIfUnknown(attempt) : attempt
  const { core, actor } = ctx
  return changerOf(actor) === 'OPERATOR' ? core.calls.run(actor, run) : core.lockWaits.run(workspaceId, run)
}

/** Runs an action that changes what keys may do, and returns after all healthy gateways and cores have polled the change. */
export async function inAccessTransaction<Result>(
  ctx: CallContext,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  // Also after a failure: its outcome may be unknown.
  const result = await inTransaction(ctx, action).finally(() => ctx.core.access.expire())
  await new Promise(resolve => setTimeout(resolve, 3 * accessPollMs))
  return result
}

/**
 * Repeats a transaction whose result of COMMIT is lost. It waits until the lost session has ended, and then finds what that
 * one has done.
 */
export async function repeatIfUnknown<Result>(transaction: () => Promise<Result>): Promise<Result> {
  try {
    return await transaction()
  } catch (error) {
    if (!isDomainError(error) || error.code !== 'S003') throw error
    return await transaction().catch(() => Promise.reject(error))
  }
}
