import { uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'

/** A change of what keys may do: its number, and PostgreSQL's time of it. */
export type AccessChange = { accessRevision: number; now: Date }

/**
 * Begins a change, with the next access revision. Whoever changes a key, a membership or a workspace takes it first: the lock of its one row
 * gives such changes one order, which is that of the numbers, so that a gateway that polls never overtakes a change.
 * PostgreSQL gives each number a epoch of its own (see accessChangesInput).
 */
export async function beginAccessChange(em: Em): Promise<AccessChange> {
  const [row] = await em.execute<{ revision: string; ms: string }[]>(
    `update access_revision set revision = revision + 1
     returning revision, floor(extract(epoch from clock_timestamp()) * 1000) as ms`,
  )
  return { accessRevision: Number(row!.revision), now: new Date(Number(row!.ms)) }
}

/** Tells the gateways that what the keys of a workspace, or of one of its members, may do has changed. */
export async function markKeysChanged(
  em: Em,
  { workspaceId, ownerUserId }: { workspaceId: string; ownerUserId?: string },
  accessRevision: number,
): Promise<void> {
  await em.execute(
    'update api_key set access_revision = ? where workspace_id = ? and owner_user_id = coalesce(?, owner_user_id)',
    [accessRevision, uuidFromId('workspace', workspaceId), ownerUserId ?? null],
  )
}
