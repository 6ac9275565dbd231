import type { NoAnswerError } from './errors.ts'

/** What is needed of the connection that an exchange was written to. */
type Link = {
  readonly frames: number
  forget(exchange: Exchange): void
  destroy(failure: (exchange: Exchange) => NoAnswerError): void
}

/** A batch that was given to one core, until it has answers or an error. It ignores what happens later. */
export class Exchange {
  readonly body: Buffer
  readonly answers: Promise<unknown[]>
  readonly sentAtMs = performance.now()
  /** The connection that it was written to. */
  link: Link | undefined
  /** Of its frame on that connection. */
  id = 0
  /** How many frames had arrived on that connection before. */
  framesBefore = 0
  /** How many ticks it may still take. */
  ticks: number
  isSettled = false
  readonly #onSettled: (exchange: Exchange, isAnswered: boolean) => void
  #resolve!: (answers: unknown[]) => void
  #reject!: (error: NoAnswerError) => void

  constructor(body: Buffer, ticks: number, onSettled: (exchange: Exchange, isAnswered: boolean) => void) {
    this.body = body
    this.ticks = ticks
    this.#onSettled = onSettled
    this.answers = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Whether core may have begun it. */
  get sent(): boolean {
    return this.link !== undefined
  }

  succeed(answers: unknown[]): void {
    if (this.#settle(true)) this.#resolve(answers)
  }

  fail(error: NoAnswerError): void {
    if (this.#settle(false)) this.#reject(error)
  }

  #settle(isAnswered: boolean): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    this.#onSettled(this, isAnswered)
    return true
  }
}
