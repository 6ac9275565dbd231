import { Decimal, DomainError, decimalsOf, idFromUuid, postingGraceMs } from '@workspace-wallet/contract'
import type { Entry, Transfer } from '../chain/transfer.ts'
import {
  type Decision,
  type LedgerState,
  type Posting,
  type PostingResult,
  refusal,
  unavailable,
  type WalletState,
} from './posting.ts'

/**
 * Applies postings to a ledger, in order. A pure function: it reads no clock and no database.
 *
 * The checks are in the order of section 4 of the specification: replay or T005, T004, W001 (source, target), W002, T003,
 * T002. S002 for a late posting, and GA2032 or S002 for a ledger that is not open, come after replay or T005. A refused
 * posting has no effect on the others. A posting that repeats an earlier one of the same batch is a replay, as if the
 * earlier one were already stored.
 *
 * @param now the database's clock: the time of the transfers
 * @param nowMs `performance.now()`, which is compared with the deadlines
 */
export function decide(ledger: LedgerState, postings: readonly Posting[], now: Date, nowMs: number): Decision {
  const wallets = new Map<string, WalletState>()
  const byBizId = new Map(ledger.byBizId)
  const byTransferId = new Map(ledger.byTransferId)
  const transfers: Transfer[] = []
  const entries: Entry[] = []
  let orderCount = ledger.orderCount
  // The times of a ledger never decrease, even when the clock is set back.
  const postedAt = now > ledger.lastPostedAt ? now : ledger.lastPostedAt

  const walletOf = (id: string): WalletState | undefined => wallets.get(id) ?? ledger.wallets.get(id)

  const results = postings.map((posting): PostingResult => {
    const earlier = posting.bizId === null ? undefined : byBizId.get(posting.bizId)
    const existing = earlier ?? byTransferId.get(posting.transferId)
    if (existing) {
      return isSamePosting(existing, posting)
        ? { kind: 'replayed', transfer: existing }
        : refusal(new DomainError('T005', { bizId: posting.bizId ?? idFromUuid('transfer', posting.transferId) }))
    }
    // By now the caller may have received S002 from another core, which means "not posted".
    if (nowMs > posting.deadlineMs + postingGraceMs) return unavailable()
    if (ledger.status === 'CLOSED') return refusal(new DomainError('GA2032'))
    if (ledger.status === 'HALTED') return refusal(new DomainError('S002', { retryAfterSeconds: 60 }))

    if (posting.sourceWalletId === posting.targetWalletId) return refusal(new DomainError('T004'))
    const source = walletOf(posting.sourceWalletId)
    if (source?.kind !== (posting.type === 'DEPOSIT' ? 'EXTERNAL' : 'CUSTOMER'))
      return refusal(new DomainError('W001', { field: 'sourceWalletId' }))
    const target = walletOf(posting.targetWalletId)
    if (target?.kind !== (posting.type === 'WITHDRAWAL' ? 'EXTERNAL' : 'CUSTOMER'))
      return refusal(new DomainError('W001', { field: 'targetWalletId' }))
    if (source.status !== 'ACTIVE')
      return refusal(new DomainError('W002', { field: 'sourceWalletId', status: source.status }))
    if (target.status !== 'ACTIVE')
      return refusal(new DomainError('W002', { field: 'targetWalletId', status: target.status }))
    if (source.currency !== posting.currency || target.currency !== posting.currency)
      return refusal(new DomainError('T003', { currency: posting.currency }))
    const amount = new Decimal(posting.amount)
    // Not `lessThan`, which is false for NaN: a balance that is not a number must be refused too.
    if (source.kind === 'CUSTOMER' && !source.balance.greaterThanOrEqualTo(amount))
      return refusal(new DomainError('T002'))

    const isOrder = posting.type === 'TRANSFER'
    const sourceAfter = addToBalance(source, amount.negated(), isOrder)
    const targetAfter = addToBalance(target, amount, isOrder)
    wallets.set(sourceAfter.id, sourceAfter)
    wallets.set(targetAfter.id, targetAfter)
    if (isOrder) orderCount += 1

    const { mayBePosted: _, deadlineMs: __, ...request } = posting
    const transfer: Transfer = {
      ...request,
      number: isOrder ? orderCount : null,
      sourceSequence: sourceAfter.sequence,
      targetSequence: targetAfter.sequence,
      createdAt: postedAt,
    }
    transfers.push(transfer)
    entries.push(entryOf(transfer, sourceAfter, 'OUT'), entryOf(transfer, targetAfter, 'IN'))
    if (transfer.bizId !== null) byBizId.set(transfer.bizId, transfer)
    byTransferId.set(transfer.transferId, transfer)
    return { kind: 'posted', transfer }
  })

  const { workspaceId, status, walletCount, haltReason, revision, mac, version } = ledger
  return {
    results,
    transfers,
    entries,
    wallets: Array.from(wallets.values(), wallet => ({
      ...wallet,
      updatedAt: postedAt,
      revision: wallet.revision + 1,
    })),
    ledger: {
      workspaceId,
      status,
      walletCount,
      orderCount,
      lastPostedAt: postedAt,
      haltReason,
      revision: revision + 1,
      mac,
      version,
    },
  }
}

/** Whether a posting repeats this transfer. Remark, caller and time may differ; amounts are compared as numbers. */
function isSamePosting(existing: Transfer, posting: Posting): boolean {
  return (
    existing.type === posting.type &&
    existing.sourceWalletId === posting.sourceWalletId &&
    existing.targetWalletId === posting.targetWalletId &&
    existing.currency === posting.currency &&
    new Decimal(existing.amount).equals(posting.amount)
  )
}

function addToBalance(wallet: WalletState, amount: Decimal, isOrder: boolean): WalletState {
  return {
    ...wallet,
    balance: wallet.balance.plus(amount),
    sequence: wallet.sequence + 1,
    orderCount: wallet.orderCount + (isOrder ? 1 : 0),
  }
}

function entryOf(transfer: Transfer, wallet: WalletState, direction: Entry['direction']): Entry {
  return {
    workspaceId: transfer.workspaceId,
    walletId: wallet.id,
    sequence: wallet.sequence,
    transferId: transfer.transferId,
    direction,
    amount: transfer.amount,
    balanceAfter: wallet.balance.toFixed(decimalsOf(wallet.currency)),
    orderCount: wallet.orderCount,
    createdAt: transfer.createdAt,
  }
}
