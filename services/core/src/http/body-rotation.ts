/** After a body that takes longer, in milliseconds, those of its token pause. Full batches of a gateway take less. */
const briefMs = 15

/** The bodies of a token that wait for a later iteration. */
type Waiting = { count: number; byConnection: Map<object, (() => void)[]> }

/**
 * Decodes at most one body of each service token in an iteration of the event loop: that and the validation of its calls can take
 * tens of milliseconds, and the callers of other tokens must not wait for all bodies that have arrived. After a body that takes long, those
 * of its token wait for as long again. The connections of a token take turns.
 */
export class BodyRotation {
  /** By token: from its first body on, until none waits. */
  readonly #waiting = new Map<string, Waiting>()

  /** Resolves when a body of this token may be decoded: at once, or in a later iteration. */
  next(token: string, connection: object): Promise<void> | undefined {
    const waiting = this.#waiting.get(token)
    if (!waiting) {
      const none = { count: 0, byConnection: new Map() }
      this.#waiting.set(token, none)
      this.#continueAfter(token, none)
      return undefined
    }
    return new Promise(resolve => {
      const own = waiting.byConnection.get(connection)
      if (own) own.push(resolve)
      else waiting.byConnection.set(connection, [resolve])
      waiting.count++
    })
  }

  /** How many bodies of a token wait. */
  waitingOf(token: string): number {
    return this.#waiting.get(token)?.count ?? 0
  }

  /** Call it just before a body is decoded. */
  #continueAfter(token: string, waiting: Waiting): void {
    const startedAtMs = performance.now()
    // A tick that a microtask requests begins when all microtasks have ended, and with them the decoding and the validation.
    queueMicrotask(() =>
      process.nextTick(() => {
        const tookMs = performance.now() - startedAtMs
        const advance = () => this.#advance(token, waiting)
        if (tookMs < briefMs) setImmediate(advance)
        else setTimeout(advance, tookMs)
      }),
    )
  }

  #advance(token: string, waiting: Waiting): void {
    const [found] = waiting.byConnection
    if (!found) {
      this.#waiting.delete(token)
      return
    }
    const [connection, own] = found
    const resolve = own.shift()!
    waiting.count--
    waiting.byConnection.delete(connection)
    // Behind the other connections.
    if (own.length > 0) waiting.byConnection.set(connection, own)
    this.#continueAfter(token, waiting)
    resolve()
  }
}
