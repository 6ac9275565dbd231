import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { SampledLog } from '@workspace-wallet/runtime'
import { Counter, type Registry } from 'prom-client'

/** API keys with a time series of their own. Denials of further keys are counted together. */
const keyLimit = 1_000

/** What is logged of a denied request. It contains no secret, signature or nonce, and no text that the caller chose. */
export type FailedRequest = {
  code: ErrorCode
  /** Undefined if the key does not exist. */
  apiKey: string | undefined
  address: string
  requestId: string
}

/** Whether a code denies access: the codes of sections 5.3 and 5.4, and S029. */
export function isDenial(code: ErrorCode): boolean {
  return code.startsWith('GA') || code === '50090201' || code === 'S029'
}

/** Counts denied requests by code and key. Samples them in the log, with all other failed requests without a valid signature. */
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
   * Records a failed request, if it was denied or had no valid signature.
   *
   * @param isSigned whether the request had a valid signature
   */
  record(failure: FailedRequest, isSigned: boolean): void {
    const { code, apiKey } = failure
    if (!isDenial(code) && isSigned) return
    const key = apiKey === undefined ? 'unknown' : this.#labelOf(apiKey)
    if (isDenial(code)) {
      this.#total.inc({ code, key })
      this.#write(`${code} ${key}`, failure, 'a request was denied', 'more requests were denied')
    } else {
      this.#write(`${code} ${key}`, failure, 'a request was rejected', 'more requests were rejected')
    }
  }

  #write(kind: string, failure: FailedRequest, message: string, summary: string): void {
    const fields = { ...failure, message: errorTable[failure.code].message }
    this.#sampled.write(kind, { level: 'warn', fields, message, summary })
  }

  #labelOf(apiKey: string): string {
    if (this.#keys.has(apiKey)) return apiKey
    if (this.#keys.size >= keyLimit) return 'other'
    this.#keys.add(apiKey)
    return apiKey
  }
}
