import type { Hold } from './holds.ts'
import { type Decimal, formatBalance } from './money.ts'
import type { TransferOrder } from './transfers.ts'
import type { FundingReceipt } from './wallets.ts'

/** The JSON of a value: decimals and times are strings. */
export type PublicRecord<Value> = Value extends Date | Decimal
  ? string
  : Value extends object
    ? { [Name in keyof Value]: PublicRecord<Value[Name]> }
    : Value

/** An order at the time of its transfer. Its reversals are later. */
export type CompletedOrder = Omit<TransferOrder, 'reversedAmount'>

export function completedOrderRecord(order: CompletedOrder): PublicRecord<CompletedOrder> {
  const { createdAt, updatedAt, completedAt } = order
  return {
    ...order,
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
    completedAt: formatTime(completedAt),
  }
}

export function holdRecord(hold: Hold): PublicRecord<Hold> {
  const { capturedAmount, remainingAmount, currency, expiresAt, createdAt, updatedAt } = hold
  return {
    ...hold,
    capturedAmount: formatBalance(capturedAmount, currency),
    remainingAmount: formatBalance(remainingAmount, currency),
    expiresAt: formatTime(expiresAt),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
  }
}

export function fundingRecord(funding: FundingReceipt): PublicRecord<FundingReceipt> {
  return { ...funding, createdAt: formatTime(funding.createdAt) }
}

let lastTimeMs = 0
let lastTimeText = new Date(0).toISOString()

/** A time as ISO 8601. The last one is kept: the times of an order, and of the transfers of a batch, are the same. */
export function formatTime(time: Date): string {
  if (time.getTime() !== lastTimeMs) {
    lastTimeText = time.toISOString()
    lastTimeMs = time.getTime()
  }
  return lastTimeText
}
