import { z } from 'zod'
import { workspaceCall } from './caller.ts'
import { hold } from './holds.ts'
import { decimal } from './money.ts'
import { transferOrder } from './transfers.ts'
import { fundingReceipt, walletStatuses } from './wallets.ts'

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

/** A wallet after the transfer of an event. `sequence`: that of the flow. */
const balanceAfter = z.object({ walletId: z.string(), sequence: z.int(), balanceAfter: decimal })

/** What remains of the hold that a transfer drew on: 0 if the rest was released. Null without a hold. */
const holdRemaining = decimal.nullable()

/** Who changed a wallet: a client with an API key, or an operator. */
export const walletChangers = ['WORKSPACE', 'OPERATOR'] as const
export type WalletChanger = (typeof walletChangers)[number]

/** The schema of the data of each type of event. Records have the state of the time of the event. */
export const eventData = {
  /** `transfer`: the order. Its reversals are later events, so it has no `reversedAmount`. */
  'transfer.completed': z.object({
    transfer: transferOrder.omit({ reversedAmount: true }),
    balances: z.object({ source: balanceAfter, target: balanceAfter }),
    holdRemaining,
  }),
  'wallet.deposited': z.object({
    funding: fundingReceipt,
    balances: z.object({ target: balanceAfter }),
    holdRemaining,
  }),
  'wallet.withdrawn': z.object({
    funding: fundingReceipt,
    balances: z.object({ source: balanceAfter }),
    holdRemaining,
  }),
  'hold.created': z.object({ hold }),
  'hold.released': z.object({ hold }),
  'hold.expired': z.object({ hold }),
  'wallet.created': walletChange(),
  'wallet.frozen': walletChange(),
  'wallet.unfrozen': walletChange(),
  'wallet.closed': walletChange(),
} as const satisfies Record<EventType, z.ZodObject>
export type EventData = { [Type in EventType]: z.infer<(typeof eventData)[Type]> }

function walletChange() {
  return z.object({
    walletId: z.string(),
    bizId: z.string().nullable(),
    currency: z.string(),
    status: z.enum(walletStatuses),
    by: z.enum(walletChangers),
  })
}

function eventOf<const Type extends EventType>(type: Type) {
  return z.object({
    /** `evt_` and the UUID of the transfer or of the row of the journal. */
    eventId: z.string(),
    /** Positions of a workspace are 1…n in order of commit, without gaps. */
    position: z.int(),
    type: z.literal(type),
    timestamp: z.date(),
    workspaceId: z.string(),
    data: eventData[type],
  })
}

/** An event of the log of a workspace. */
export const event = z.discriminatedUnion('type', [
  eventOf('transfer.completed'),
  eventOf('wallet.deposited'),
  eventOf('wallet.withdrawn'),
  eventOf('hold.created'),
  eventOf('hold.released'),
  eventOf('hold.expired'),
  eventOf('wallet.created'),
  eventOf('wallet.frozen'),
  eventOf('wallet.unfrozen'),
  eventOf('wallet.closed'),
])
export type Event = z.infer<typeof event>

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
 * Events after a position. `last`: the `after` of the next call. `afterEventId`, `lastEventId`: the events at these
 * positions; null at 0, and `afterEventId` also for `head`, where `after` is `last`. `more`: whether the log continues
 * after `last`.
 */
export const eventPage = z.object({
  content: z.array(event),
  after: z.int(),
  afterEventId: z.string().nullable(),
  types: z.array(z.enum(eventTypes)),
  last: z.int(),
  lastEventId: z.string().nullable(),
  more: z.boolean(),
})
export type EventPage = z.infer<typeof eventPage>
