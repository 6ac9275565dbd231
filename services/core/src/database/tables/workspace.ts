import type { KeyObject } from 'node:crypto'
import { bigint, integer, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** A workspace. */
export const workspaceColumns = {
  id: primary(uuid('workspace')),
  name: text,
  /** The number of the place where it was created: in another one, its rows count only if it has moved there. */
  createdIn: integer,
  createdAt: time,
  updatedAt: time,
  deletedAt: orNull(time),
  revision: bigint,
}
export type WorkspaceRow = RowOf<typeof workspaceColumns>
export const storedWorkspaceColumns = withMac(workspaceColumns)

export function workspaceMac(key: KeyObject, row: WorkspaceRow): Buffer {
  return rowMac(key, 'workspace', workspaceColumns, row)
}
