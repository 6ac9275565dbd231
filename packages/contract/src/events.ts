import { z } from 'zod'
import { workspaceCall } from './caller.ts'
import type { Hold } from './holds.ts'
import type { CompletedOrder, PublicRecord } from './records.ts'
import type { FundingReceipt, WalletStatus } from './wallets.ts'

export const eventTypes = [
  'transfer.completed',
  'wallet.deposited',
  'wallet.withdrawn',
  'hold.created',
  'hold.released',
  'hold.expired',
  'wallet.created',
  'wallet.frozen',
  'wallet.unfrozen',
  'wallet.closed',
] as const
export type EventType = (typeof eventTypes)[number]

/** Who changed a wallet: a client with an API key, or an operator. */
export const walletChangers = ['WORKSPACE', 'OPERATOR'] as const
export type WalletChanger = (typeof walletChangers)[number]

/** A wallet after the transfer of an event. `sequence`: that of the flow. */
type BalanceAfter = { walletId: string; sequence: number; balanceAfter: string }

/** `holdRemaining`: what remains of the hold that it drew on: 0 if the rest was released. Null without a hold. */
type TransferData = {
  /** The order. Its reversals are later events, so it has no `reversedAmount`. */
  transfer: PublicRecord<CompletedOrder>
  balances: { source: BalanceAfter; target: BalanceAfter }
  holdRemaining: string | null
}
type FundingData<Side extends 'source' | 'target'> = {
  funding: PublicRecord<FundingReceipt>
  balances: { [Name in Side]: BalanceAfter }
  holdRemaining: string | null
}
type HoldData = { hold: PublicRecord<Hold> }
type WalletChange = {
  walletId: string
  bizId: string | null
  currency: string
  status: WalletStatus
  by: WalletChanger
}

/** The data of each type of event. Records have the state of the time of the event. */
export type EventData = {
  'transfer.completed': TransferData
  'wallet.deposited': FundingData<'target'>
  'wallet.withdrawn': FundingData<'source'>
  'hold.created': HoldData
  'hold.released': HoldData
  'hold.expired': HoldData
  'wallet.created': WalletChange
  'wallet.frozen': WalletChange
  'wallet.unfrozen': WalletChange
  'wallet.closed': WalletChange
}

/**
 * An event of the log of a workspace, as the public API shows it and webhooks deliver it: amounts and times are text.
 * `eventId`: `evt_` and the UUID of the transfer or of the row of the journal. Positions of a workspace are 1…n in order of
 * commit, without gaps.
 */
export type Event = {
  [Type in EventType]: {
    eventId: string
    position: number
    type: Type
    timestamp: string
    workspaceId: string
    data: EventData[Type]
  }
}[EventType]

export const maxEvents = 500
export const defaultEvents = 100

/** Maximum number of positions that one call passes, so that a filter for a rare type does not make it slow. */
export const maxPassedPositions = 10_000

/** `after`: a position, or `head` for the end of the log. Without `types`: all. */
export const readEventsInput = workspaceCall.extend({
  after: z.union([z.int().min(0), z.literal('head')]),
  size: z.int().min(1).max(maxEvents).default(defaultEvents),
  types: z.array(z.enum(eventTypes)).max(eventTypes.length).default([]),
})
export type ReadEventsInput = z.infer<typeof readEventsInput>

/**
 * Events after a position. `content`: JSON text, an array of `Event`. Core serializes each event once, and the gateway passes the
 * text on, because 500 events take so long to serialize that other calls would wait. `eventsOf` parses it. `last`: the `after` of the next call. `afterEventId`, `lastEventId`: the events at these
 * positions; null at 0, and `afterEventId` also for `head`, where `after` is `last`. `more`: whether the log continues
 * after `last`.
 */
export const eventPage = z.object({
  content: z.string(),
  after: z.int(),
  afterEventId: z.string().nullable(),
  types: z.array(z.enum(eventTypes)),
  last: z.int(),
  lastEventId: z.string().nullable(),
  more: z.boolean(),
})
export type EventPage = z.infer<typeof eventPage>

/** The events of a page. */
export function eventsOf({ content }: Pick<EventPage, 'content'>): Event[] {
  return JSON.parse(content) as Event[]
}
