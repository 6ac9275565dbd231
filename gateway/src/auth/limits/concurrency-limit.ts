import { DomainError } from '@workspace-wallet/contract'

/** One for all: its stack trace would cost as much as the rest of the check. */
const tooMany = new DomainError('S002', { retryAfterSeconds: 1 })

/**
 * Limits the requests that the gateway handles at the same time. Further ones fail with S002 before their signature is
 * verified: without the limit, a gateway that receives more than it can handle would keep all of them waiting, longer and
 * longer. While the limit is reached, each workspace may have an equal share of it.
 */
export class ConcurrencyLimit {
  readonly #limit: number
  readonly #counts = new Map<string, number>()
  #total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Counts a request.
   *
   * @returns a function to call once it has been handled; further calls do nothing
   * @throws DomainError S002
   */
  enter(workspaceId: string): () => void {
    const count = this.#counts.get(workspaceId) ?? 0
    if (this.#total >= this.#limit && count >= this.#limit / this.#counts.size) throw tooMany
    this.#counts.set(workspaceId, count + 1)
    this.#total++
    let isInside = true
    return () => {
      if (isInside) this.#leave(workspaceId)
      isInside = false
    }
  }

  #leave(workspaceId: string): void {
    this.#total--
    const rest = this.#counts.get(workspaceId)! - 1
    if (rest > 0) this.#counts.set(workspaceId, rest)
    else this.#counts.delete(workspaceId)
  }
}
