import type { Event, EventData, EventType } from './events.ts'
import type { Hold } from './holds.ts'
import { type Decimal, formatBalance } from './money.ts'
import type { TransferOrder } from './transfers.ts'
import type { FundingReceipt } from './wallets.ts'

/** The JSON of a value: decimals and times are strings. */
type PublicRecord<Value> = Value extends Date | Decimal
  ? string
  : Value extends object
    ? { [Name in keyof Value]: PublicRecord<Value[Name]> }
    : Value

export type EventRecord = PublicRecord<Event>

/** An order at the time of its transfer: without `reversedAmount`. */
export function completedOrderRecord(
  order: Omit<TransferOrder, 'reversedAmount'>,
): PublicRecord<Omit<TransferOrder, 'reversedAmount'>> {
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

/** The public record of an event: what the API returns, and what webhooks deliver. */
export function eventRecord({ eventId, position, type, timestamp, workspaceId, data }: Event): EventRecord {
  const toRecord = eventDataRecords[type] as (data: Event['data']) => EventRecord['data']
  const record = { eventId, position, type, timestamp: formatTime(timestamp), workspaceId, data: toRecord(data) }
  return record as EventRecord
}

const eventDataRecords: { [Type in EventType]: (data: EventData[Type]) => PublicRecord<EventData[Type]> } = {
  'transfer.completed': ({ transfer, balances: { source, target }, holdRemaining: remaining }) => ({
    transfer: completedOrderRecord(transfer),
    balances: {
      source: balanceAfterRecord(source, transfer.currency),
      target: balanceAfterRecord(target, transfer.currency),
    },
    holdRemaining: remaining && formatBalance(remaining, transfer.currency),
  }),
  'wallet.deposited': ({ funding, balances: { target }, holdRemaining: remaining }) => ({
    funding: fundingRecord(funding),
    balances: { target: balanceAfterRecord(target, funding.currency) },
    holdRemaining: remaining && formatBalance(remaining, funding.currency),
  }),
  'wallet.withdrawn': ({ funding, balances: { source }, holdRemaining: remaining }) => ({
    funding: fundingRecord(funding),
    balances: { source: balanceAfterRecord(source, funding.currency) },
    holdRemaining: remaining && formatBalance(remaining, funding.currency),
  }),
  'hold.created': ({ hold }) => ({ hold: holdRecord(hold) }),
  'hold.released': ({ hold }) => ({ hold: holdRecord(hold) }),
  'hold.expired': ({ hold }) => ({ hold: holdRecord(hold) }),
  'wallet.created': change => change,
  'wallet.frozen': change => change,
  'wallet.unfrozen': change => change,
  'wallet.closed': change => change,
}

function fundingRecord(funding: FundingReceipt): PublicRecord<FundingReceipt> {
  return { ...funding, createdAt: formatTime(funding.createdAt) }
}

function balanceAfterRecord(after: { walletId: string; sequence: number; balanceAfter: Decimal }, currency: string) {
  return { ...after, balanceAfter: formatBalance(after.balanceAfter, currency) }
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
