import { type RefusalReport, refusalDetailLength, refusalsPerReport } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { type Log, SampledLog, shortened, waitAtMost } from '@workspace-wallet/runtime'
import { Counter, type Registry } from 'prom-client'

const reportMs = 1_000
/** Maximum number of calls of one key or address in a report, so that a flood of one does not hide the others. */
const perSender = 10
/** Maximum number of calls with the signature of one key in an hour. Core keeps 50,000 of all keys. */
const perKeyAndHour = 1_000
const hourMs = 3_600_000
/** Maximum number of calls without a valid signature in a report. The others are for those with one. */
const mostUnsigned = refusalsPerReport / 2
/** How long a gateway that stops waits for its last report. */
const lastReportMs = 2_000

/** A refused call. `describe` makes its sentence, which costs something, only if the call is kept. */
export type RefusedCall = Omit<RefusalReport, 'detail' | 'at'> & { describe: () => string }

/**
 * Reports refused calls to core, once a second, for operators who look for one. Nothing waits for it: what there is too much of, and
 * what core does not take, is dropped and counted.
 */
export class Refusals {
  readonly #core: CoreClient
  readonly #sampled: SampledLog
  readonly #dropped: Counter
  #kept: RefusalReport[] = []
  #unsigned = 0
  readonly #senders = new Map<string, number>()
  /** By key: calls with its signature since the hour began. */
  readonly #ofKeys = new Map<string, number>()
  #hourEndsMs = performance.now() + hourMs
  /** Dropped since the last report. */
  #droppedCount = 0
  #reporting: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(core: CoreClient, registry: Registry, log: Log) {
    this.#core = core
    this.#sampled = new SampledLog(log)
    this.#dropped = new Counter({
      name: 'gateway_refusals_dropped_total',
      help: 'Refused calls that were not reported to core, because there were too many or core did not take them',
      registers: [registry],
    })
  }

  start(): void {
    this.#timer = setInterval(() => void this.#report(), reportMs)
    this.#timer.unref()
  }

  /** Reports what is left, for `lastReportMs` at most. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    // The report that runs has calls that the last one does not.
    const reported = Promise.resolve(this.#reporting).then(() => this.#report())
    await waitAtMost(lastReportMs, reported)
    this.#sampled.flush()
  }

  record({ describe, ...call }: RefusedCall): void {
    const sender = (call.isSigned && call.apiKey) || call.address
    const ofSender = this.#senders.get(sender) ?? 0
    const isFull = call.isSigned ? this.#kept.length >= refusalsPerReport : this.#unsigned >= mostUnsigned
    if (isFull || ofSender >= perSender || this.#kept.length >= refusalsPerReport || !this.#takeOfHour(call)) {
      this.#drop(1)
      return
    }
    this.#senders.set(sender, ofSender + 1)
    if (!call.isSigned) this.#unsigned++
    this.#kept.push({ ...call, at: new Date(), detail: shortened(describe(), refusalDetailLength) })
  }

  /** Takes a place in the hour of a key; false if it has none left. Only keys that exist sign, so the map stays small. */
  #takeOfHour({ apiKey, isSigned }: Pick<RefusedCall, 'apiKey' | 'isSigned'>): boolean {
    if (!isSigned || apiKey === null) return true
    if (performance.now() >= this.#hourEndsMs) {
      this.#ofKeys.clear()
      this.#hourEndsMs = performance.now() + hourMs
    }
    const count = this.#ofKeys.get(apiKey) ?? 0
    if (count >= perKeyAndHour) return false
    this.#ofKeys.set(apiKey, count + 1)
    return true
  }

  #drop(count: number): void {
    this.#droppedCount += count
    this.#dropped.inc(count)
  }

  async #report(): Promise<void> {
    if (this.#reporting || (this.#kept.length === 0 && this.#droppedCount === 0)) return
    this.#reporting = this.#send()
    await this.#reporting
    this.#reporting = undefined
  }

  async #send(): Promise<void> {
    const [refusals, dropped] = [this.#kept, this.#droppedCount]
    this.#kept = []
    this.#unsigned = 0
    this.#senders.clear()
    this.#droppedCount = 0
    try {
      await this.#core.refusals.report.mutate({ refusals, dropped })
    } catch (error) {
      this.#drop(refusals.length)
      this.#droppedCount += dropped
      const message = 'core did not take the report of refused calls'
      this.#sampled.write('refusals', { level: 'warn', fields: { err: error }, message, summary: `${message} again` })
    }
  }
}
