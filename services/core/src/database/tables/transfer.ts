import { transferTypes } from '@workspace-wallet/contract'
import { bigint, bytes, decimalText, named, oneOf, orNull, primary, text, time, uuid } from './columns.ts'

/** A transfer, in the order in which its digest covers all columns. */
export const transferColumns = {
  workspaceId: primary(uuid('workspace')),
  transferId: primary(named('id', uuid('transfer'))),
  type: oneOf(transferTypes),
  /** The client's idempotency key; null when the client sent none. */
  bizId: orNull(text),
  reference: orNull(text),
  /** The place among the events of the workspace, from 1. */
  position: bigint,
  /** How many of the workspace's transfers, up to this one, are between wallets. */
  orderCount: bigint,
  amount: decimalText,
  currency: text,
  sourceWalletId: uuid('wallet'),
  targetWalletId: uuid('wallet'),
  sourceSequence: bigint,
  targetSequence: bigint,
  remark: orNull(text),
  /** The hold that the transfer captures, and what remains of it afterwards. */
  holdId: orNull(uuid('hold')),
  holdRemaining: orNull(decimalText),
  /** The order that the transfer reverses, and the sum of that order's reversals up to this one. */
  reversesId: orNull(uuid('transfer')),
  reversedTotal: orNull(decimalText),
  /** The first transfer of its batch. */
  batchId: orNull(uuid('transfer')),
  actor: text,
  requestId: text,
  clientAddress: orNull(text),
  createdAt: time,
}

/** What both of its flows say besides. */
export const entryColumns = {
  sourceBalance: decimalText,
  sourceOrderCount: bigint,
  sourceMac: bytes,
  targetBalance: decimalText,
  targetOrderCount: bigint,
  targetMac: bytes,
}
