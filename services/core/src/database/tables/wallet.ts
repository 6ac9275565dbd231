import type { KeyObject } from 'node:crypto'
import { walletStatuses } from '@workspace-wallet/contract'
import { bigint, bytes, decimal, oneOf, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** A wallet: its terms, its balance, and the end of its chain of flows. */
export const walletColumns = {
  workspaceId: primary(uuid('workspace')),
  id: primary(uuid('wallet')),
  number: orNull(bigint),
  kind: oneOf(['CUSTOMER', 'EXTERNAL']),
  bizId: orNull(text),
  name: text,
  currency: text,
  status: oneOf(walletStatuses),
  frozenBy: orNull(oneOf(['WORKSPACE', 'OPERATOR'])),
  balance: decimal,
  /** The sum that open holds reserve, and a time that is not after the first of them expires. */
  held: decimal,
  heldUntil: orNull(time),
  sequence: bigint,
  orderCount: bigint,
  holdCount: bigint,
  head: bytes,
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type WalletRow = RowOf<typeof walletColumns>
export const storedWalletColumns = withMac(walletColumns)

export function walletMac(key: KeyObject, row: WalletRow): Buffer {
  return rowMac(key, 'wallet', walletColumns, row)
}
