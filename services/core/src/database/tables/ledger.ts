import type { KeyObject } from 'node:crypto'
import { bigint, bytes, oneOf, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** The lock and the counters of a workspace. */
export const ledgerColumns = {
  workspaceId: primary(uuid('workspace')),
  status: oneOf(['OPEN', 'CLOSED', 'HALTED', 'MOVING']),
  walletCount: bigint,
  orderCount: bigint,
  holdCount: bigint,
  /** The number of limits. Without any, none is loaded for a posting. */
  limitCount: bigint,
  /** The position of the last event, and the MAC of the last row of the journal. */
  position: bigint,
  journalHead: bytes,
  lastPostedAt: time,
  haltReason: orNull(text),
  revision: bigint,
}
export type LedgerRow = RowOf<typeof ledgerColumns>
export const storedLedgerColumns = withMac(ledgerColumns)

export function ledgerMac(key: KeyObject, row: LedgerRow): Buffer {
  return rowMac(key, 'ledger', ledgerColumns, row)
}
