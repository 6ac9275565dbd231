import type { Log } from '@workspace-wallet/runtime'

/** Reasons that are logged during one outage: texts of errors may vary without end. */
const reasonLimit = 10

/**
 * Logs when a part that the gateway depends on is lost and when it is back, not every request that fails meanwhile. A
 * further reason that shows during an outage is logged once.
 */
export class Availability {
  readonly #part: string
  readonly #log: Log
  readonly #reasons = new Set<string>()
  #lostAtMs = 0

  constructor(part: string, log: Log) {
    this.#part = part
    this.#log = log
  }

  lost(error: unknown): void {
    const reason = errorSummary(error)
    if (this.#reasons.size >= reasonLimit || this.#reasons.has(reason)) return
    if (this.#reasons.size === 0) this.#lostAtMs = performance.now()
    this.#reasons.add(reason)
    this.#log.warn({ err: error, reason }, `${this.#part} lost`)
  }

  back(): void {
    if (this.#reasons.size === 0) return
    this.#reasons.clear()
    this.#log.warn({ afterMs: Math.round(performance.now() - this.#lostAtMs) }, `${this.#part} back`)
  }
}

/** An error's message and those of its causes, as one line. */
export function errorSummary(error: unknown): string {
  const messages = new Set<string>()
  let cause: unknown = error
  for (let depth = 0; depth < 5 && cause !== undefined && cause !== null; depth++) {
    const { message, code, errors } = cause as { message?: string; code?: string; errors?: unknown[] }
    const text = message || code
    if (text) messages.add(text)
    // A name that has several addresses fails with one error for each.
    cause = (cause as { cause?: unknown }).cause ?? errors?.[0]
  }
  return messages.size > 0 ? [...messages].join(': ') : String(error)
}
