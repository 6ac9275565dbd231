import { Decimal, DomainError, decimalsOf } from '@workspace-wallet/contract'
import { currencyMismatch } from './currency-mismatch.ts'
import { drawOnHold } from './decide-hold.ts'
import type { Draft } from './draft.ts'
import { isSameWallet, type MadeTransfer, type Posting, type Reversal } from './requests.ts'
import { exceededByTransfer } from './spending.ts'
import type { WalletState } from './state.ts'

/**
 * A transfer, deposit or withdrawal, with or without the capture of a hold. The checks are in the order of section 4 of the
 * specification: T004, W001 (source, target), H001, H004, W002, H002, T003, H003, T008, T002.
 */
export function decidePosting(draft: Draft, posting: Posting): MadeTransfer | DomainError {
  const { type, currency, draw } = posting
  if (isSameWallet(posting.sourceWalletId, posting.targetWalletId)) return new DomainError('T004')
  const source = draft.wallet(posting.sourceWalletId)
  if (source?.kind !== (type === 'DEPOSIT' ? 'EXTERNAL' : 'CUSTOMER'))
    return new DomainError('W001', { field: 'sourceWalletId' })
  const target = draft.wallet(posting.targetWalletId)
  if (target?.kind !== (type === 'WITHDRAWAL' ? 'EXTERNAL' : 'CUSTOMER'))
    return new DomainError('W001', { field: 'targetWalletId' })
  const hold = draw ? draft.hold(draw.hold) : null
  if (hold === undefined) return new DomainError('H001')
  if (hold && hold.walletId !== source.id) return new DomainError('H004')
  const inactive = inactiveOf(source, target)
  if (inactive) return inactive
  if (hold && hold.status !== 'OPEN') return new DomainError('H002', { status: hold.status })
  const mismatch =
    currencyMismatch(currency, source, 'sourceWalletId') ?? currencyMismatch(currency, target, 'targetWalletId')
  if (mismatch) return mismatch
  const amount = new Decimal(posting.amount)
  if (hold && !hold.remaining.greaterThanOrEqualTo(amount))
    return new DomainError('H003', { remaining: hold.remaining.toFixed(decimalsOf(currency)) })
  if (source.kind === 'CUSTOMER') {
    // Before T002, so that a stolen key cannot find out balances above its limits.
    const refused =
      exceededByTransfer(draft.limitsOf(posting.actor, source), amount, draft.postedAt) ??
      (hold ? null : draft.missingFunds(source, amount))
    if (refused) return refused
  }

  const drawn = hold ? drawOnHold(draft, hold, amount, draw!.keepsRest) : null
  return draft.addTransfer({
    ...termsOf(posting),
    type,
    sourceWalletId: source.id,
    targetWalletId: target.id,
    holdId: drawn?.id ?? null,
    holdRemaining: drawn?.remaining.toFixed(decimalsOf(currency)) ?? null,
    reversesId: null,
    reversedTotal: null,
  })
}

/** A reversal: T001, T006, W002, T003, T007, T008, T002. */
export function decideReversal(draft: Draft, reversal: Reversal): MadeTransfer | DomainError {
  const { currency } = reversal
  const original = draft.transfer(reversal.reverses)
  if (original?.type !== 'TRANSFER') return new DomainError('T001')
  if (original.reversesId !== null) return new DomainError('T006')
  const source = draft.wallet(original.targetWalletId)!
  const target = draft.wallet(original.sourceWalletId)!
  const inactive = inactiveOf(source, target)
  if (inactive) return inactive
  const mismatch = currencyMismatch(currency, original, 'reversesTransferId')
  if (mismatch) return mismatch
  const amount = new Decimal(reversal.amount)
  const reversed = draft.reversedAmount(original)
  const remaining = new Decimal(original.amount).minus(reversed)
  if (!remaining.greaterThanOrEqualTo(amount))
    return new DomainError('T007', { remaining: remaining.toFixed(decimalsOf(currency)) })
  const refused =
    exceededByTransfer(draft.limitsOf(reversal.actor, source), amount, draft.postedAt) ??
    draft.missingFunds(source, amount)
  if (refused) return refused
  return draft.addTransfer({
    ...termsOf(reversal),
    type: 'TRANSFER',
    sourceWalletId: source.id,
    targetWalletId: target.id,
    holdId: null,
    holdRemaining: null,
    reversesId: original.transferId,
    reversedTotal: reversed.plus(amount).toFixed(decimalsOf(currency)),
  })
}

function inactiveOf(source: WalletState, target: WalletState): DomainError | null {
  if (source.status !== 'ACTIVE') return new DomainError('W002', { field: 'sourceWalletId', status: source.status })
  if (target.status !== 'ACTIVE') return new DomainError('W002', { field: 'targetWalletId', status: target.status })
  return null
}

/** What a command and its transfer have in common. */
function termsOf({ transferId, bizId, amount, currency, remark, reference, batchId, ...caller }: Posting | Reversal) {
  const { actor, requestId, clientAddress } = caller
  return { transferId, bizId, amount, currency, remark, reference, batchId, actor, requestId, clientAddress }
}
