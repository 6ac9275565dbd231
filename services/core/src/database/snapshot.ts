import type { ClientConfig, CustomTypesConfig, QueryArrayConfig, QueryArrayResult } from 'pg'
import pg from 'pg'

/** A row as PostgreSQL writes it. Nothing is parsed here: a damaged value must be seen, not choked on. */
export type TextRow = (string | null)[]

/** Rows of one FETCH: enough to make a round trip cheap, few enough to keep memory small and progress smooth. */
const rowsPerFetch = 1000

// For this transaction only. It may run for minutes, where the service's role allows seconds.
const settings = `
  -- Names mean what PostgreSQL ships, and tables are named with their schema: neither a setting of the role or the
  -- database nor an object of the same name changes what a statement reads.
  set local search_path = pg_catalog, pg_temp;
  -- A policy that would hide rows makes the statement fail instead.
  set local row_security = off;
  set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = '1min';
  -- A run whose caller has gone ends, also in the middle of a statement.
  set local client_connection_check_interval = '1s';
  -- It reads to the end: what counts is the last row, not the first. And it leaves the other processors to the service.
  set local cursor_tuple_fraction = 1;
  set local work_mem = '64MB';
  set local max_parallel_workers_per_gather = 0;
  set local jit = off;
  -- One spelling of every value, whatever the role's own settings are.
  set local timezone = 'UTC';
  set local datestyle = 'ISO';
  set local bytea_output = 'hex'`

const asText = { getTypeParser: () => (text: string) => text } as unknown as CustomTypesConfig

/**
 * One state of the whole database, for as long as it is open: a read-only repeatable-read transaction on a connection
 * of its own. It locks nothing that a writer wants; whatever is committed meanwhile it does not see.
 *
 * The connection comes from no pool: a verification would hold one of the few for reads for minutes.
 */
export class Snapshot {
  readonly #client: pg.Client
  #cursors = 0

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /** @param signal closes it at once, whatever it is doing */
  static async open(database: ClientConfig, name: string, signal?: AbortSignal): Promise<Snapshot> {
    signal?.throwIfAborted()
    const client = new pg.Client({
      ...database,
      application_name: name,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    })
    // The query under way fails with it; without a listener it would also end the process.
    client.on('error', () => {})
    const abandon = () => void client.end()
    signal?.addEventListener('abort', abandon, { once: true })
    client.once('end', () => signal?.removeEventListener('abort', abandon))
    try {
      await client.connect()
      await client.query(`begin transaction isolation level repeatable read read only; ${settings}`)
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
    return new Snapshot(client)
  }

  async rows(sql: string, values: unknown[] = []): Promise<TextRow[]> {
    const query: QueryArrayConfig = { text: sql, values, rowMode: 'array', types: asText }
    const result: QueryArrayResult<TextRow> = await this.#client.query(query)
    return result.rows
  }

  /** All rows of a statement, some at a time. The next ones are on their way while the caller works on these. */
  async *batches(sql: string, values: unknown[] = [], fetched = rowsPerFetch): AsyncGenerator<TextRow[]> {
    const cursor = `cursor_${this.#cursors++}`
    await this.rows(`declare ${cursor} no scroll cursor for ${sql}`, values)
    const fetch = () => {
      const next = this.rows(`fetch ${fetched} from ${cursor}`)
      // Whoever awaits it hears of a failure; nobody does when the caller has stopped.
      next.catch(() => {})
      return next
    }
    let next = fetch()
    for (;;) {
      const rows = await next
      if (rows.length === 0) return
      next = fetch()
      yield rows
    }
  }

  /** Ends the transaction by closing the connection: nothing was written. */
  async close(): Promise<void> {
    await this.#client.end()
  }
}

/** How to reach the database that a pool is connected to. */
export function databaseOf({ options }: pg.Pool): ClientConfig {
  const { host, port, user, password, database, ssl } = options
  return { host, port, user, password, database, ssl }
}
