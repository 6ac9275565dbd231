import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import { Counter, type Registry } from 'prom-client'
import type { SampledLog } from './sampled-log.ts'

/** Keys with a series of their own in the metrics; denials of further ones are counted together. */
const keyLimit = 1_000

/** What is known of a denied request that may be told: no secret, signature or nonce, and no text of the caller's own. */
export type Denial = {
  code: ErrorCode
  /** Only of a key that exists. */
  apiKey: string | undefined
  address: string
  requestId: string
}

/** Whether a code says that a request was not allowed: those of section 5.3 and 5.4, and S029. */
export function isDenial(code: ErrorCode): boolean {
  return code.startsWith('GA') || code === '50090201' || code === 'S029'
}

/** Denied requests, counted by code and key. They are sampled in the log, as is whatever strangers were refused. */
export class Denials {
  readonly #sampled: SampledLog
  readonly #total: Counter
  readonly #keys = new Set<string>()

  constructor(registry: Registry, sampled: SampledLog) {
    this.#sampled = sampled
    this.#total = new Counter({
      name: 'gateway_denied_total',
      help: `Denied requests by code and API key: unknown for keys that do not exist, other past ${keyLimit} keys`,
      labelNames: ['code', 'key'],
      registers: [registry],
    })
  }

  /**
   * Notes a refusal, if it is a denial or that of a stranger.
   *
   * @param isSigned whether the request had a valid signature; without one it is a stranger's
   */
  note(refusal: Denial, isSigned: boolean): void {
    const { code, apiKey } = refusal
    if (!isDenial(code) && isSigned) return
    const key = apiKey === undefined ? 'unknown' : this.#labelOf(apiKey)
    if (isDenial(code)) {
      this.#total.inc({ code, key })
      this.#write(`${code} ${key}`, refusal, 'a request was denied', 'more requests were denied')
    } else {
      this.#write(`${code} ${key}`, refusal, 'a request was refused', 'more requests were refused')
    }
  }

  #write(kind: string, refusal: Denial, message: string, summary: string): void {
    const fields = { ...refusal, message: errorTable[refusal.code].message }
    this.#sampled.write(kind, { level: 'warn', fields, message, summary })
  }

  #labelOf(apiKey: string): string {
    if (this.#keys.has(apiKey)) return apiKey
    if (this.#keys.size >= keyLimit) return 'other'
    this.#keys.add(apiKey)
    return apiKey
  }
}
