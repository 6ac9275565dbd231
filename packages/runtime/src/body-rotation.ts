/** After a body that takes longer, in milliseconds, those of its sender pause. Full batches take less. */
const briefMs = 15

/** The bodies of a sender that wait for a later iteration. */
type Waiting = { count: number; byConnection: Map<object, (() => void)[]> }

/**
 * Lets at most one body of each sender (a service token, or a workspace) be decoded in an iteration of the event loop: that and the
 * validation can take tens of milliseconds, and others must not wait for all bodies that have arrived. After a body that takes long,
 * those of its sender wait for as long again. The connections of a sender take turns.
 */
export class BodyRotation {
  /** By sender: from its first body on, until none waits. */
  readonly #waiting = new Map<string, Waiting>()

  /** Resolves when a body of this sender may be decoded: at once, or in a later iteration. */
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

  /** How many bodies of a sender wait. */
  waitingOf(sender: string): number {
    return this.#waiting.get(sender)?.count ?? 0
  }

  /** Call it just before a body is decoded. */
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
