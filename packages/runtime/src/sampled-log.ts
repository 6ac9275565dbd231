import type { Log } from './create-log.ts'

/** Within this time, one line of a kind is written. A summary follows at its end. */
const sampleMs = 10_000
/** Maximum number of kinds within that time. */
const kindLimit = 100

/** `summary`: by default the message, after `more:`. */
type Line = { level: 'warn' | 'error'; fields: object; message: string; summary?: string }

/**
 * A log for lines that anybody can cause without a valid signature, so that nobody can fill the disk. The first line of each
 * kind is written at once. After ten seconds, a summary has the number of further lines and the fields of the last one.
 */
export class SampledLog {
  readonly #log: Log
  #kinds = new Map<string, { more: number; last: Line }>()
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** @param kind lines of one kind are sampled together; all kinds beyond a hundred count as one */
  write(kind: string, line: Line): void {
    const found = this.#kinds.get(kind) ?? (this.#kinds.size > kindLimit ? this.#kinds.get(others) : undefined)
    if (found) {
      found.more++
      found.last = line
      return
    }
    this.#kinds.set(this.#kinds.size < kindLimit ? kind : others, { more: 0, last: line })
    this.#log[line.level](line.fields, line.message)
    this.#timer ??= setTimeout(() => this.flush(), sampleMs).unref()
  }

  /** Writes the summaries and resets the counts. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const kinds = this.#kinds
    this.#kinds = new Map()
    for (const { more, last } of kinds.values())
      if (more > 0) this.#log[last.level]({ ...last.fields, count: more }, last.summary ?? `more: ${last.message}`)
  }
}

const others = 'others'
