import type { EndedVerification, LastVerifications } from '../records.ts'

export type Intervals = {
  /** From the start of a verification to that of the next one. */
  everyMs: number
  wholeEveryMs: number
}

/** What to run now. `since`: the digest of where the last sound verification ended, for an incremental one. */
export type PlannedVerification = { since: string | null }

/** A whole verification that found violations is repeated after this time, not at each interval. */
const repeatedAfterMs = 86_400_000

/**
 * The verification that is due; null for none. Verifications take at most half of the time: the next one waits as long as the last one
 * took, whatever the intervals are.
 */
export function planVerification(
  { whole, incremental, continued }: LastVerifications,
  { everyMs, wholeEveryMs }: Intervals,
  now: Date,
): PlannedVerification | null {
  const isPast = (last: EndedVerification | null, intervalMs: number) =>
    last === null ||
    now.getTime() >=
      Math.max(last.startedAt.getTime() + intervalMs, 2 * last.endedAt.getTime() - last.startedAt.getTime())
  if (!isPast(whole, 0) || !isPast(incremental, 0)) return null
  if (isPast(whole, whole?.ok ? wholeEveryMs : Math.min(wholeEveryMs, repeatedAfterMs))) return { since: null }
  if (!isPast(whole, everyMs) || !isPast(incremental, everyMs)) return null
  if (continued?.ends) return { since: continued.ends }
  // Operators ran the last sound one, which no other can continue.
  return whole?.ok ? { since: null } : null
}
