import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type InstanceReport, instanceFaultLength, instanceReportMs } from '@workspace-wallet/contract'
import type { Log } from './create-log.ts'
import { SampledLog } from './sampled-log.ts'
import { shortened } from './shortened.ts'
import { waitAtMost } from './wait-at-most.ts'

/** How long a program that stops waits until it is said to leave. */
const leaveMs = 2_000
/** When an instance with a fault is reported again, or one whose report failed: most faults of a program that starts end at once. */
const faultyReportMs = 1_000

export type InstanceReporterOptions = {
  version: string
  /** What the instance knows of its own health. */
  health: () => Promise<Pick<InstanceReport, 'fault' | 'waiting' | 'unhealthyCores'>>
  send: (report: InstanceReport) => Promise<unknown>
  leave: (instance: Pick<InstanceReport, 'instanceId'>) => Promise<unknown>
  log: Log
}

/**
 * Reports this process every ten seconds, and every second while it has a fault, for operators who look at the state of the service.
 * Nothing waits for it, and a report that fails is only logged.
 */
export class InstanceReporter {
  readonly instanceId = randomUUID()
  readonly #options: InstanceReporterOptions
  readonly #sampled: SampledLog
  #reporting: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: InstanceReporterOptions) {
    this.#options = options
    this.#sampled = new SampledLog(options.log)
  }

  start(): void {
    this.#reporting = this.#report()
  }

  /** Says that this instance stops, so that it is no longer listed. Waits `leaveMs` at most. Without `start`, nothing happens. */
  async close(): Promise<void> {
    if (this.#isClosed || !this.#reporting) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    const { instanceId } = this
    // A report that arrives later would list the instance again.
    const left = this.#reporting.then(() => this.#options.leave({ instanceId }))
    await waitAtMost(
      leaveMs,
      left.catch(error => this.#failed(error)),
    )
    this.#sampled.flush()
  }

  /** One at a time: a slow core gets no further report meanwhile. */
  async #report(): Promise<void> {
    const fault = await this.#send().catch(error => {
      this.#failed(error)
      return 'not reported'
    })
    if (this.#isClosed) return
    const next = () => {
      this.#reporting = this.#report()
    }
    this.#timer = setTimeout(next, fault === null ? instanceReportMs : faultyReportMs).unref()
  }

  /** Returns the fault that it has reported. */
  async #send(): Promise<string | null> {
    const { version, health, send } = this.#options
    const { fault, ...figures } = await health()
    await send({
      instanceId: this.instanceId,
      host: hostName(),
      version,
      uptimeMs: Math.round(performance.now()),
      fault: fault === null ? null : shortened(fault, instanceFaultLength),
      ...figures,
    })
    return fault
  }

  #failed(error: unknown): void {
    const message = 'this instance could not be reported'
    this.#sampled.write('report', { level: 'warn', fields: { err: error }, message, summary: `${message} again` })
  }
}

/** In visible ASCII characters: a host may have any name. */
function hostName(): string {
  return (
    hostname()
      .replaceAll(/[^!-~]/g, '?')
      .slice(0, 64) || 'unknown'
  )
}
