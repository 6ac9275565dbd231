import type { ServerResponse } from 'node:http'

/** So many at once, and then one every interval. */
export type Rate = {
  /** Names the policy in the RateLimit fields. */
  name: 'key' | 'failed-authentication'
  /** A whole number: sums of it stay exact. */
  intervalMicros: number
  burst: number
}

/** What an operator has limited; nothing unless it is set. */
export type Limits = {
  /** Requests under one key. */
  key?: Rate | undefined
  /** Requests of one address that fail steps 1 to 6. */
  failures?: Rate | undefined
}

/** How a bucket stands after one more was asked for. */
export type Tally = {
  remaining: number
  /** Until one more is to be had; 0 when this one was. */
  waitMs: number
  /** Until the whole burst is to be had again. */
  fullMs: number
}

/**
 * Takes one from a bucket: the generic cell rate algorithm, as in nonces/scripts.ts. Nothing is taken when it is empty.
 *
 * @param fullAt when the bucket is full again, in microseconds
 */
export function take(
  { intervalMicros, burst }: Omit<Rate, 'name'>,
  fullAt: number,
  now: number,
): Tally & { fullAt: number } {
  const span = intervalMicros * burst
  // A clock that was set back must not close the bucket for longer than it can be closed.
  const from = Math.min(Math.max(fullAt, now), now + span)
  const after = from + intervalMicros
  const wait = after - span - now
  if (wait > 0) return { remaining: 0, waitMs: Math.ceil(wait / 1000), fullMs: Math.ceil((from - now) / 1000), fullAt }
  const remaining = Math.floor((span - (after - now)) / intervalMicros)
  return { remaining, waitMs: 0, fullMs: Math.ceil((after - now) / 1000), fullAt: after }
}

/** The fields RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11). */
export function setRateFields(response: ServerResponse, rate: Rate, { remaining, waitMs, fullMs }: Tally): void {
  const { name, burst, intervalMicros } = rate
  const windowSeconds = Math.ceil((intervalMicros * burst) / 1e6)
  response.setHeader('RateLimit-Policy', `"${name}";q=${burst};w=${windowSeconds}`)
  response.setHeader('RateLimit', `"${name}";r=${remaining};t=${Math.ceil((waitMs || fullMs) / 1000)}`)
}
