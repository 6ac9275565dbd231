import { accessPollMs } from '@workspace-wallet/contract'
import { writeActions } from '../audit/chain/record.ts'
import { retryConflicts } from '../database/errors.ts'
import type { Em } from '../database/orm.ts'
import type { CallContext } from './context.ts'

/** Runs an administrative action and writes its audit entries, in one transaction. Retries conflicts. */
export function inTransaction<Result>(
  { core, actor }: CallContext,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  return retryConflicts(() =>
    core.orm.em.fork().transactional(async em => {
      const result = await action(em, actor)
      await em.flush()
      await writeActions(em, core.chainKey)
      return result
    }),
  )
}

/** Runs an action that changes what keys may do, and returns after all healthy gateways have polled the change. */
export async function inAccessTransaction<Result>(
  ctx: CallContext,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  const result = await inTransaction(ctx, action)
  await new Promise(resolve => setTimeout(resolve, 3 * accessPollMs))
  return result
}
