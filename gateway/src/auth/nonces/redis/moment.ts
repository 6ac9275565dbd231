/**
 * A point in time on the monotonic clock and on the clock of the machine. The former stands still while the machine is suspended, and
 * the latter can be set back.
 */
export type Moment = { monotonicMs: number; wallMs: number }

export const never: Moment = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY }

export function currentMoment(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() }
}

/** The time since a moment, by the clock that says more. */
export function elapsedMs(since: Moment, until = currentMoment()): number {
  return Math.max(until.monotonicMs - since.monotonicMs, until.wallMs - since.wallMs)
}
