/**
 * Limits the attempts in progress. Workspaces that wait take turns, one workspace gets at most an eighth of the slots, and a
 * quarter of them is for workspaces without any: however many receivers are slow, they do not delay those of other workspaces.
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

  /** Resolves with true when the workspace has a slot, which it must release; with false once `over` is aborted before. */
  acquire(workspaceId: string, over: AbortSignal): Promise<boolean> {
    return new Promise(resolve => {
      if (over.aborted) return resolve(false)
      const leave = () => {
        this.#wait(
          workspaceId,
          this.#waiting.get(workspaceId)!.filter(each => each !== serve),
        )
        resolve(false)
      }
      const serve = () => {
        over.removeEventListener('abort', leave)
        resolve(true)
      }
      over.addEventListener('abort', leave)
      this.#wait(workspaceId, [...(this.#waiting.get(workspaceId) ?? []), serve])
      this.#serve()
    })
  }

  #wait(workspaceId: string, waiters: (() => void)[]): void {
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
      this.#wait(next, others)
      this.#used.set(next, (this.#used.get(next) ?? 0) + 1)
      this.inUse++
      serve!()
    }
  }
}
