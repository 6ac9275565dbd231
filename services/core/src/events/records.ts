import {
  completedOrderRecord,
  Decimal,
  decimalsOf,
  type Event,
  formatBalance,
  formatTime,
  fundingRecord,
  type HoldStatus,
  holdRecord,
  type Id,
  idFromUuid,
  type Uuid,
  type WalletStatus,
} from '@workspace-wallet/contract'
import { changerOf } from '../audit/actors.ts'
import { toHold } from '../holds/operations.ts'
import { toCompletedOrder } from '../transfers/operations.ts'
import { toReceipt } from '../wallets/operations.ts'
import type { StoredEntry, StoredEvent, StoredTransfer } from './queries.ts'

/** The event of stored rows that were checked. */
export function toEvent(workspaceId: Id<'workspace'>, stored: StoredEvent): Event {
  return 'transfer' in stored ? transferEvent(workspaceId, stored) : journalEvent(workspaceId, stored)
}

function transferEvent(workspaceId: Id<'workspace'>, { transfer, source, target }: StoredTransfer): Event {
  const { transferId, type, currency } = transfer
  const eventOf = <Type extends Event['type']>(type: Type) => commonOf(type, workspaceId, transferId, transfer)
  const holdRemaining = transfer.holdRemaining === null ? null : balanceText(transfer.holdRemaining, currency)
  const sourceBalance = { sequence: transfer.sourceSequence, balanceAfter: balanceText(source.balanceAfter, currency) }
  const targetBalance = { sequence: transfer.targetSequence, balanceAfter: balanceText(target.balanceAfter, currency) }
  if (type === 'TRANSFER') {
    const order = completedOrderRecord(toCompletedOrder(transfer))
    const balances = {
      source: { walletId: order.sourceWalletId, ...sourceBalance },
      target: { walletId: order.targetWalletId, ...targetBalance },
    }
    return { ...eventOf('transfer.completed'), data: { transfer: order, balances, holdRemaining } }
  }
  const funding = fundingRecord(toReceipt({ ...transfer, type }))
  const { walletId } = funding
  if (type === 'DEPOSIT') {
    const balances = { target: { walletId, ...targetBalance } }
    return { ...eventOf('wallet.deposited'), data: { funding, balances, holdRemaining } }
  }
  const balances = { source: { walletId, ...sourceBalance } }
  return { ...eventOf('wallet.withdrawn'), data: { funding, balances, holdRemaining } }
}

function journalEvent(workspaceId: Id<'workspace'>, { entry, hold, wallet }: StoredEntry): Event {
  const { type, walletId, status, actor } = entry
  if (type === 'hold.created' || type === 'hold.released' || type === 'hold.expired')
    return { ...commonOf(type, workspaceId, entry.id, entry), data: { hold: holdOf(entry, hold!) } }
  const { bizId, currency } = wallet!
  const changed = { walletId: idFromUuid('wallet', walletId), bizId, currency, status: status as WalletStatus }
  return { ...commonOf(type, workspaceId, entry.id, entry), data: { ...changed, by: changerOf(actor) } }
}

/** The fields that all events have, in the order in which they are written. */
function commonOf<Type extends Event['type']>(
  type: Type,
  workspaceId: Id<'workspace'>,
  id: Uuid<'transfer' | 'event'>,
  { position, createdAt }: { position: number; createdAt: Date },
) {
  return {
    eventId: idFromUuid('event', id as Uuid<'event'>),
    position,
    type,
    timestamp: formatTime(createdAt),
    workspaceId,
  }
}

/** The hold after the event. An expired hold was changed when it expired, not when the expiry was written. */
function holdOf(
  { holdId, walletId, captured, remaining, status, createdAt }: StoredEntry['entry'],
  hold: NonNullable<StoredEntry['hold']>,
) {
  const { expiresAt } = hold
  return holdRecord(
    toHold({
      ...hold,
      id: holdId!,
      walletId,
      captured: new Decimal(captured!),
      remaining: new Decimal(remaining!),
      status: status as HoldStatus,
      updatedAt: status === 'EXPIRED' ? expiresAt : createdAt,
    }),
  )
}

/** A balance of PostgreSQL usually has the decimals of its currency already. */
function balanceText(balance: string, currency: string): string {
  const point = balance.indexOf('.')
  const isComplete = point > 0 && balance.length - point - 1 === decimalsOf(currency)
  return isComplete ? balance : formatBalance(new Decimal(balance), currency)
}
