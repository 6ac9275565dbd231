import type { KeyObject } from 'node:crypto'
import type { Snapshot } from '../database/snapshot.ts'
import { arrayReader, selectColumns } from '../database/tables/table.ts'
import { storedWorkspaceMoveColumns } from '../database/tables/workspace-move.ts'
import { claimOfRow, notHere } from '../places/claims.ts'

const readMove = arrayReader(storedWorkspaceMoveColumns, Object.keys(storedWorkspaceMoveColumns))

/**
 * Leaves out the rows of workspaces that have not arrived in this place yet, or have left it: they are part of another place. A row that
 * core did not write hides nothing.
 *
 * @param place the number of the place
 */
export async function hideMoved(snapshot: Snapshot, chainKey: KeyObject, place: number): Promise<void> {
  const hidden: string[] = []
  const batches = snapshot.batches(
    `select ${selectColumns(storedWorkspaceMoveColumns, 'm')} from {schema}.workspace_move m where state in ('ARRIVING', 'LEFT')`,
  )
  for await (const rows of batches)
    for (const move of rows.map(readMove))
      if (claimOfRow(chainKey, place, move) === notHere) hidden.push(move.workspaceId)
  snapshot.hide(hidden)
}
