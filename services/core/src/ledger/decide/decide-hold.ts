import { Decimal, DomainError } from '@workspace-wallet/contract'
import { currencyMismatch } from './currency-mismatch.ts'
import type { Draft } from './draft.ts'
import { coreItself, type HoldCreation, type HoldRelease, type MadeHold } from './requests.ts'
import { exceededByHold } from './spending.ts'
import type { HoldState } from './state.ts'

const zero = new Decimal(0)

/** Expires the due holds of the wallets in the batch. From `expiresAt` on, a hold reserves nothing. */
export function expireDueHolds(draft: Draft): void {
  const due = draft.holds().filter(hold => hold.status === 'OPEN' && hold.expiresAt <= draft.postedAt)
  for (const hold of due.toSorted((a, b) => a.expiresAt.getTime() - b.expiresAt.getTime())) {
    // What a client reads from this time on, whether or not the hold has been written since.
    const expired = draft.changeHold(hold, { status: 'EXPIRED', remaining: zero, updatedAt: hold.expiresAt })
    draft.addEvent('hold.expired', expired, coreItself)
  }
  if (draft.ledger.hasMoreDueHolds) return
  for (const [walletId, next] of draft.ledger.nextExpiries) if (next) draft.setHeldUntil(walletId, next)
}

/** A new hold: W001, W002, T003, T008, T002. */
export function decideHoldCreation(draft: Draft, creation: HoldCreation): MadeHold | DomainError {
  const { holdId, bizId, amount, currency, expiresInSeconds, reference, remark } = creation
  const wallet = draft.wallet(creation.walletId)
  if (wallet?.kind !== 'CUSTOMER') return new DomainError('W001', { field: 'walletId' })
  if (wallet.status !== 'ACTIVE') return new DomainError('W002', { field: 'walletId', status: wallet.status })
  const mismatch = currencyMismatch(currency, wallet, 'walletId')
  if (mismatch) return mismatch
  const reserved = new Decimal(amount)
  const refused =
    exceededByHold(draft.limitsOf(creation.actor, wallet), reserved) ?? draft.missingFunds(wallet, reserved)
  if (refused) return refused
  const hold = draft.addHold({
    id: holdId,
    bizId,
    walletId: wallet.id,
    currency,
    amount,
    captured: zero,
    remaining: reserved,
    status: 'OPEN',
    expiresAt: new Date(draft.postedAt.getTime() + expiresInSeconds * 1000),
    reference,
    remark,
  })
  draft.addEvent('hold.created', hold, creation)
  return { hold }
}

/** The release of an open hold, on a frozen wallet too: H001, H002. */
export function decideHoldRelease(draft: Draft, release: HoldRelease): MadeHold | DomainError {
  const hold = draft.hold(release.hold)
  if (!hold) return new DomainError('H001')
  if (hold.status !== 'OPEN') return new DomainError('H002', { status: hold.status })
  const released = draft.changeHold(hold, { status: 'RELEASED', remaining: zero })
  draft.addEvent('hold.released', released, release)
  return { hold: released }
}

/** Captures an amount that the hold has left. The rest is released, unless it is kept. */
export function drawOnHold(draft: Draft, hold: HoldState, amount: Decimal, keepsRest: boolean): HoldState {
  const remaining = keepsRest ? hold.remaining.minus(amount) : zero
  const status = remaining.isZero() ? 'CAPTURED' : 'OPEN'
  return draft.changeHold(hold, { status, remaining, captured: hold.captured.plus(amount) })
}
