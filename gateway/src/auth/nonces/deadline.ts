/** How often pending promises are checked until their deadline. */
const ticksPerDeadline = 8

/**
 * Rejects promises that take too long. All have the same deadline, so the oldest is always first, and one interval timer
 * suffices: a timer for each would cost more than the command. Ticks are counted, not time: if this process stalls, it still
 * reads the responses that arrived meanwhile.
 */
export class Deadline {
  readonly #tickMs: number
  readonly #message: string
  readonly #pending = new Set<{ sinceTick: number; reject: (error: Error) => void }>()
  #timer: NodeJS.Timeout | undefined
  #tick = 0

  constructor(deadlineMs: number, message: string) {
    this.#tickMs = deadlineMs / ticksPerDeadline
    this.#message = message
  }

  /** The same promise, rejected at the deadline, or up to one tick later. */
  inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { sinceTick: this.#tick, reject }
      this.#pending.add(entry)
      this.#timer ??= setInterval(() => this.#rejectLate(), this.#tickMs)
      const settle = () => this.#pending.delete(entry)
      answer.then(
        value => {
          settle()
          resolve(value)
        },
        error => {
          settle()
          reject(error)
        },
      )
    })
  }

  #rejectLate(): void {
    this.#tick++
    for (const entry of this.#pending) {
      // The first tick may have followed at once.
      if (this.#tick - entry.sinceTick <= ticksPerDeadline) return
      this.#pending.delete(entry)
      entry.reject(new Error(this.#message))
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
