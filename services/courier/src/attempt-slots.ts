/**
 * How many attempts, or leases, a workspace may have while `free` are unused: a seventh of these, and at least one. So a workspace alone stops
 * at an eighth of all, and others still find some.
 */
export function shareOf(free: number): number {
  return Math.max(1, Math.floor(free / 7))
}

/** Limits the attempts in progress. Workspaces that wait take turns. One that has its share gets no further slot until more are free. */
export class AttemptSlots {
  readonly #limit: number
  readonly #used = new Map<string, number>()
  /** In the order of turns: a workspace that was served moves to the end. */
  readonly #waiting = new Map<string, (() => void)[]>()
  inUse = 0

  constructor(limit: number) {
    this.#limit = limit
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
    return (this.#used.get(workspaceId) ?? 0) < shareOf(this.#limit - this.inUse)
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
