/** How long a nonce is remembered: both sides of the 60 s window, and clocks that differ (section 8.2). */
export const nonceLifeMs = 180_000

/**
 * Remembers which nonces were used, per key. Both methods throw when the store cannot tell: a request is never let
 * through unchecked.
 */
export interface NonceStore {
  /** Uses a nonce up. False when it was used before: of any number of claims exactly one gets true. */
  claim(apiKey: string, nonce: string): Promise<boolean>
  /** Whether a nonce was used; leaves it as it is. */
  isUsed(apiKey: string, nonce: string): Promise<boolean>
  /** Whether the store answers now. */
  isReachable(): Promise<boolean>
  close(): Promise<void>
}
