/**
 * An item of a FairQueue. Past its deadline, on the clock of `performance.now()`, it is removed and `expire` is called.
 * `weight`: how many items it counts as. `sender`: whose items fill at most half of the queue together, whatever their keys.
 */
export type QueueItem = { deadlineMs: number; weight: number; sender?: string | null; expire: () => void }

type KeyQueue<Item> = { items: Item[]; weight: number }

/** The items of one key that wait, in order of arrival, and their total weight. */
export type Waiting<Item> = { readonly items: readonly Item[]; readonly weight: number }

/**
 * A queue that is bounded in length and in waiting time, and fair: keys (workspaces) take turns, and one key fills at most
 * half of the queue. A key with nothing in a full queue may still add an item, until the queue has twice its length: so a few keys
 * cannot keep the others out.
 */
export class FairQueue<Item extends QueueItem> {
  readonly #limit: number
  /** In the order of turns: a key that was served moves to the end. */
  readonly #queues = new Map<string, KeyQueue<Item>>()
  readonly #senders = new Map<string, number>()
  #size = 0

  /** @param limit total weight at which the queue is full, except for keys that have nothing in it */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The total weight of the items. */
  get size(): number {
    return this.#size
  }

  /** Each key that has items, in the order of turns. */
  get waiting(): readonly Waiting<Item>[] {
    return [...this.#queues.values()]
  }

  /** The total weight of the items of a sender, whatever their keys; 0 for null. */
  weightOf(sender: string | null): number {
    return sender === null ? 0 : (this.#senders.get(sender) ?? 0)
  }

  /** Whether an item can be added. */
  hasRoom(key: string, sender: string | null = null): boolean {
    const weight = this.#queues.get(key)?.weight ?? 0
    const limit = weight === 0 ? 2 * this.#limit : this.#limit
    return this.#size < limit && Math.max(weight, this.weightOf(sender)) < Math.max(1, this.#limit / 2)
  }

  /** Adds an item. Returns false, and adds nothing, if the queue is full. */
  add(key: string, item: Item): boolean {
    if (!this.hasRoom(key, item.sender)) return false
    const queue = this.#queues.get(key) ?? { items: [], weight: 0 }
    queue.items.push(item)
    queue.weight += item.weight
    this.#queues.set(key, queue)
    this.#count(item, item.weight)
    return true
  }

  remove(key: string, item: Item): void {
    const items = this.#queues.get(key)?.items ?? []
    if (items.includes(item)) this.#removeWhere(key, each => each === item)
  }

  /**
   * Takes items until their weight is at least `weight`: an equal share of each key, in order of arrival within a key.
   *
   * @param isTaken only items of such keys are taken
   */
  take(weight: number, isTaken: (waiting: Waiting<Item>) => boolean = () => true): Item[] {
    const taken: Item[] = []
    let left = weight
    const nowMs = performance.now()
    let keys = [...this.#queues].filter(([, queue]) => isTaken(queue))
    while (left > 0 && keys.length > 0) {
      const share = Math.max(1, Math.floor(left / keys.length))
      for (const [key, queue] of keys) {
        if (left <= 0) break
        const served = this.#serve(key, queue, Math.min(share, left))
        for (const item of served)
          if (item.deadlineMs > nowMs) {
            taken.push(item)
            left -= item.weight
          } else item.expire()
      }
      keys = keys.filter(([, { items }]) => items.length > 0)
    }
    return taken
  }

  /** Expires items past their deadline. Call it regularly: `take` may not be called while work is stuck. */
  sweep(): void {
    const nowMs = performance.now()
    for (const key of [...this.#queues.keys()])
      for (const item of this.#removeWhere(key, ({ deadlineMs }) => deadlineMs <= nowMs)) item.expire()
  }

  /** Removes the first items of a key until their weight is at least `weight`. The key moves to the end of the turns. */
  #serve(key: string, queue: KeyQueue<Item>, weight: number): Item[] {
    let served = 0
    let count = 0
    while (served < weight && count < queue.items.length) served += queue.items[count++]!.weight
    const items = queue.items.splice(0, count)
    queue.weight -= served
    for (const item of items) this.#count(item, -item.weight)
    this.#queues.delete(key)
    if (queue.items.length > 0) this.#queues.set(key, queue)
    return items
  }

  #removeWhere(key: string, isRemoved: (item: Item) => boolean): Item[] {
    const queue = this.#queues.get(key)!
    const removed = queue.items.filter(isRemoved)
    const weight = removed.reduce((sum, item) => sum + item.weight, 0)
    queue.items = queue.items.filter(item => !isRemoved(item))
    queue.weight -= weight
    for (const item of removed) this.#count(item, -item.weight)
    if (queue.items.length === 0) this.#queues.delete(key)
    return removed
  }

  #count({ sender = null }: Item, weight: number): void {
    this.#size += weight
    if (sender === null) return
    const ofSender = this.weightOf(sender) + weight
    if (ofSender === 0) this.#senders.delete(sender)
    else this.#senders.set(sender, ofSender)
  }
}
