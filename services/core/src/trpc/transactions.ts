import { accessPollMs } from '@workspace-wallet/contract'
import { writeActions } from '../audit/chain/record.ts'
import { retryConflicts } from '../database/errors.ts'
import type { Em } from '../database/orm.ts'
import type { CallContext } from './context.ts'

/** Runs an administrative action in one transaction, its audit row included; conflicts are run again. */
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

/**
 * An action that changes what keys may do. It answers when every gateway that is healthy has heard of it, so that whoever
 * disables a key may rely on it from then on.
 */
export async function inAccessTransaction<Result>(
  ctx: CallContext,
  action: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  const result = await inTransaction(ctx, action)
  await new Promise(resolve => setTimeout(resolve, 3 * accessPollMs))
  return result
}
