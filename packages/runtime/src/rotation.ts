/** After work that takes longer, in milliseconds, its sender pauses. Full batches take less. */
const briefMs = 15

/** What waits of a sender for a later iteration. */
type Waiting = { count: number; byConnection: Map<object, (() => void)[]> }

/**
 * Lets the work of each sender (a service token, or a workspace) on at most one body, or on one call that waited with others, begin in an
 * iteration of the event loop: it can take tens of milliseconds, and others must not wait for all that has arrived. After work that takes
 * long, that of its sender waits for as long again. The connections of a sender take turns.
 */
export class Rotation {
  /** By sender: from its first work on, until none waits. */
  readonly #waiting = new Map<string, Waiting>()

  /** Resolves when work of this sender may begin: at once, or in a later iteration. */
  next(sender: string, connection: object): Promise<void> | undefined {
    const waiting = this.#waiting.get(sender)
    if (!waiting) {
      const none = { count: 0, byConnection: new Map() }
      this.#waiting.set(sender, none)
      this.#continueAfter(sender, none)
      return undefined
    }
    return new Promise(resolve => {
      const own = waiting.byConnection.get(connection)
      if (own) own.push(resolve)
      else waiting.byConnection.set(connection, [resolve])
      waiting.count++
    })
  }

  /** How much work of a sender waits. */
  waitingOf(sender: string): number {
    return this.#waiting.get(sender)?.count ?? 0
  }

  /** Call it just before work begins. */
  #continueAfter(sender: string, waiting: Waiting): void {
    const startedAtMs = performance.now()
    // A tick that a microtask requests begins when all microtasks have ended, and with them the decoding and the validation.
    queueMicrotask(() =>
      process.nextTick(() => {
        const tookMs = performance.now() - startedAtMs
        const advance = () => this.#advance(sender, waiting)
        if (tookMs < briefMs) setImmediate(advance)
        else setTimeout(advance, tookMs)
      }),
    )
  }

  #advance(sender: string, waiting: Waiting): void {
    const [found] = waiting.byConnection
    if (!found) {
      this.#waiting.delete(sender)
      return
    }
    const [connection, own] = found
    const resolve = own.shift()!
    waiting.count--
    waiting.byConnection.delete(connection)
    // Behind the other connections.
    if (own.length > 0) waiting.byConnection.set(connection, own)
    this.#continueAfter(sender, waiting)
    resolve()
  }
}
