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

  /** Resolves when the workspace has a slot, which it must release. */
  acquire(workspaceId: string): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.set(workspaceId, [...(this.#waiting.get(workspaceId) ?? []), resolve])
      this.#serve()
    })
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
      const [resolve, ...others] = this.#waiting.get(next)!
      this.#waiting.delete(next)
      if (others.length > 0) this.#waiting.set(next, others)
      this.#used.set(next, (this.#used.get(next) ?? 0) + 1)
      this.inUse++
      resolve!()
    }
  }
}
