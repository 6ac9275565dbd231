import type { Em } from '../db/orm.ts'
import { ApiKey } from './entities.ts'

/**
 * Tells the gateways that what these keys may do has changed: they poll the revision. Whoever changes a key, a
 * membership or a workspace calls this in the same transaction.
 */
export async function recordKeyChanges(em: Em, keys: { workspaceId: string; ownerUserId?: string }): Promise<void> {
  const revision = await nextRevision(em)
  await em.nativeUpdate(ApiKey, keys, { revision })
}

/**
 * The counter's row lock makes revisions follow the order of commits: a poll never overtakes a change. Each gets a mark
 * of its own (see accessChangesInput).
 */
export async function nextRevision(em: Em): Promise<number> {
  const [row] = await em.execute<{ revision: string }[]>(
    `with next as (update access_revision set revision = revision + 1 returning revision)
     insert into access_change (revision) select revision from next returning revision`,
  )
  return Number(row!.revision)
}
