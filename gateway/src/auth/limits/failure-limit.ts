import type { ServerResponse } from 'node:http'
import { DomainError, type ErrorCode } from '@workspace-wallet/contract'
import { type Rate, setRateFields, type Tally } from './rate.ts'

/** Counts failed authentications per address, for all gateways together. The nonce store does. */
type FailureCounter = { countFailure(address: string): Promise<Tally> }

/** The codes of steps 1 to 6 of section 5.3, which count as failed authentication. */
const failureCodes: ReadonlySet<ErrorCode> = new Set([
  'GA2001',
  'GA2011',
  'GA2021',
  'GA2032',
  'GA2034',
  'GA2013',
  'GA2012',
])
const blockedLimit = 10_000

/**
 * The limit on failed authentications per address (docs/decisions/0011). Above it, failed requests get S029 instead of their
 * own code, without asking Redis. Requests with a valid signature still pass, also with a key that this gateway has to look up
 * first, because clients can share an address and must not be able to lock each other out.
 */
export class FailureLimit {
  readonly #rate: Rate
  readonly #counter: FailureCounter
  /** Addresses above the limit, and until when, on the clock of `performance.now()`. When it is full, the oldest is removed. */
  readonly #blocked = new Map<string, number>()

  constructor(rate: Rate, counter: FailureCounter) {
    this.#rate = rate
    this.#counter = counter
  }

  /** @throws DomainError S029 while the address is above the limit */
  check(address: string, response: ServerResponse): void {
    const until = this.#blocked.get(address)
    if (until === undefined) return
    const waitMs = until - performance.now()
    if (waitMs > 0) throw this.#limited(response, { remaining: 0, waitMs, fullMs: 0 })
    this.#blocked.delete(address)
  }

  /** Counts a failure. Always throws: the error itself, or S029 if the address is above the limit. */
  async answer(error: unknown, address: string, response: ServerResponse): Promise<never> {
    if (!(error instanceof DomainError) || !failureCodes.has(error.code)) throw error
    this.check(address, response)
    const tally = await this.#counter.countFailure(address).catch(() => null)
    // If the counter is unavailable, the error keeps its code.
    if (!tally) throw error
    if (tally.waitMs > 0) {
      if (this.#blocked.size >= blockedLimit) this.#blocked.delete(this.#blocked.keys().next().value!)
      this.#blocked.set(address, performance.now() + tally.waitMs)
      throw this.#limited(response, tally)
    }
    setRateFields(response, this.#rate, tally)
    throw error
  }

  #limited(response: ServerResponse, tally: Tally): DomainError {
    setRateFields(response, this.#rate, tally)
    return new DomainError('S029', { retryAfterSeconds: Math.ceil(tally.waitMs / 1000) })
  }
}
