import { type KeyObject, randomUUID } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Queryable } from '../database/statement.ts'
import { KnownWebhooks } from './known-webhooks.ts'
import { type Except, findDueAmong, findDueWebhooks, type Place } from './queries.ts'

/** After this time, a call leases no more: the courier waits for those that it has. */
const searchMs = 1_000
/** How much of it is for the webhooks that are known, and for the check of rows, while there are forged ones. */
const knownMs = 400
const checkMs = 600
/** The most that the check, and then the search for others, take if a call has leased known webhooks, for which the courier waits. */
const withLeasesMs = 100
/** How often a call looks again at the same workspaces because some of their webhooks are damaged. */
const maxRounds = 8

type Leasing = {
  /** How many more webhooks are to be leased. */
  wanted(): number
  /** Webhooks that this core can neither lease nor make wait, and workspaces that the call leaves out. */
  except(): Except
  /**
   * Leases some of these webhooks, in their order, until a time by `performance.now()`. `damaged`: how many of them have to wait, because
   * nobody may lease them.
   */
  take(due: readonly Uuid<'webhook'>[], untilMs: number): Promise<{ damaged: number }>
}

/**
 * Finds the webhooks of a place that have events to deliver. Each call goes once around all workspaces that have webhooks, as far as
 * it gets in a second, and begins where the one before has ended.
 */
export class DueWebhooks {
  readonly #reads: Queryable
  readonly known: KnownWebhooks
  /** The last workspace that was looked at. Each core begins with another one. */
  #last = randomUUID() as Uuid<'workspace'>

  constructor(reads: Queryable, chainKey: KeyObject) {
    this.#reads = reads
    this.known = new KnownWebhooks(reads, chainKey)
  }

  /** Calls `take` with due webhooks until enough are leased. */
  async search(log: Log, leasing: Leasing): Promise<void> {
    const startedAtMs = performance.now()
    let hasLeased = false
    if (this.known.areNeeded) {
      const wanted = leasing.wanted()
      await this.#searchKnown(leasing, startedAtMs + knownMs)
      hasLeased = leasing.wanted() < wanted
      const checking = this.known.check(performance.now() + (hasLeased ? withLeasesMs : checkMs))
      await checking.catch(error => log.warn({ err: error }, 'the rows of webhooks could not be checked'))
    }
    const untilMs = hasLeased ? performance.now() + withLeasesMs : startedAtMs + searchMs
    const hasReachedAll = await this.#searchWorkspaces(leasing, untilMs)
    // The next call begins with the workspaces that were not reached. Known webhooks must not wait for it.
    if (!hasReachedAll && !hasLeased) this.known.need()
  }

  async #searchKnown(leasing: Leasing, untilMs: number): Promise<void> {
    for (const part of this.known.parts()) {
      if (leasing.wanted() <= 0) return
      const due = await findDueAmong(this.#reads, part, leasing.wanted(), leasing.except())
      if (due.length > 0) await leasing.take(due, untilMs)
      if (performance.now() >= untilMs) return
    }
  }

  /** Resolves with false if some workspaces were not reached in time. */
  async #searchWorkspaces(leasing: Leasing, untilMs: number): Promise<boolean> {
    let place: Place = { begin: this.#last, last: this.#last, hasWrapped: false }
    for (let round = 1; leasing.wanted() > 0; ) {
      const found = await findDueWebhooks(this.#reads, place, leasing.wanted(), leasing.except())
      const { damaged } = found.ids.length > 0 ? await leasing.take(found.ids, untilMs) : { damaged: 0 }
      if (damaged > 0 || found.isCrowded) this.known.need()
      const isOver = performance.now() >= untilMs
      // The damaged ones wait now, so that others of the same workspaces are found.
      if (damaged > 0 && round++ < maxRounds && !isOver) continue
      this.#last = found.last
      if (found.isComplete) return true
      if (isOver) return false
      place = { begin: place.begin, last: found.last, hasWrapped: found.hasWrapped }
    }
    return true
  }
}
