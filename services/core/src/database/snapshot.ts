import type { KeyObject } from 'node:crypto'
import type { CustomTypesConfig, QueryArrayConfig, QueryArrayResult } from 'pg'
import pg from 'pg'
import { inSchema, schemaOf } from './schema.ts'
import { requireOwnSession } from './session-checks.ts'
import { markSession } from './session-marks.ts'
import { type SettingChanges, startupOf } from './session-settings.ts'

/** A row with the text of each column. Values are not parsed, so that a damaged one cannot fail the read. */
export type TextRow = (string | null)[]

/** Rows of one FETCH: balances round trips against memory and the interval of progress reports. */
const rowsPerFetch = 1000

export const snapshotSettings = {
  // Unqualified names are built-in ones, and statements qualify tables: objects of the same name do not change what a statement
  // reads.
  search_path: 'pg_catalog,pg_temp',
  // Shows the shards of Citus among the relations. Elsewhere, the setting does nothing.
  'citus.override_table_visibility': 'off',
  // A statement fails if a policy would hide rows from it.
  row_security: 'off',
  // The transaction runs for minutes.
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '1min',
  // Ends the statement when the client has disconnected.
  client_connection_check_interval: '1s',
  // Plans for reading all rows.
  cursor_tuple_fraction: '1',
  enable_bitmapscan: 'on',
  enable_hashjoin: 'on',
  enable_mergejoin: 'on',
  enable_seqscan: 'on',
  enable_sort: 'on',
  work_mem: '64MB',
} satisfies SettingChanges

const asText = { getTypeParser: () => (text: string) => text } as unknown as CustomTypesConfig

/** DATABASE_URL, and the key that marks sessions of core (see session-marks.ts). */
export type SnapshotSource = { databaseUrl: string; chainKey: KeyObject }

/**
 * A read-only repeatable-read transaction: one state of the whole database until it is closed. It blocks no writer.
 *
 * It has its own connection instead of one from a pool, because a verification uses it for minutes.
 */
export class Snapshot {
  readonly #client: pg.Client
  readonly schema: string
  #cursors = 0
  #hidden: ReadonlySet<string> = new Set()

  private constructor(client: pg.Client, schema: string) {
    this.#client = client
    this.schema = schema
  }

  /** @param signal closes the connection at once, even during a statement */
  static async open({ databaseUrl, chainKey }: SnapshotSource, name: string, signal?: AbortSignal): Promise<Snapshot> {
    signal?.throwIfAborted()
    const client = snapshotClient(databaseUrl, name)
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    aborted.catch(() => {})
    // The driver leaves a connection attempt pending that is ended meanwhile.
    const abandon = () => {
      reject(signal!.reason)
      void client.end().catch(() => {})
    }
    signal?.addEventListener('abort', abandon, { once: true })
    client.once('end', () => signal?.removeEventListener('abort', abandon))
    const opened = (async () => {
      await client.connect()
      await requireOwnSession(client, databaseUrl, snapshotSettings)
      await markSession(client, chainKey)
      return Snapshot.begin(client, schemaOf(databaseUrl))
    })()
    try {
      return await Promise.race([opened, aborted])
    } catch (error) {
      opened.catch(() => {})
      void client.end().catch(() => {})
      throw error
    }
  }

  /** On a connection of the caller (see `snapshotClient`), who also ends the transaction, if not by `close`. */
  static async begin(client: pg.Client, schema: string): Promise<Snapshot> {
    await client.query('begin transaction isolation level repeatable read read only')
    return new Snapshot(client, schema)
  }

  /** The workspaces whose rows are left out. */
  get hidden(): ReadonlySet<string> {
    return this.#hidden
  }

  /** From now on, the tables that statements name as `{here}` lack the rows of these workspaces: UUIDs. */
  hide(workspaceIds: readonly string[]): void {
    this.#hidden = new Set(workspaceIds)
  }

  /**
   * @param sql names the tables of the service as `{schema}.name`, with all rows, or as `{here}.name`, without those of hidden
   * workspaces
   */
  async rows(sql: string, values: unknown[] = []): Promise<TextRow[]> {
    const text = inSchema(rowsHere(sql, this.#hidden), this.schema)
    const query: QueryArrayConfig = { text, values, rowMode: 'array', types: asText }
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

/** The tables that have rows of workspaces, by the column that names the workspace. Other tables are of the place. */
const workspaceColumns: Readonly<Record<string, string>> = {
  api_key: 'workspace_id',
  audit: 'workspace_id',
  audit_head: 'workspace_id',
  hold: 'workspace_id',
  journal: 'workspace_id',
  ledger: 'workspace_id',
  member: 'workspace_id',
  spending_limit: 'workspace_id',
  transfer: 'workspace_id',
  verified_ledger: 'workspace_id',
  wallet: 'workspace_id',
  webhook: 'workspace_id',
  workspace: 'id',
}

/** SQL with tables in place of `{here}.name`: without the rows of hidden workspaces. */
export function rowsHere(sql: string, hidden: ReadonlySet<string>): string {
  const ids = [...hidden].map(id => `'${id}'`).join(', ')
  return sql.replaceAll(/\{here\}\.(\w+)/g, (_, table: string) => {
    const column = workspaceColumns[table]
    if (hidden.size === 0 || column === undefined) return `{schema}.${table}`
    return `(select * from {schema}.${table} where ${column} is null or ${column} not in (${ids}))`
  })
}

/** A connection for snapshots, which the caller opens. */
export function snapshotClient(databaseUrl: string, name: string): pg.Client {
  const client = new pg.Client({
    ...startupOf(databaseUrl, snapshotSettings),
    application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
  })
  // The pending query fails too. Without a listener the error would end the process.
  client.on('error', () => {})
  return client
}
