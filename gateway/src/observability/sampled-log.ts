import type { Log } from '@workspace-wallet/runtime'

/** One line of a kind is written in this time; how many more there were follows at its end. */
const sampleMs = 10_000
/** Kinds that are told apart in that time. */
const kindLimit = 100

type Line = { level: 'warn' | 'error'; fields: object; message: string; summary: string }

/**
 * Lines that anybody can cause without a valid signature. Of each kind the first is written, and after ten seconds one
 * that says how many more there were, with the fields of the last: strangers cannot fill a disk.
 */
export class SampledLog {
  readonly #log: Log
  #kinds = new Map<string, { more: number; last: Line }>()
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** @param kind of a bounded number; past a hundred they count as one */
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

  /** Says how many more there were, and begins anew. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const kinds = this.#kinds
    this.#kinds = new Map()
    for (const { more, last } of kinds.values())
      if (more > 0) this.#log[last.level]({ ...last.fields, count: more }, last.summary)
  }
}

const others = 'others'
