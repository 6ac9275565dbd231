import { DomainError } from '@workspace-wallet/contract'
import type { Tally } from '../limits/rate.ts'

/** How far a timestamp may be from server time, before or after, inclusive (section 8.2). */
export const toleranceSeconds = 60
/** How long a nonce is stored: longer than the window of 120 s plus the tolerance between clocks (section 8.2). */
export const nonceLifeMs = 180_000
/** How far the clocks of a gateway and the store may differ. A nonce is stored for more than twice this beyond the window. */
const clockToleranceSeconds = 10

/**
 * Whether a nonce was new. With a rate limit on keys, a new nonce comes with the state of the key's bucket; if that says to
 * wait, the nonce was not used up.
 */
export type Claim = { isNew: boolean; tally?: Tally }

/**
 * Stores the used nonces of each key, and counts for rate limits. Methods throw if the store is unavailable, so that no
 * request passes unchecked.
 */
export interface NonceStore {
  /**
   * Claims a nonce. Of any number of claims, exactly one finds it new. With a rate limit on keys, a request above the limit
   * does not claim its nonce.
   *
   * @param timestamp of the request, in seconds
   * @throws DomainError S002 if the nonce may have been used in an earlier generation of the store
   */
  claim(apiKey: string, nonce: string, timestamp: number): Promise<Claim>
  /** Whether a nonce was used, without claiming it. Throws like `claim`. */
  isUsed(apiKey: string, nonce: string, timestamp: number): Promise<boolean>
  /** Counts a failed authentication of an address. Call it only if failures are limited. */
  countFailure(address: string): Promise<Tally>
  /** Why nonces cannot be claimed now; null if they can. */
  fault(): Promise<string | null>
  close(): Promise<void>
}

/**
 * The highest timestamp, in seconds, of requests that may have been accepted before a generation began. Requests up to this
 * timestamp are rejected, because their nonces may be lost (docs/decisions/0007).
 *
 * @param beganAt in seconds, by the clock of the store
 */
export function fenceOf(beganAt: number, isFirst: boolean): number {
  return isFirst ? Number.NEGATIVE_INFINITY : beganAt + toleranceSeconds + clockToleranceSeconds
}

/**
 * Checks that the store has every nonce that a request with this timestamp may have used.
 *
 * @param nowSeconds by the clock of the store
 * @throws DomainError S002 if the timestamp is not above the fence; Error if the clocks differ too much
 */
export function checkFence(timestamp: number, fence: number, nowSeconds: number): void {
  if (timestamp <= fence) throw new DomainError('S002', { retryAfterSeconds: Math.max(1, fence + 1 - nowSeconds) })
  if (Math.abs(timestamp - nowSeconds) > toleranceSeconds + clockToleranceSeconds)
    throw new Error(
      `the clocks of this gateway and the nonce store differ by more than ${clockToleranceSeconds} s: synchronize them`,
    )
}
