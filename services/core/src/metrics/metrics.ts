import { setImmediate, setTimeout } from 'node:timers/promises'
import type { EventType, TransferType } from '@workspace-wallet/contract'
import type { LogOutput } from '@workspace-wallet/runtime'
import { createHistogram } from '@workspace-wallet/runtime/metrics-reader'
import { activeSpan, type Exemplar, exemplarOf } from '@workspace-wallet/runtime/tracing'
import type { Pool } from 'pg'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import packageJson from '../../package.json' with { type: 'json' }
import type { ForeignSessions } from '../database/foreign-sessions.ts'
import { type DatabaseHistory, refusalReasons } from '../database/history.ts'
import type { ChainedDecisions } from '../ledger/decide/chain-decisions.ts'
import type { LedgerRequest, RequestResult } from '../ledger/decide/requests.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import { countHaltedLedgers } from '../ledger/store/halt.ts'
import { type ModifiedTable, modifiedTables } from '../ledger/store/require-signed.ts'

type ListLoad = { running: number; waiting: number }

/** A series of a metric. */
export type LabelledValue = { labels: Record<string, string>; value: number }

/** The metrics of a place, at /metrics of core. */
export class Metrics {
  readonly registry = new Registry()
  readonly #batchSize: Histogram
  readonly #batchSeconds: Histogram
  readonly #events: Counter
  readonly #callSeconds: Histogram
  readonly #modifiedRows: Counter
  readonly #droppedRefusals: Counter
  /** By metric: whether the figures of the last scrape, which are read from the database, could be read. */
  readonly #figures = new Map<string, Promise<boolean>>()
  /** Caches the series of each path and code: looking one up by labels costs more than observing a value. */
  readonly #calls = new Map<string, ReturnType<Histogram['labels']>>()

  constructor() {
    const registers = [this.registry]
    this.#batchSize = new Histogram({
      name: 'core_batch_postings',
      help: 'Postings in a batch',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    })
    this.#batchSeconds = createHistogram(this.registry, {
      name: 'core_batch_duration_seconds',
      help: 'Time to post a batch, including its commit',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    })
    this.#events = new Counter({
      name: 'core_events_total',
      help: 'Events of transfers, deposits, withdrawals and holds that this core wrote to the event log, by type',
      labelNames: ['type'],
      registers,
    })
    for (const type of postedEventTypes) this.#events.inc({ type }, 0)
    this.#callSeconds = createHistogram(this.registry, {
      name: 'core_call_duration_seconds',
      help: 'Time from the arrival of a call to its answer, by procedure and code; unknown: rejected before a procedure was chosen, without a duration',
      labelNames: ['path', 'code'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    })
    this.#droppedRefusals = new Counter({
      name: 'core_refusals_dropped_total',
      help: 'Refused calls of the public API that were not kept, because a gateway or core had too many',
      registers,
    })
    this.#modifiedRows = new Counter({
      name: 'core_modified_rows_total',
      help: 'Rows that were modified outside the service: of refused keys, members, operators, workspaces and webhooks, of transfers without a receipt, of reads and changes that were refused',
      labelNames: ['table'],
      registers,
    })
    for (const table of modifiedTables) this.#modifiedRows.inc({ table }, 0)
    this.#watchFigures()
  }

  /** Exports what a process has once, whatever number of places it serves. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.registry })
    new Gauge({
      name: 'core_build_info',
      help: 'Always 1. Its labels are the versions of core and Node.js',
      labelNames: ['version', 'node'],
      registers: [this.registry],
    }).set({ version: packageJson.version, node: process.version }, 1)
  }

  /** Counts a row that was modified outside the service, each time that core refuses something because of it. */
  modifiedRow(table: ModifiedTable): void {
    this.#modifiedRows.inc({ table })
  }

  /** Counts refused calls that gateways or core have not kept. */
  droppedRefusals(count: number): void {
    this.#droppedRefusals.inc(count)
  }

  /** Records the response to a call. `code` is `ok` or the code of the error. `exemplar`: if the call was traced. */
  answered(path: string, code: string, milliseconds: number, exemplar?: Exemplar): void {
    const value = milliseconds / 1000
    if (exemplar) {
      this.#callSeconds.observe({ labels: { path, code }, value, exemplarLabels: exemplar })
      return
    }
    const name = `${path} ${code}`
    const series = this.#calls.get(name) ?? this.#callSeconds.labels(path, code)
    this.#calls.set(name, series)
    series.observe(value)
  }

  /** Wraps `post` to measure the size and duration of batches. */
  measured(
    post: (postings: LedgerRequest[]) => Promise<RequestResult[]>,
  ): (postings: LedgerRequest[]) => Promise<RequestResult[]> {
    return async postings => {
      const startedAt = performance.now()
      try {
        return await post(postings)
      } finally {
        this.#batchSize.observe(postings.reduce((sum, { commands }) => sum + commands.length, 0))
        const value = (performance.now() - startedAt) / 1000
        this.#batchSeconds.observe({ value, exemplarLabels: exemplarOf(activeSpan()) ?? {} })
      }
    }
  }

  /** Counts the events of a batch. */
  written({ holds, postings }: ChainedDecisions): void {
    const types = [
      ...holds.events.map(({ type }) => type),
      ...postings.transfers.map(({ transfer }) => eventTypeOf[transfer.type]),
    ]
    for (const type of new Set(types)) this.#events.inc({ type }, types.filter(each => each === type).length)
  }

  /** Exports the number of lost log lines. */
  watchLog(output: LogOutput): void {
    const help = 'Log lines that were lost because the disk is full or the reader is slow or gone'
    this.#count('core_log_lines_lost_total', help, () => output.lost)
  }

  /** Exports how much memory the bodies of calls take. */
  watchBodies(bodies: { usedBytes: number }): void {
    const help = 'Memory for the bodies of calls that is in use, in bytes: at most BODY_MEMORY_BYTES'
    this.#gauge('core_body_bytes', help, () => bodies.usedBytes)
  }

  /** Exports how much memory answers take that were not read, and how many were dropped because of it. */
  watchUnread(answers: { bytes: number; closed: number }): void {
    const bytesHelp =
      'Memory for answers that callers have not read, and for batches that core has not read, in bytes: at most about BODY_MEMORY_BYTES'
    this.#gauge('core_unread_answer_bytes', bytesHelp, () => answers.bytes)
    const closedHelp = 'Responses and connections for batches that were closed because callers did not read'
    this.#count('core_closed_answers_total', closedHelp, () => answers.closed)
  }

  /** Exports the sessions of the service's role that no core has opened. */
  watchSessions(sessions: ForeignSessions): void {
    const foundHelp = "Sessions in PostgreSQL with the service's role that no core has opened"
    this.#gauge('core_foreign_sessions', foundHelp, () => sessions.found)
    const endedHelp = 'Such sessions that this core has ended, because they kept others from working or stayed too long'
    this.#count('core_foreign_sessions_ended_total', endedHelp, () => sessions.ended)
    const ageHelp = 'How long ago this core has looked for such sessions: it does so twice a second'
    this.#gauge('core_foreign_sessions_look_age_seconds', ageHelp, () => sessions.lookAgeMs / 1000)
  }

  /** Exports how many connections were refused, because their server is a standby or lacks what core has seen. */
  watchHistory({ refused }: DatabaseHistory): void {
    const counter = new Counter({
      name: 'core_database_refused_total',
      help: 'Connections to PostgreSQL that were refused: to a standby, or to a server that lacks what this core has seen',
      labelNames: ['reason'],
      registers: [this.registry],
      collect() {
        this.reset()
        for (const reason of refusalReasons) counter.inc({ reason }, refused[reason])
      },
    })
  }

  /** Exports a value that is read at each scrape. */
  #gauge(name: string, help: string, read: () => number): void {
    const registers = [this.registry]
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }

  /** Exports a count that something else keeps. */
  #count(name: string, help: string, read: () => number): void {
    const registers = [this.registry]
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }

  /** Exports the state of queues, lists, pools and ledgers, read at each scrape. */
  watch(
    shards: Shards,
    lists: { readonly load: Record<string, ListLoad> },
    pools: { reads: Pool } & Record<string, Pool>,
  ): void {
    const registers = [this.registry]
    new Gauge({
      name: 'core_lists',
      help: 'Running and waiting list reads: pages in order of creation, short searches, long searches, pages of events',
      labelNames: ['kind', 'state'],
      registers,
      collect() {
        for (const [kind, { running, waiting }] of Object.entries(lists.load)) {
          this.set({ kind, state: 'running' }, running)
          this.set({ kind, state: 'waiting' }, waiting)
        }
      },
    })
    new Gauge({
      name: 'core_postings',
      help: 'Commands that wait to be posted, and commands in batches in flight. A request to expire holds counts as 100',
      labelNames: ['state'],
      registers,
      collect() {
        const { waiting, posting } = shards.depth
        this.set({ state: 'waiting' }, waiting)
        this.set({ state: 'posting' }, posting)
      },
    })
    new Gauge({
      name: 'core_database_connections',
      help: 'Connections of a pool, and callers that wait for one',
      labelNames: ['pool', 'state'],
      registers,
      collect() {
        for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
          this.set({ pool, state: 'busy' }, totalCount - idleCount)
          this.set({ pool, state: 'idle' }, idleCount)
          this.set({ pool, state: 'awaited' }, waitingCount)
        }
      },
    })
    // Registered after the connections, because they use one themselves.
    this.watchDatabase(
      'core_halted_workspaces',
      'Workspaces whose postings are stopped because rows were modified outside the service: npm run admin -- ledger halted',
      () => countHaltedLedgers(pools.reads),
    )
  }

  /** Exports a figure that is read from the database at each scrape. */
  watchDatabase(name: string, help: string, read: () => Promise<number>): void {
    this.watchDatabaseSeries(name, help, [], async () => [{ labels: {}, value: await read() }])
  }

  /** Exports series that are read from the database at each scrape. */
  watchDatabaseSeries(name: string, help: string, labelNames: string[], read: () => Promise<LabelledValue[]>): void {
    const figures = this.#figures
    figures.set(name, Promise.resolve(true))
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      async collect() {
        const reading = withTimeout(read()).catch(() => undefined)
        figures.set(
          name,
          reading.then(series => series !== undefined),
        )
        const series = await reading
        this.reset()
        // The other metrics must be available when the database is not. A value from before would look like one of now.
        if (series === undefined && labelNames.length === 0) this.remove()
        for (const { labels, value } of series ?? []) this.set(labels, value)
      },
    })
  }

  /** Exports which figures could not be read at this scrape. */
  #watchFigures(): void {
    const figures = this.#figures
    new Gauge({
      name: 'core_figure_unreadable',
      help: 'Whether a metric that is read from the database has no value at this scrape: 1 if it could not be read within a second',
      labelNames: ['name'],
      registers: [this.registry],
      async collect() {
        // A scrape begins to read all figures before this goes on.
        await setImmediate()
        const read = await Promise.all(Array.from(figures, async ([name, isRead]) => ({ name, isRead: await isRead })))
        for (const { name, isRead } of read) this.set({ name }, isRead ? 0 : 1)
      },
    })
  }
}

const eventTypeOf: Record<TransferType, EventType> = {
  TRANSFER: 'transfer.completed',
  DEPOSIT: 'wallet.deposited',
  WITHDRAWAL: 'wallet.withdrawn',
}
const postedEventTypes: EventType[] = [...Object.values(eventTypeOf), 'hold.created', 'hold.released', 'hold.expired']

function withTimeout<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return Promise.race([
    answer,
    setTimeout(1_000, undefined, { ref: false }).then(() => Promise.reject(new Error('timed out'))),
  ])
}
