/**
 * Limits the attempts in progress. Workspaces that wait take turns, one workspace gets at most an eighth of the slots, and a
 * quarter of them is for workspaces without any, so that slow receivers of a few workspaces do not delay the others.
 */
export class AttemptSlots {
  readonly #limit: number
  readonly #workspaceLimit: number
  readonly #reserved: number
  readonly #used = new Map<string, number>()
  /** In the order of turns: a workspace that was served moves to the end. */
  readonly #waiting = new Map<string, (() => void)[]>()
  inUse = 0

  constructor(limit: number) {
    this.#limit = limit
    this.#workspaceLimit = Math.ceil(limit / 8)
    this.#reserved = Math.floor(limit / 4)
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, waiters) => sum + waiters.length, 0)
  }

  /** Resolves with true when the workspace has a slot, which it must release; with false if `signal` is aborted before. */
  acquire(workspaceId: string, signal: AbortSignal): Promise<boolean> {
    return new Promise(resolve => {
      if (signal.aborted) return resolve(false)
      const leave = () => {
        this.#setWaiters(
          workspaceId,
          this.#waiting.get(workspaceId)!.filter(each => each !== serve),
        )
        resolve(false)
      }
      const serve = () => {
        signal.removeEventListener('abort', leave)
        resolve(true)
      }
      signal.addEventListener('abort', leave)
      this.#setWaiters(workspaceId, [...(this.#waiting.get(workspaceId) ?? []), serve])
      this.#serve()
    })
  }

  #setWaiters(workspaceId: string, waiters: (() => void)[]): void {
    if (waiters.length > 0) this.#waiting.set(workspaceId, waiters)
    else this.#waiting.delete(workspaceId)
  }

  release(workspaceId: string): void {
    const used = this.#used.get(workspaceId)! - 1
    if (used > 0) this.#used.set(workspaceId, used)
    else this.#used.delete(workspaceId)
    this.inUse--
    this.#serve()
  }

  #mayHave(workspaceId: string): boolean {
    const used = this.#used.get(workspaceId) ?? 0
    return used === 0 || (used < this.#workspaceLimit && this.#limit - this.inUse > this.#reserved)
  }

  #serve(): void {
    while (this.inUse < this.#limit) {
      const next = [...this.#waiting.keys()].find(each => this.#mayHave(each))
      if (next === undefined) return
      const [serve, ...others] = this.#waiting.get(next)!
      this.#waiting.delete(next)
      this.#setWaiters(next, others)
      this.#used.set(next, (this.#used.get(next) ?? 0) + 1)
      this.inUse++
      serve!()
    }
  }
}
