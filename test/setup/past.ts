import { uuidFromId } from '@workspace-wallet/contract'
import { execute } from './database.ts'

export const hourMs = 3_600_000

/**
 * Moves all transfers of a workspace an hour into the past, as if they had been posted then. Their MACs are no longer valid:
 * only for reads that do not check them.
 */
export function moveTransfersToPast(ownerUrl: string, workspaceId: string): Promise<void> {
  return moveTransfers(ownerUrl, workspaceId, -hourMs)
}

/** Reads while all transfers of a workspace are an hour in the past, and moves them back. Nothing may post meanwhile. */
export async function readAnHourLater<Result>(
  ownerUrl: string,
  workspaceId: string,
  read: () => Promise<Result>,
): Promise<Result> {
  await moveTransfers(ownerUrl, workspaceId, -hourMs)
  const result = await read()
  await moveTransfers(ownerUrl, workspaceId, hourMs)
  return result
}

function moveTransfers(ownerUrl: string, workspaceId: string, ms: number): Promise<void> {
  return execute(
    ownerUrl,
    `set session_replication_role = replica;
     update transfer set created_at = created_at + interval '${ms} milliseconds'
     where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  )
}
