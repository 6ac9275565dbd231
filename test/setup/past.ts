import { uuidFromId } from '@workspace-wallet/contract'
import { execute } from './database.ts'

/**
 * Moves all transfers of a workspace an hour into the past, as if they had been posted then. Their MACs are no longer valid:
 * only for reads that do not check them.
 */
export async function moveTransfersToPast(ownerUrl: string, workspaceId: string): Promise<void> {
  await execute(
    ownerUrl,
    `set session_replication_role = replica; update transfer set created_at = created_at - interval '1 hour'
     where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  )
}
