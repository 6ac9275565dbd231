import type { ServerResponse } from 'node:http'

/** A rate limit: `burst` requests at once, then one per interval. */
export type Rate = {
  /** The name of the policy in the RateLimit header fields. */
  name: 'key' | 'failed-authentication'
  /** A whole number, so that sums are exact. */
  intervalMicros: number
  burst: number
}

/** The limits that the operator set. By default there are none. */
export type Limits = {
  /** Requests of one API key. */
  key?: Rate | undefined
  /** Requests of one address that fail steps 1 to 6 of section 5.3. */
  failures?: Rate | undefined
}

/** The state of a bucket after a request. */
export type Tally = {
  remaining: number
  /** How long until the next request is allowed; 0 if this one was. */
  waitMs: number
  /** How long until the bucket is full. */
  fullMs: number
}

/**
 * Takes one from a bucket, unless it is empty: the generic cell rate algorithm, as in nonces/redis/scripts.ts.
 *
 * @param fullAt when the bucket is full again, in microseconds
 * @param now in microseconds, on the same clock
 */
export function take(
  { intervalMicros, burst }: Omit<Rate, 'name'>,
  fullAt: number,
  now: number,
): Tally & { fullAt: number } {
  const span = intervalMicros * burst
  // If the clock was set back, the wait is still limited to the time that an empty bucket needs.
  const from = Math.min(Math.max(fullAt, now), now + span)
  const after = from + intervalMicros
  const wait = after - span - now
  if (wait > 0) return { remaining: 0, waitMs: Math.ceil(wait / 1000), fullMs: Math.ceil((from - now) / 1000), fullAt }
  const remaining = Math.floor((span - (after - now)) / intervalMicros)
  return { remaining, waitMs: 0, fullMs: Math.ceil((after - now) / 1000), fullAt: after }
}

/** Sets the header fields RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11). */
export function setRateFields(response: ServerResponse, rate: Rate, { remaining, waitMs, fullMs }: Tally): void {
  const { name, burst, intervalMicros } = rate
  const windowSeconds = Math.ceil((intervalMicros * burst) / 1e6)
  response.setHeader('RateLimit-Policy', `"${name}";q=${burst};w=${windowSeconds}`)
  response.setHeader('RateLimit', `"${name}";r=${remaining};t=${Math.ceil((waitMs || fullMs) / 1000)}`)
}
