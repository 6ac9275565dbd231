import type { ServerResponse } from 'node:http'
import { DomainError, type ErrorCode } from '@workspace-wallet/contract'
import { type Rate, setRateFields, type Tally } from './rate.ts'

/** Counts a failed authentication of an address, for all gateways together: the nonce store. */
type FailureCounter = { countFailure(address: string): Promise<Tally> }

/** What counts as failed authentication: the codes of steps 1 to 6 of section 5.3. */
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
 * The limit on failed authentication, by address. What is over it is answered S029 in place of its own code, and costs
 * neither core nor Redis anything. Requests that are signed as they should be pass all the same: addresses are shared,
 * and nobody must be able to lock his neighbours out.
 */
export class FailureLimit {
  readonly #rate: Rate
  readonly #counter: FailureCounter
  /** Addresses over the limit, and until when, on the clock of performance.now(); the oldest go first. */
  readonly #blocked = new Map<string, number>()

  constructor(rate: Rate, counter: FailureCounter) {
    this.#rate = rate
    this.#counter = counter
  }

  /** @throws DomainError S029 while the address is over the limit */
  check(address: string, response: ServerResponse): void {
    const until = this.#blocked.get(address)
    if (until === undefined) return
    const waitMs = until - performance.now()
    if (waitMs > 0) throw this.#refusal(response, { remaining: 0, waitMs, fullMs: 0 })
    this.#blocked.delete(address)
  }

  /** Counts a failure, and throws what is to be answered: the error itself, or S029 once the address is over the limit. */
  async answer(error: unknown, address: string, response: ServerResponse): Promise<never> {
    if (!(error instanceof DomainError) || !failureCodes.has(error.code)) throw error
    this.check(address, response)
    const tally = await this.#counter.countFailure(address).catch(() => null)
    // While nobody can count, an error keeps its code.
    if (!tally) throw error
    if (tally.waitMs > 0) {
      if (this.#blocked.size >= blockedLimit) this.#blocked.delete(this.#blocked.keys().next().value!)
      this.#blocked.set(address, performance.now() + tally.waitMs)
      throw this.#refusal(response, tally)
    }
    setRateFields(response, this.#rate, tally)
    throw error
  }

  #refusal(response: ServerResponse, tally: Tally): DomainError {
    setRateFields(response, this.#rate, tally)
    return new DomainError('S029', { retryAfterSeconds: Math.ceil(tally.waitMs / 1000) })
  }
}
