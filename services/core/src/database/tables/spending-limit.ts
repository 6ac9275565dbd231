import type { KeyObject } from 'node:crypto'
import { bigint, day, decimal, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** What a key or a wallet may spend in a currency. A cleared limit has neither bound: its row is kept. */
export const limitColumns = {
  workspaceId: primary(uuid('workspace')),
  /** `key:ak_…`, or `wallet:` and a UUID. */
  subject: primary(text),
  currency: primary(text),
  perTransfer: orNull(decimal),
  perDay: orNull(decimal),
  /** The last day on which something was spent (UTC), and how much. */
  day: day,
  spent: decimal,
  /** The position of the ledger when counting began. Only later transfers count. */
  countedFrom: bigint,
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type LimitRow = RowOf<typeof limitColumns>
export const storedLimitColumns = withMac(limitColumns)

export function limitMac(key: KeyObject, row: LimitRow): Buffer {
  return rowMac(key, 'spending_limit', limitColumns, row)
}
