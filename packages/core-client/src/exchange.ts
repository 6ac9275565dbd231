import type { AnswerLimits } from './answer-limits.ts'
import type { NoAnswerError } from './errors.ts'

/** What is needed of the connection that an exchange was written to. */
type Link = {
  readonly frames: number
  forget(exchange: Exchange): void
  destroy(failure: (exchange: Exchange) => NoAnswerError): void
}

/** `onAnswer`: called with core's answer to the call with this index. `onPart`: called after answers to some calls. */
export type ExchangeBatch = {
  body: Buffer
  calls: number
  onAnswer(at: number, answer: unknown): void
  onPart?(): void
}

/** A batch that was given to one core, until all its calls have answers, or it has an error. It ignores what happens later. */
export class Exchange {
  readonly batch: ExchangeBatch
  /** Resolves when all calls have answers. */
  readonly done: Promise<void>
  readonly sentAtMs = performance.now()
  /** The connection that it was written to. */
  link: Link | undefined
  /** Of its frame on that connection. */
  id = 0
  /** How many frames had arrived on that connection before. */
  framesBefore = 0
  /** What its answers may still have, if they come in parts. */
  left: AnswerLimits = { bytes: 0, values: 0 }
  /** How many ticks it may still take. */
  ticks: number
  isSettled = false
  readonly #onSettled: (exchange: Exchange) => void
  /** The indexes of the calls without an answer, in order. */
  readonly #unanswered: Set<number>
  #resolve!: () => void
  #reject!: (error: NoAnswerError) => void

  constructor(batch: ExchangeBatch, ticks: number, onSettled: (exchange: Exchange) => void) {
    this.batch = batch
    this.ticks = ticks
    this.#onSettled = onSettled
    this.#unanswered = new Set(Array(batch.calls).keys())
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Whether core may have begun it. */
  get sent(): boolean {
    return this.link !== undefined
  }

  /** Takes answers to some calls. False if it waits for no answer to one of them, or for none to the rest. */
  takePart({ calls, answers }: { calls: readonly unknown[]; answers: readonly unknown[] }): boolean {
    if (calls.length !== answers.length || calls.length === 0 || calls.length >= this.#unanswered.size) return false
    for (const [at, call] of calls.entries()) {
      if (!this.#unanswered.delete(call as number)) return false
      this.batch.onAnswer(call as number, answers[at])
    }
    this.batch.onPart?.()
    return true
  }

  /** Takes the answers to all other calls, in the order of these. */
  takeRest(answers: readonly unknown[]): void {
    if (!this.#settle()) return
    let at = 0
    for (const call of this.#unanswered) this.batch.onAnswer(call, answers[at++])
    this.#resolve()
  }

  fail(error: NoAnswerError): void {
    if (this.#settle()) this.#reject(error)
  }

  #settle(): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    this.#onSettled(this)
    return true
  }
}
