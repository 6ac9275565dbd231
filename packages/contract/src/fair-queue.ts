/** An item of a FairQueue. Past its deadline, on the clock of `performance.now()`, it is removed and `expire` is called. */
export type QueueItem = { deadlineMs: number; expire: () => void }

/**
 * A queue that is bounded in length and in waiting time, and fair: keys (workspaces) take turns, and one key fills at most
 * half of the queue.
 */
export class FairQueue<Item extends QueueItem> {
  readonly #limit: number
  /** In the order of turns: a key that was served moves to the end. */
  readonly #queues = new Map<string, Item[]>()
  #size = 0

  /** @param limit maximum number of items */
  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#size
  }

  /** Whether an item can be added. */
  hasRoom(key: string): boolean {
    const length = this.#queues.get(key)?.length ?? 0
    return this.#size < this.#limit && length < Math.max(1, this.#limit / 2)
  }

  /** Adds an item. Returns false, and adds nothing, if the queue is full. */
  add(key: string, item: Item): boolean {
    if (!this.hasRoom(key)) return false
    const queue = this.#queues.get(key) ?? []
    queue.push(item)
    this.#queues.set(key, queue)
    this.#size++
    return true
  }

  remove(key: string, item: Item): void {
    const queue = this.#queues.get(key)
    const at = queue?.indexOf(item) ?? -1
    if (!queue || at < 0) return
    queue.splice(at, 1)
    this.#size--
    if (queue.length === 0) this.#queues.delete(key)
  }

  /** Takes up to `count` items: an equal share of each key, in order of arrival within a key. */
  take(count: number): Item[] {
    const taken: Item[] = []
    const nowMs = performance.now()
    while (taken.length < count && this.#queues.size > 0) {
      const share = Math.max(1, Math.floor((count - taken.length) / this.#queues.size))
      for (const [key, queue] of [...this.#queues]) {
        if (taken.length >= count) break
        const served = queue.splice(0, Math.min(share, count - taken.length))
        this.#size -= served.length
        this.#queues.delete(key)
        if (queue.length > 0) this.#queues.set(key, queue)
        for (const item of served)
          if (item.deadlineMs > nowMs) taken.push(item)
          else item.expire()
      }
    }
    return taken
  }

  /** Expires items past their deadline. Call it regularly: `take` may not be called while work is stuck. */
  sweep(): void {
    const nowMs = performance.now()
    for (const [key, queue] of this.#queues) {
      const expired = queue.filter(({ deadlineMs }) => deadlineMs <= nowMs)
      if (expired.length === 0) continue
      const rest = queue.filter(({ deadlineMs }) => deadlineMs > nowMs)
      this.#size -= expired.length
      if (rest.length > 0) this.#queues.set(key, rest)
      else this.#queues.delete(key)
      for (const item of expired) item.expire()
    }
  }
}
