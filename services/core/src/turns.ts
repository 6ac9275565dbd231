import { DomainError } from '../contract/index.ts'

type Turn = { running: number; waiting: (() => void)[] }

/**
 * Turns of each workspace at slow work, lists above all: a few at a time, a few more that wait, and S002 past that.
 * So one workspace's lists never take all connections, and never all of the caller's patience.
 */
export class Turns {
  readonly #together: number
  readonly #waitingLimit: number
  readonly #turns = new Map<string, Turn>()

  constructor(together: number, waitingLimit: number) {
    this.#together = together
    this.#waitingLimit = waitingLimit
  }

  /** @throws DomainError S002 when too many wait already */
  async take<Result>(workspaceId: string, work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turns.get(workspaceId) ?? { running: 0, waiting: [] }
    this.#turns.set(workspaceId, turn)
    if (turn.running < this.#together) turn.running++
    else if (turn.waiting.length < this.#waitingLimit) await new Promise<void>(resolve => turn.waiting.push(resolve))
    else throw new DomainError('S002', { retryAfterSeconds: 1 })
    try {
      return await work()
    } finally {
      // Whoever waits takes over the place; with nobody waiting it is given back.
      const next = turn.waiting.shift()
      if (next) next()
      else if (--turn.running === 0) this.#turns.delete(workspaceId)
    }
  }
}
