import { DomainError } from '@workspace-wallet/contract'
import type { Pool } from 'pg'
import { classifyDatabaseError } from '../errors.ts'
import { run, type Statement } from '../statement.ts'
import { WorkspaceConcurrencyLimit } from '../workspace-concurrency-limit.ts'

/** The statement of a page. */
export type ListQuery<Row> = { workspace: string; statement: Statement<Row>; values: unknown[] } & (
  | { cost: 'bounded' }
  /** A page of events: `EventReader` limits how many of them are read at a time. */
  | { cost: 'events' }
  /** Takes longer with more rows. `blamed` is the parameter to change if it takes too long. */
  | { cost: 'search'; blamed: string }
)

/** Reads the pages of lists. */
export type ListDatabase = { read<Row>(query: ListQuery<Row>): Promise<Row[]> }

/**
 * A search that ends within `shortMs` never waits for longer ones. `longMs` is the maximum. A search may wait for `waitMs` twice,
 * for a short slot and for a long one, and still ends before its caller's deadline.
 */
type ListLimits = { shortMs: number; longMs: number; waitMs: number }

const listLimits: ListLimits = { shortMs: 50, longMs: 2_000, waitMs: 5_000 }
/** If the long searches of a workspace have recently used more time than this, its searches start as long ones. */
const longUseMs = 25

const reason = 'TOO_MANY_LISTS'
const oneSearch = { slots: 1, reservedSlots: 0, waitingPerWorkspace: 8, waiting: 32, reason } as const

/** Connections for searches: one short and one long search at a time. */
const searchConnections = 2
/** Connections for events: one page of the API and one of webhooks at a time. They never wait for lists. */
const eventConnections = 2

/**
 * Reads lists on connections of their own, so that a workspace's expensive lists do not slow another workspace's.
 *
 * - Pages that are a range of numbers cost the same at any depth and use the connections that searches and events do not use. One
 *   of these is reserved for workspaces with no running page.
 * - Every search first runs as a short one: one at a time, for at most 50 ms.
 * - Long searches run one at a time over all workspaces, each for at most two seconds. A search uses one processor of
 *   PostgreSQL, so the others remain free.
 */
export class ListReader implements ListDatabase {
  readonly #pool: Pool
  readonly #limits: ListLimits
  readonly #pages: WorkspaceConcurrencyLimit
  readonly #shortSearches: WorkspaceConcurrencyLimit
  readonly #longSearches: WorkspaceConcurrencyLimit

  /** @param connections the size of the pool, at least five */
  constructor(pool: Pool, connections: number, limits: Partial<ListLimits> = {}) {
    this.#pool = pool
    this.#limits = { ...listLimits, ...limits }
    const { waitMs } = this.#limits
    this.#shortSearches = new WorkspaceConcurrencyLimit({ ...oneSearch, waitMs })
    this.#longSearches = new WorkspaceConcurrencyLimit({ ...oneSearch, waitMs })
    this.#pages = new WorkspaceConcurrencyLimit({
      slots: connections - searchConnections - eventConnections,
      reservedSlots: 1,
      waitingPerWorkspace: 256,
      waiting: 1024,
      waitMs,
      reason,
    })
  }

  /** The running and waiting lists of each kind. */
  get load() {
    return { page: this.#pages.load, short: this.#shortSearches.load, long: this.#longSearches.load }
  }

  /** @throws DomainError S002 if too many lists wait; S012 if a search takes too long */
  async read<Row>(query: ListQuery<Row>): Promise<Row[]> {
    const { workspace, statement, values } = query
    if (query.cost === 'events') return run(this.#pool, statement, values)
    if (query.cost === 'bounded') return this.#pages.run(workspace, () => run(this.#pool, statement, values))
    return (await this.#readShort(query)) ?? (await this.#readLong(query))
  }

  /** Null if the search takes too long for a short one. */
  async #readShort<Row>(query: ListQuery<Row>): Promise<Row[] | null> {
    const { workspace } = query
    const { shortMs } = this.#limits
    const isExpectedLong = () => this.#longSearches.usedMs(workspace) >= longUseMs
    if (isExpectedLong()) return null
    return this.#shortSearches.run(workspace, async () => {
      // Other searches of this workspace may have become long ones while this one waited.
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

  /** Runs a search in a transaction with its own settings. Sends all three statements at once. */
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
 * Settings of a search: one processor, and no JIT compilation, which takes longer than most searches. A search reads many rows, for
 * which PostgreSQL may use any plan but a sequential scan: without statistics, it would scan the rows of all workspaces.
 */
function beginSearch(timeoutMs: number): string {
  return `begin read only; set local statement_timeout = ${timeoutMs}; set local max_parallel_workers_per_gather = 0;
    set local jit = off; set local enable_seqscan = off; set local enable_bitmapscan = on;
    set local enable_hashjoin = on; set local enable_mergejoin = on; set local enable_sort = on; set local work_mem = '64MB'`
}

function isTimeout(error: unknown): boolean {
  return classifyDatabaseError(error) === 'timeout'
}
