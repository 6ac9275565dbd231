import { type ErrorCode, errorTable } from '@workspace-wallet/core/contract'
import { Counter, type Registry } from 'prom-client'
import type { Log } from './log.ts'

/** One line for each key and code in this time; how many more there were follows at its end. */
const sampleMs = 10_000
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

/** Denied requests, counted by code and key, and sampled in the log. */
export class Denials {
  readonly #log: Log
  readonly #total: Counter
  readonly #keys = new Set<string>()
  /** By code and key: how many came after the one that was logged, and the last of them. */
  #sampled = new Map<string, { more: number; last: Denial }>()
  #timer: NodeJS.Timeout | undefined

  constructor(registry: Registry, log: Log) {
    this.#log = log
    this.#total = new Counter({
      name: 'gateway_denied_total',
      help: `Denied requests by code and API key: unknown for keys that do not exist, other past ${keyLimit} keys`,
      labelNames: ['code', 'key'],
      registers: [registry],
    })
  }

  /** Notes an answer, if it is a denial. */
  note(denial: Denial): void {
    const { code, apiKey } = denial
    if (!isDenial(code)) return
    const key = apiKey === undefined ? 'unknown' : this.#labelOf(apiKey)
    this.#total.inc({ code, key })
    const sample = this.#sampled.get(`${code} ${key}`)
    if (sample) {
      sample.more++
      sample.last = denial
      return
    }
    this.#sampled.set(`${code} ${key}`, { more: 0, last: denial })
    this.#log.warn({ ...denial, message: errorTable[code].message }, 'a request was denied')
    this.#timer ??= setTimeout(() => this.flush(), sampleMs).unref()
  }

  /** Ends the sample: tells how many more there were. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { more, last } of this.#sampled.values())
      if (more > 0) this.#log.warn({ ...last, count: more }, 'more requests were denied')
    this.#sampled = new Map()
  }

  #labelOf(apiKey: string): string {
    if (this.#keys.has(apiKey)) return apiKey
    if (this.#keys.size >= keyLimit) return 'other'
    this.#keys.add(apiKey)
    return apiKey
  }
}
