import { DomainError } from '@workspace-wallet/contract'
import type { Fault } from '../../observability/readiness.ts'
import type { Tally } from '../limits/rate.ts'

/** Section 8.2: a timestamp may be this far from server time, either side, exactly this much included. */
export const toleranceSeconds = 60
/** How long a nonce is remembered: both sides of the 60 s window, and clocks that differ (section 8.2). */
export const nonceLifeMs = 180_000
/** How far the clocks of a gateway and of the store may differ. A nonce outlives its request by more than twice this. */
const clockToleranceSeconds = 10

/**
 * Whether a nonce was new and, when requests under a key are limited and it was, how its bucket stands. A tally that
 * says to wait means that the nonce was not used up.
 */
export type Claim = { isNew: boolean; tally?: Tally }

/**
 * Remembers which nonces were used, per key, and counts what is limited. Methods throw when the store cannot tell: a
 * request is never let through unchecked.
 */
export interface NonceStore {
  /**
   * Uses a nonce up: of any number of claims exactly one finds it new. With a limit on keys the bucket is asked first,
   * and nothing is remembered of a request that is over it.
   *
   * @param timestamp that of the request, in seconds
   * @throws DomainError S002 when the nonce may have been used in an earlier generation of the store
   */
  claim(apiKey: string, nonce: string, timestamp: number): Promise<Claim>
  /** Whether a nonce was used; leaves it as it is. Throws as `claim` does. */
  isUsed(apiKey: string, nonce: string, timestamp: number): Promise<boolean>
  /** Counts a failed authentication of an address. Only where that is limited. */
  countFailure(address: string): Promise<Tally>
  /** Why nonces cannot be claimed now; null when they can. */
  fault(): Promise<Fault>
  close(): Promise<void>
}

/** Asks core whether this is the first generation ever: then no request was accepted before it began. */
export type IsFirstGeneration = (generationId: string) => Promise<boolean>

/**
 * The last timestamp, in seconds, that a request accepted before this generation began may have. Requests up to
 * it are refused: whether their nonces were used was forgotten. See docs/decisions.
 *
 * @param beganAt in seconds, on the clock of the store
 */
export function fenceOf(beganAt: number, isFirst: boolean): number {
  return isFirst ? Number.NEGATIVE_INFINITY : beganAt + toleranceSeconds + clockToleranceSeconds
}

/**
 * @param nowSeconds on the clock of the store
 * @throws DomainError S002 behind the fence; Error when the clocks differ by more than is allowed for
 */
export function checkFence(timestamp: number, fence: number, nowSeconds: number): void {
  if (timestamp <= fence) throw new DomainError('S002', { retryAfterSeconds: Math.max(1, fence + 1 - nowSeconds) })
  if (Math.abs(timestamp - nowSeconds) > toleranceSeconds + clockToleranceSeconds)
    throw new Error(`the clocks of this gateway and of the nonce store differ by over ${clockToleranceSeconds} s`)
}
