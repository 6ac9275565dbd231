import { uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'

/** A change of what keys may do: its access revision, and the time of PostgreSQL. */
export type AccessChange = { accessRevision: number; now: Date }

/**
 * Begins a change of a key, a membership or a workspace by taking the next access revision. A lock orders such changes, and revisions are
 * in order of commit, so a gateway that polls misses none. A trigger gives each revision its own epoch (see accessChangesInput).
 */
export async function beginAccessChange(em: Em): Promise<AccessChange> {
  await lockAccess(em)
  const [row] = await em.execute<{ revision: string; ms: string }[]>(
    `with changed as (update access_revision set revision = revision + 1 returning revision)
     select revision, floor(extract(epoch from clock_timestamp()) * 1000) as ms from changed`,
  )
  return { accessRevision: Number(row!.revision), now: new Date(Number(row!.ms)) }
}

/** Makes gateways look up the keys of a workspace, or of one of its members, again. */
export async function markKeysChanged(
  em: Em,
  { workspaceId, ownerUserId }: { workspaceId: string; ownerUserId?: string },
  accessRevision: number,
): Promise<void> {
  // In SQL: the entity is in api-keys, which imports this folder.
  await em.execute(
    'update api_key set access_revision = ? where workspace_id = ? and owner_user_id = coalesce(?, owner_user_id)',
    [accessRevision, uuidFromId('workspace', workspaceId), ownerUserId ?? null],
  )
}

/** Waits for other changes of access, operators and moves to commit, and makes later ones wait. */
export async function lockAccess(em: Em): Promise<void> {
  await em.execute('select lock_access()')
}

/** The same for operators' changes of webhooks. All deliveries wait too. */
export async function lockWebhooks(em: Em): Promise<void> {
  await em.execute('select lock_webhooks()')
}
