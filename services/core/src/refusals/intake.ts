import type { RefusalReport } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Queryable } from '../database/statement.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { insertRefusals, removeOldRefusals } from './queries.ts'

/** How many refused calls of one gateway are stored in a second. Whoever has its token cannot make core write more. */
const storedPerSecond = 200
/** A report counts at most this many as not kept. Otherwise a few reports could bring the counter to where it cannot count single ones. */
const droppedPerReport = 1_000_000
/** After how many stored reports old calls are removed. */
const reportsPerRemoval = 20

/** Stores what gateways report, within limits, and removes what is old. */
export class RefusalIntake {
  readonly #reads: Queryable
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #now: () => number
  /** For each gateway: the second in which it reported last, and what was stored in it. */
  readonly #stored = new Map<string, { second: number; count: number }>()
  #reports = 0

  /** @param now a monotonic clock, in milliseconds */
  constructor(reads: Queryable, log: Log, metrics: Metrics, now = () => performance.now()) {
    this.#reads = reads
    this.#log = log
    this.#metrics = metrics
    this.#now = now
  }

  /** @param dropped what the gateway has not kept */
  async store(gateway: string, refusals: readonly RefusalReport[], dropped: number): Promise<void> {
    const kept = refusals.slice(0, this.#take(gateway, refusals.length))
    this.#metrics.droppedRefusals(Math.min(dropped, droppedPerReport) + refusals.length - kept.length)
    if (kept.length === 0) return
    await insertRefusals(this.#reads, gateway, kept)
    if (++this.#reports % reportsPerRemoval === 0)
      await removeOldRefusals(this.#reads).catch(error =>
        this.#log.warn({ err: error }, 'old refused calls could not be removed'),
      )
  }

  /** How many of these calls may be stored now. */
  #take(gateway: string, count: number): number {
    const second = Math.floor(this.#now() / 1000)
    const last = this.#stored.get(gateway)
    const before = last?.second === second ? last.count : 0
    const taken = Math.min(count, storedPerSecond - before)
    this.#stored.set(gateway, { second, count: before + taken })
    return taken
  }
}
