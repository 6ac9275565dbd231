import type { KeyObject } from 'node:crypto'
import { holdStatuses } from '@workspace-wallet/contract'
import { bigint, decimal, decimalText, oneOf, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** A part of the balance of a wallet that is reserved. */
export const holdColumns = {
  workspaceId: primary(uuid('workspace')),
  id: primary(uuid('hold')),
  number: bigint,
  walletNumber: bigint,
  bizId: text,
  walletId: uuid('wallet'),
  currency: text,
  amount: decimalText,
  captured: decimal,
  remaining: decimal,
  status: oneOf(holdStatuses),
  expiresAt: time,
  reference: orNull(text),
  remark: orNull(text),
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type HoldRow = RowOf<typeof holdColumns>
export const storedHoldColumns = withMac(holdColumns)

export function holdMac(key: KeyObject, row: HoldRow): Buffer {
  return rowMac(key, 'hold', holdColumns, row)
}
