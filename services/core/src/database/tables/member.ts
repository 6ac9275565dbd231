import type { KeyObject } from 'node:crypto'
import { bigint, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** A member of a workspace, also a removed one. */
export const memberColumns = {
  workspaceId: primary(uuid('workspace')),
  userId: primary(text),
  createdAt: time,
  removedAt: orNull(time),
  revision: bigint,
}
export type MemberRow = RowOf<typeof memberColumns>
export const storedMemberColumns = withMac(memberColumns)

export function memberMac(key: KeyObject, row: MemberRow): Buffer {
  return rowMac(key, 'member', memberColumns, row)
}
