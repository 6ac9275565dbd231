/**
 * Rejects promises that take too long. All have the same deadline, so the oldest is always first, and one interval timer
 * suffices: a timer for each would cost more than the command.
 */
export class Deadline {
  readonly #deadlineMs: number
  readonly #message: string
  readonly #pending = new Set<{ sinceMs: number; reject: (error: Error) => void }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deadlineMs: number, message: string) {
    this.#deadlineMs = deadlineMs
    this.#message = message
  }

  /** The same promise, rejected at the deadline. */
  inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { sinceMs: performance.now(), reject }
      this.#pending.add(entry)
      this.#timer ??= setInterval(() => this.#rejectLate(), this.#deadlineMs / 8)
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
    const nowMs = performance.now()
    for (const entry of this.#pending) {
      if (nowMs - entry.sinceMs < this.#deadlineMs) return
      this.#pending.delete(entry)
      entry.reject(new Error(this.#message))
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
