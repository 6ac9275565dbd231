import { setTimeout } from 'node:timers/promises'
import type { LogOutput } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ListReader } from '../database/lists/list-reader.ts'
import type { SignedTable } from '../database/signed-rows.ts'
import type { Posting, PostingResult } from '../ledger/posting/posting.ts'
import { findHaltedLedgers } from '../ledger/posting/queries.ts'
import type { Shards } from '../ledger/posting/shards.ts'

/** What Prometheus scrapes at core's /metrics. */
export class Metrics {
  readonly registry = new Registry()
  readonly #batchSize: Histogram
  readonly #batchSeconds: Histogram
  readonly #callSeconds: Histogram
  readonly #modifiedRows: Counter
  /** Looking a series up by its labels costs more than counting in it. */
  readonly #calls = new Map<string, ReturnType<Histogram['labels']>>()

  constructor() {
    const registers = [this.registry]
    collectDefaultMetrics({ register: this.registry })
    this.#batchSize = new Histogram({
      name: 'core_batch_postings',
      help: 'Postings in a batch',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    })
    this.#batchSeconds = new Histogram({
      name: 'core_batch_duration_seconds',
      help: 'Time to post a batch, its commit included',
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    })
    this.#callSeconds = new Histogram({
      name: 'core_call_duration_seconds',
      help: 'Time from the arrival of a call to its answer, by procedure and code',
      labelNames: ['path', 'code'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    })
    this.#modifiedRows = new Counter({
      name: 'core_modified_rows_total',
      help: 'Keys, members and workspaces that were refused because their row was modified outside the service',
      labelNames: ['table'],
      registers,
    })
  }

  /** Counts a key, member or workspace that was met and refused because no core wrote its row. */
  modifiedRow(table: SignedTable): void {
    this.#modifiedRows.inc({ table })
  }

  /** Counts the answer to a call. `code` is `ok`, or that of its error. */
  answered(path: string, code: string, milliseconds: number): void {
    const name = `${path} ${code}`
    const series = this.#calls.get(name) ?? this.#callSeconds.labels(path, code)
    this.#calls.set(name, series)
    series.observe(milliseconds / 1000)
  }

  /** Measures a way of posting batches. */
  measured(post: (postings: Posting[]) => Promise<PostingResult[]>): (postings: Posting[]) => Promise<PostingResult[]> {
    return async postings => {
      const startedAt = performance.now()
      try {
        return await post(postings)
      } finally {
        this.#batchSize.observe(postings.length)
        this.#batchSeconds.observe((performance.now() - startedAt) / 1000)
      }
    }
  }

  /** Shows how many lines of the log were lost. */
  watchLog(output: LogOutput): void {
    new Counter({
      name: 'core_log_lines_lost_total',
      help: 'Lines of the log that were lost: the disk is full, or what reads them is slow or gone',
      registers: [this.registry],
      collect() {
        this.reset()
        this.inc(output.lost)
      },
    })
  }

  /** Watches the queues, the lists, the pools and the ledgers; read when somebody asks. */
  watch(shards: Shards, lists: ListReader, pools: { reads: Pool } & Record<string, Pool>): void {
    const registers = [this.registry]
    new Gauge({
      name: 'core_lists',
      help: 'Lists that run and that wait: pages in order of creation, short searches and long ones',
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
      help: 'Postings that wait in the shards, and that are in batches under way',
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
    // After the connections: it asks for one itself.
    new Gauge({
      name: 'core_halted_workspaces',
      help: 'Workspaces that take no postings, because their ledger was written past: npm run admin -- ledger halted',
      registers,
      async collect() {
        // The database may be away, or frozen: then the other figures are wanted all the more.
        const halted = await inTime(findHaltedLedgers(pools.reads)).catch(() => undefined)
        if (halted) this.set(halted.length)
      },
    })
  }
}

function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return Promise.race([
    answer,
    setTimeout(1_000, undefined, { ref: false }).then(() => Promise.reject(new Error('late'))),
  ])
}
