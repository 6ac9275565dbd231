/** What waits. Past its deadline, on the clock of `performance.now()`, it is told so and nothing is done. */
export type Waiting = { deadlineMs: number; tooLate: () => void }

/**
 * A queue in which many wait for little: bounded in number and in time, and shared out. Whoever stands for a workspace
 * (`key`) takes turns with the others, and none fills more than half of it, so that a greedy one starves nobody.
 */
export class FairQueue<Entry extends Waiting> {
  readonly #limit: number
  /** In turn: a key that was served goes to the end. */
  readonly #queues = new Map<string, Entry[]>()
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#size
  }

  /** False when there is no room: then it does not wait. */
  add(key: string, entry: Entry): boolean {
    const queue = this.#queues.get(key) ?? []
    if (this.#size >= this.#limit || queue.length >= Math.max(1, this.#limit / 2)) return false
    queue.push(entry)
    this.#queues.set(key, queue)
    this.#size++
    return true
  }

  /** Takes one out that waits no longer. */
  remove(key: string, entry: Entry): void {
    const queue = this.#queues.get(key)
    const at = queue?.indexOf(entry) ?? -1
    if (!queue || at < 0) return
    queue.splice(at, 1)
    this.#size--
    if (queue.length === 0) this.#queues.delete(key)
  }

  /** The next ones: an equal share for each key that waits, in order of arrival within each. */
  take(count: number): Entry[] {
    const taken: Entry[] = []
    const now = performance.now()
    while (taken.length < count && this.#queues.size > 0) {
      const share = Math.max(1, Math.floor((count - taken.length) / this.#queues.size))
      for (const [key, queue] of [...this.#queues]) {
        if (taken.length >= count) break
        const served = queue.splice(0, Math.min(share, count - taken.length))
        this.#size -= served.length
        this.#queues.delete(key)
        if (queue.length > 0) this.#queues.set(key, queue)
        for (const entry of served)
          if (entry.deadlineMs > now) taken.push(entry)
          else entry.tooLate()
      }
    }
    return taken
  }

  /** Tells those who are too late: what is before them may be stuck for longer than they wait. */
  sweep(): void {
    const now = performance.now()
    for (const [key, queue] of this.#queues) {
      const late = queue.filter(({ deadlineMs }) => deadlineMs <= now)
      if (late.length === 0) continue
      const rest = queue.filter(({ deadlineMs }) => deadlineMs > now)
      this.#size -= late.length
      if (rest.length > 0) this.#queues.set(key, rest)
      else this.#queues.delete(key)
      for (const entry of late) entry.tooLate()
    }
  }
}
