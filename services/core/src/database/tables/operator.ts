import type { KeyObject } from 'node:crypto'
import { operatorRoles, operatorStatuses } from '@workspace-wallet/contract'
import { bigint, bytes, integer, oneOf, orNull, primary, text, time } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** An operator, with the hash of the token. */
export const operatorColumns = {
  name: primary(text),
  role: oneOf(operatorRoles),
  status: oneOf(operatorStatuses),
  tokenHash: bytes,
  tokenVersion: integer,
  expiresAt: orNull(time),
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type OperatorRow = RowOf<typeof operatorColumns>
export const storedOperatorColumns = withMac(operatorColumns)

export function operatorMac(key: KeyObject, row: OperatorRow): Buffer {
  return rowMac(key, 'operator', operatorColumns, row)
}
