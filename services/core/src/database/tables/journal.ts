import { type EventType, eventTypes } from '@workspace-wallet/contract'
import { bigint, decimalText, oneOf, orNull, primary, text, time, uuid } from './columns.ts'

const transferEvents = ['transfer.completed', 'wallet.deposited', 'wallet.withdrawn'] as const
type TransferEvent = (typeof transferEvents)[number]

/** The event types of the journal: every event of a workspace that is not a transfer. */
export type JournalType = Exclude<EventType, TransferEvent>
export const journalTypes = eventTypes.filter(
  (type): type is JournalType => !transferEvents.includes(type as TransferEvent),
)

/** A row of the journal, in the order in which its MAC covers all columns. */
export const journalColumns = {
  workspaceId: primary(uuid('workspace')),
  /** The place among the events of the workspace, from 1. */
  position: primary(bigint),
  /** How many of the workspace's orders have lower positions. */
  orderCount: bigint,
  id: uuid('event'),
  type: oneOf(journalTypes),
  walletId: uuid('wallet'),
  /** The hold, and what is captured and what remains of it after the event; null for events of wallets. */
  holdId: orNull(uuid('hold')),
  captured: orNull(decimalText),
  remaining: orNull(decimalText),
  /** The status of the hold or the wallet after the event. */
  status: text,
  actor: text,
  requestId: text,
  clientAddress: orNull(text),
  createdAt: time,
}
