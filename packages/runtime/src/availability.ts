import type { Log } from './create-log.ts'

/** Maximum number of reasons logged during one outage, because error texts can vary without limit. */
const reasonLimit = 10

/**
 * Logs when a dependency of the gateway becomes unavailable and available again, but not every request that fails meanwhile.
 * Each reason is logged once during an outage.
 */
export class Availability {
  readonly #dependency: string
  readonly #log: Log
  readonly #reasons = new Set<string>()
  #lostAtMs = 0

  constructor(dependency: string, log: Log) {
    this.#dependency = dependency
    this.#log = log
  }

  lost(error: unknown): void {
    const reason = errorSummary(error)
    if (this.#reasons.size >= reasonLimit || this.#reasons.has(reason)) return
    if (this.#reasons.size === 0) this.#lostAtMs = performance.now()
    this.#reasons.add(reason)
    this.#log.warn({ err: error, reason }, `${this.#dependency} is unavailable`)
  }

  restored(): void {
    if (this.#reasons.size === 0) return
    this.#reasons.clear()
    this.#log.warn(
      { afterMs: Math.round(performance.now() - this.#lostAtMs) },
      `${this.#dependency} is available again`,
    )
  }
}

/** Characters of a message in a summary. */
const longestMessage = 1_000

/** The messages of an error and its causes, as one line. */
export function errorSummary(error: unknown): string {
  const messages = new Set<string>()
  let cause: unknown = error
  for (let depth = 0; depth < 5 && cause !== undefined && cause !== null; depth++) {
    const { message, code, errors } = cause as { message?: string; code?: string; errors?: unknown[] }
    const text = message || code
    // A peer may have written it.
    if (text) messages.add(text.slice(0, longestMessage))
    // A host name with several addresses fails with one error for each.
    cause = (cause as { cause?: unknown }).cause ?? errors?.[0]
  }
  return messages.size > 0 ? [...messages].join(': ') : String(error)
}
