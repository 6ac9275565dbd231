/**
 * Decodes at most one body of each service token in an iteration of the event loop: that and the validation of its calls can take
 * tens of milliseconds, and the callers of other tokens must not wait for all bodies that have arrived.
 */
export class BodyRotation {
  /** By token: the bodies that wait for a later iteration. A token is here from its first body on, until none waits. */
  readonly #waiting = new Map<string, (() => void)[]>()

  /** Resolves when a body of this token may be decoded: at once, or in a later iteration. */
  next(token: string): Promise<void> | undefined {
    const waiting = this.#waiting.get(token)
    if (waiting) return new Promise(resolve => waiting.push(resolve))
    this.#waiting.set(token, [])
    setImmediate(() => this.#advance(token))
    return undefined
  }

  #advance(token: string): void {
    const resolve = this.#waiting.get(token)!.shift()
    if (resolve) {
      resolve()
      setImmediate(() => this.#advance(token))
    } else this.#waiting.delete(token)
  }
}
