import { Decimal, DomainError, formatBalance, type Uuid } from '@workspace-wallet/contract'
import { isKey } from '../../audit/actors.ts'
import type { LimitRow } from '../../database/tables/spending-limit.ts'
import type { LimitState } from './state.ts'

/** A wallet as the stored subject of limits. The subject of a key is its actor, `key:ak_…`. IDs of wallets are UUIDs. */
export function walletSubject(walletId: Uuid<'wallet'>): string {
  return `wallet:${walletId}`
}

/** The subjects whose limits apply when an actor spends from a wallet. */
export function subjectsOf(actor: string, walletId: Uuid<'wallet'>): string[] {
  return isKey(actor) ? [actor, walletSubject(walletId)] : [walletSubject(walletId)]
}

/** The key of a limit in the state of its ledger. */
export function limitKey({ subject, currency }: Pick<LimitRow, 'subject' | 'currency'>): string {
  return `${subject} ${currency}`
}

/** Whether a limit has not been cleared. */
export function isSet({ perTransfer, perDay }: Pick<LimitRow, 'perTransfer' | 'perDay'>): boolean {
  return perTransfer !== null || perDay !== null
}

/** T008 if a transfer of this amount exceeds one of these limits. */
export function exceededByTransfer(limits: readonly LimitState[], amount: Decimal, postedAt: Date): DomainError | null {
  return firstOf(limits, limit => exceedsPerTransfer(limit, amount) ?? exceedsPerDay(limit, amount, postedAt))
}

/** T008 if a hold exceeds what a single transfer may capture of it. Captures count towards the day when they are made. */
export function exceededByHold(limits: readonly LimitState[], amount: Decimal): DomainError | null {
  return firstOf(limits, limit => exceedsPerTransfer(limit, amount))
}

function firstOf(limits: readonly LimitState[], check: (limit: LimitState) => DomainError | null): DomainError | null {
  for (const limit of limits) {
    const exceeded = check(limit)
    if (exceeded) return exceeded
  }
  return null
}

// Not `greaterThan`, which is false for NaN: a limit that is not a number must reject too.
function exceedsPerTransfer({ perTransfer, currency }: LimitState, amount: Decimal): DomainError | null {
  if (perTransfer === null || amount.lessThanOrEqualTo(perTransfer)) return null
  const limit = formatBalance(perTransfer, currency)
  return new DomainError('T008', { limit, remaining: limit, resetsAt: null })
}

function exceedsPerDay(row: LimitState, amount: Decimal, postedAt: Date): DomainError | null {
  const { perDay, currency } = row
  if (perDay === null) return null
  const left = perDay.minus(spentOn(row, dayOf(postedAt)))
  if (amount.lessThanOrEqualTo(left)) return null
  return new DomainError('T008', {
    limit: formatBalance(perDay, currency),
    // An operator may have lowered the limit below what was spent already.
    remaining: formatBalance(Decimal.max(left, 0), currency),
    resetsAt: endOfDay(postedAt).toISOString(),
  })
}

/** The limit after a transfer of this amount. */
export function withSpent(limit: LimitState, amount: Decimal, postedAt: Date): LimitState {
  const day = dayOf(postedAt)
  return { ...limit, day, spent: spentOn(limit, day).plus(amount) }
}

/** What was spent on a day. A limit stores this only for the last day on which something was spent. */
export function spentOn(limit: Pick<LimitRow, 'day' | 'spent'>, day: string): Decimal {
  return limit.day === day ? limit.spent : new Decimal(0)
}

/** The day of a time, such as 2026-11-22. Days are of UTC. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

/** The next midnight, UTC. */
export function endOfDay(time: Date): Date {
  return new Date(Date.parse(dayOf(time)) + 24 * 3600_000)
}
