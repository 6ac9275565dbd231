import type { ClientConfig, CustomTypesConfig, QueryArrayConfig, QueryArrayResult } from 'pg'
import pg from 'pg'

/** A row with the text of each column. Values are not parsed, so that a damaged one cannot fail the read. */
export type TextRow = (string | null)[]

/** Rows of one FETCH: balances round trips against memory and the interval of progress reports. */
const rowsPerFetch = 1000

// For this transaction only, which runs for minutes.
const settings = `
  -- Unqualified names are built-in ones, and statements qualify tables: neither settings of the role or the database nor
  -- objects of the same name change what a statement reads.
  set local search_path = pg_catalog, pg_temp;
  -- A statement fails if a policy would hide rows from it.
  set local row_security = off;
  set local statement_timeout = 0;
  set local transaction_timeout = 0;
  set local idle_in_transaction_session_timeout = '1min';
  -- Ends the statement when the client has disconnected.
  set local client_connection_check_interval = '1s';
  -- Plans for reading all rows, on one processor: the others are for the service.
  set local cursor_tuple_fraction = 1;
  set local work_mem = '64MB';
  set local max_parallel_workers_per_gather = 0;
  set local jit = off;
  -- The same text for every value, whatever the settings of the role are.
  set local timezone = 'UTC';
  set local datestyle = 'ISO';
  set local bytea_output = 'hex'`

const asText = { getTypeParser: () => (text: string) => text } as unknown as CustomTypesConfig

/**
 * A read-only repeatable-read transaction: one state of the whole database until it is closed. It blocks no writer.
 *
 * It has its own connection instead of one from a pool, because a verification uses it for minutes.
 */
export class Snapshot {
  readonly #client: pg.Client
  #cursors = 0

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /** @param signal closes the connection at once, even during a statement */
  static async open(database: ClientConfig, name: string, signal?: AbortSignal): Promise<Snapshot> {
    signal?.throwIfAborted()
    const client = new pg.Client({
      ...database,
      application_name: name,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    })
    // The pending query fails too. Without a listener the error would end the process.
    client.on('error', () => {})
    const abandon = () => void client.end()
    signal?.addEventListener('abort', abandon, { once: true })
    client.once('end', () => signal?.removeEventListener('abort', abandon))
    try {
      await client.connect()
      return await Snapshot.begin(client)
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
  }

  /** On a connection of the caller, who also ends the transaction, if not by `close`. */
  static async begin(client: pg.Client): Promise<Snapshot> {
    await client.query(`begin transaction isolation level repeatable read read only; ${settings}`)
    return new Snapshot(client)
  }

  async rows(sql: string, values: unknown[] = []): Promise<TextRow[]> {
    const query: QueryArrayConfig = { text: sql, values, rowMode: 'array', types: asText }
    const result: QueryArrayResult<TextRow> = await this.#client.query(query)
    return result.rows
  }

  /** All rows of a statement in batches. Fetches the next batch while the caller processes the current one. */
  async *batches(sql: string, values: unknown[] = [], fetched = rowsPerFetch): AsyncGenerator<TextRow[]> {
    const cursor = `cursor_${this.#cursors++}`
    await this.rows(`declare ${cursor} no scroll cursor for ${sql}`, values)
    const fetch = () => {
      const next = this.rows(`fetch ${fetched} from ${cursor}`)
      // The next iteration throws a failure. If the caller has stopped iterating, it is ignored.
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

  /** Ends the transaction by closing the connection. */
  async close(): Promise<void> {
    await this.#client.end()
  }
}

/** The connection options of a pool's database. */
export function databaseOf({ options }: pg.Pool): ClientConfig {
  const { host, port, user, password, database, ssl } = options
  return { host, port, user, password, database, ssl }
}
