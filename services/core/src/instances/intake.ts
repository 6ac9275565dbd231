import { type InstanceKind, type InstanceReport, instancesPerName } from '@workspace-wallet/contract'
import { type Log, SampledLog, waitAtMost } from '@workspace-wallet/runtime'
import type { Queryable } from '../database/statement.ts'
import { storeInstances } from './queries.ts'

const writeMs = 1_000
/** How long core waits for the last write when it stops. */
const lastWriteMs = 2_000

/** Null: the instance has stopped. */
type Pending = { kind: InstanceKind; name: string; reports: Map<string, InstanceReport | null> }

/**
 * Keeps what instances report, and stores it once a second, on one connection. No caller waits for the database, and whoever has the
 * token of a gateway or courier cannot make core write more.
 */
export class InstanceIntake {
  readonly #reads: Queryable
  readonly #sampled: SampledLog
  /** By kind and name. */
  #pending = new Map<string, Pending>()
  /** By kind and name: the instances that were listed after the last write. */
  readonly #listed = new Map<string, ReadonlySet<string>>()
  #writing: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  constructor(reads: Queryable, log: Log) {
    this.#reads = reads
    this.#sampled = new SampledLog(log)
    this.#timer = setInterval(() => void this.write(), writeMs).unref()
  }

  report(kind: InstanceKind, name: string, report: InstanceReport): void {
    this.#keep(kind, name, report.instanceId, report)
  }

  leave(kind: InstanceKind, name: string, instanceId: string): void {
    this.#keep(kind, name, instanceId, null)
  }

  #keep(kind: InstanceKind, name: string, instanceId: string, report: InstanceReport | null): void {
    const key = `${kind}:${name}`
    const { reports } = this.#pending.get(key) ?? { reports: new Map() }
    // However many others are reported, those that are listed are updated.
    const isKept = reports.has(instanceId) || this.#listed.get(key)?.has(instanceId)
    if (reports.size >= instancesPerName && !isKept) return
    this.#pending.set(key, { kind, name, reports: reports.set(instanceId, report) })
  }

  /** Stores what is pending. What cannot be stored is reported again within ten seconds. */
  async write(): Promise<void> {
    this.#writing ??= this.#store().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async #store(): Promise<void> {
    const pending = this.#pending
    this.#pending = new Map()
    for (const [key, { kind, name, reports }] of pending) {
      const stopped = [...reports].filter(([, report]) => report === null).map(([instanceId]) => instanceId)
      const running = [...reports.values()].filter(report => report !== null)
      try {
        const listed = await storeInstances(this.#reads, { kind, name, reports: running, stopped })
        this.#listed.set(key, new Set(listed))
      } catch (error) {
        const message = 'reports of instances could not be stored'
        this.#sampled.write('store', { level: 'warn', fields: { err: error }, message, summary: `${message} again` })
      }
    }
  }

  /** Stores what is left, for `lastWriteMs` at most. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    // The write that runs has no reports that came since it began.
    const written = Promise.resolve(this.#writing).then(() => this.write())
    await waitAtMost(lastWriteMs, written)
    this.#sampled.flush()
  }
}
