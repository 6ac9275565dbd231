import { createHmac, type KeyObject } from 'node:crypto'
import { type EventType, eventTypes, type Uuid } from '@workspace-wallet/contract'

const transferEvents = ['transfer.completed', 'wallet.deposited', 'wallet.withdrawn'] as const
type TransferEvent = (typeof transferEvents)[number]

/** The event types of the journal: every event of a workspace that is not a transfer. */
export type JournalType = Exclude<EventType, TransferEvent>
export const journalTypes = eventTypes.filter(
  (type): type is JournalType => !transferEvents.includes(type as TransferEvent),
)

/** A row of the journal, without its MAC. */
export type JournalEntry = {
  workspaceId: Uuid<'workspace'>
  /** The place among the events of the workspace, from 1. */
  position: number
  /** How many of the workspace's orders have lower positions. */
  orderCount: number
  id: Uuid<'event'>
  type: JournalType
  walletId: Uuid<'wallet'>
  /** The hold, and what is captured and what remains of it after the event; null for events of wallets. */
  holdId: Uuid<'hold'> | null
  captured: string | null
  remaining: string | null
  /** The status of the hold or the wallet after the event. */
  status: string
  actor: string
  requestId: string
  clientAddress: string | null
  createdAt: Date
}

/** The journal head of a workspace without journal entries. */
export const emptyJournalHead = Buffer.alloc(0)

/**
 * The MAC of a journal entry: HMAC-SHA256 under the chain key, over the entry and the MAC of the entry before it. The
 * content begins with a word that no other content under this key begins with.
 */
export function journalMac(key: KeyObject, entry: JournalEntry, previous: Buffer): Buffer {
  const content = JSON.stringify([
    'journal entry',
    entry.workspaceId,
    entry.position,
    entry.orderCount,
    entry.id,
    entry.type,
    entry.walletId,
    entry.holdId,
    entry.captured,
    entry.remaining,
    entry.status,
    entry.actor,
    entry.requestId,
    entry.clientAddress,
    entry.createdAt.getTime(),
    previous.toString('hex'),
  ])
  return createHmac('sha256', key).update(content).digest()
}
