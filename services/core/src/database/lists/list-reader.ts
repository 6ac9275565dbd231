import { DomainError } from '@workspace-wallet/contract'
import type { Pool } from 'pg'
import { classifyDatabaseError } from '../errors.ts'
import { run, type Statement } from '../statement.ts'
import { WorkspaceConcurrencyLimit } from './workspace-concurrency-limit.ts'

/** The one statement that a page takes. */
export type ListQuery<Row> = { workspace: string; statement: Statement<Row>; values: unknown[] } & (
  | { cost: 'bounded' }
  /** Takes longer the more rows there are. `blamed` names the parameter to change when it takes too long. */
  | { cost: 'search'; blamed: string }
)

/** Reads the pages of lists. */
export type ListDatabase = { read<Row>(query: ListQuery<Row>): Promise<Row[]> }

/** `short`: a search that ends within this time never waits for one that does not. `long`: how long any may run. */
type SearchLimits = { shortMs: number; longMs: number }

const searchLimits: SearchLimits = { shortMs: 50, longMs: 2_000 }
/** A workspace whose long searches have used more time than this lately has its searches run as long ones at once. */
const longUseMs = 25

/** A caller waits for a short search and then for a long one, and still hears before its own deadline. */
const waitMs = 5_000
const oneSearch = { slots: 1, reservedSlots: 0, waitingPerWorkspace: 8, waiting: 32, waitMs }

/** Connections that searches take at the same time: a short one and a long one. */
const searchConnections = 2

/**
 * Reads lists on connections of their own, so that a workspace's expensive lists do not slow another workspace's.
 *
 * - Pages that are a range of numbers, which cost the same at any depth, share the connections that searches leave.
 *   One of these is kept for workspaces that run nothing.
 * - Searches are tried as short ones: one at a time, for 50 ms at most.
 * - Long searches run one at a time over all workspaces, each for two seconds at most: PostgreSQL runs a search on one
 *   processor, and the others stay free for everybody else.
 */
export class ListReader implements ListDatabase {
  readonly #pool: Pool
  readonly #limits: SearchLimits
  readonly #pages: WorkspaceConcurrencyLimit
  readonly #shortSearches = new WorkspaceConcurrencyLimit(oneSearch)
  readonly #longSearches = new WorkspaceConcurrencyLimit(oneSearch)

  /** @param connections how many the pool has, at least four */
  constructor(pool: Pool, connections: number, limits = searchLimits) {
    this.#pool = pool
    this.#limits = limits
    this.#pages = new WorkspaceConcurrencyLimit({
      slots: connections - searchConnections,
      reservedSlots: 1,
      waitingPerWorkspace: 256,
      waiting: 1024,
      waitMs,
    })
  }

  /** What runs and what waits, by kind. */
  get load() {
    return { page: this.#pages.load, short: this.#shortSearches.load, long: this.#longSearches.load }
  }

  /** @throws DomainError S002 when too many lists wait; S012 when a search takes too long */
  async read<Row>(query: ListQuery<Row>): Promise<Row[]> {
    const { workspace, statement, values } = query
    if (query.cost === 'bounded') return this.#pages.run(workspace, () => run(this.#pool, statement, values))
    return (await this.#readShort(query)) ?? (await this.#readLong(query))
  }

  /** Null when the search does not end as a short one. */
  async #readShort<Row>(query: ListQuery<Row>): Promise<Row[] | null> {
    const { workspace } = query
    const { shortMs } = this.#limits
    const isExpectedLong = () => this.#longSearches.usedMs(workspace) >= longUseMs
    if (isExpectedLong()) return null
    return this.#shortSearches.run(workspace, async () => {
      // Others of this workspace may have turned out to be long while this one waited.
      if (isExpectedLong()) return null
      try {
        return await this.#search(query, shortMs)
      } catch (error) {
        if (!isTimeout(error)) throw error
        this.#longSearches.charge(workspace, shortMs)
        return null
      }
    })
  }

  async #readLong<Row>(query: ListQuery<Row> & { cost: 'search' }): Promise<Row[]> {
    const { longMs } = this.#limits
    try {
      return await this.#longSearches.run(query.workspace, () => this.#search(query, longMs))
    } catch (error) {
      if (!isTimeout(error)) throw error
      throw new DomainError('S012', { field: query.blamed, reason: 'TOO_EXPENSIVE', limit: longMs / 1000 })
    }
  }

  /** Runs a search in a transaction, which has its settings. All three statements travel together. */
  async #search<Row>({ statement, values }: ListQuery<Row>, timeoutMs: number): Promise<Row[]> {
    const client = await this.#pool.connect()
    const [begun, read, ended] = await Promise.allSettled([
      client.query(beginSearch(timeoutMs)),
      run(client, statement, values),
      client.query('commit'),
    ])
    client.release(ended.status === 'rejected')
    for (const each of [begun, read, ended]) if (each.status === 'rejected') throw each.reason
    return (read as PromiseFulfilledResult<Row[]>).value
  }
}

/**
 * A search runs on one processor, without a compiler that takes longer than most searches. An index leads to the rows
 * of its workspace, whatever the statistics say: without any, PostgreSQL would scan the tables of all workspaces.
 */
function beginSearch(timeoutMs: number): string {
  return `begin read only; set local statement_timeout = ${timeoutMs}; set local max_parallel_workers_per_gather = 0;
    set local jit = off; set local enable_seqscan = off; set local work_mem = '64MB'`
}

function isTimeout(error: unknown): boolean {
  return classifyDatabaseError(error) === 'timeout'
}
