import type { KeyObject } from 'node:crypto'
import { bigint, integer, oneOf, primary, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** `access_revision` is not among them: it changes nothing but when cores look again. */
export const workspaceMoveColumns = {
  workspaceId: primary(uuid('workspace')),
  generation: bigint,
  state: oneOf(['ARRIVING', 'PRESENT', 'LEAVING', 'LEFT']),
  fromPlace: integer,
  toPlace: integer,
  at: time,
  revision: bigint,
}
export type WorkspaceMoveRow = RowOf<typeof workspaceMoveColumns>
export const storedWorkspaceMoveColumns = withMac(workspaceMoveColumns)

export function workspaceMoveMac(key: KeyObject, row: WorkspaceMoveRow): Buffer {
  return rowMac(key, 'workspace_move', workspaceMoveColumns, row)
}
