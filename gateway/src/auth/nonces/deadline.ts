/**
 * Gives up on answers that are late. All wait equally long, so the oldest stands first and one slow timer watches
 * them: a timer for each would cost more than the command.
 */
export class Deadline {
  readonly #deadlineMs: number
  readonly #sentence: string
  readonly #pending = new Set<{ sinceMs: number; reject: (error: Error) => void }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deadlineMs: number, sentence: string) {
    this.#deadlineMs = deadlineMs
    this.#sentence = sentence
  }

  inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const entry = { sinceMs: performance.now(), reject }
      this.#pending.add(entry)
      this.#timer ??= setInterval(() => this.#giveUp(), this.#deadlineMs / 8)
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

  #giveUp(): void {
    const nowMs = performance.now()
    for (const entry of this.#pending) {
      if (nowMs - entry.sinceMs < this.#deadlineMs) return
      this.#pending.delete(entry)
      entry.reject(new Error(this.#sentence))
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
