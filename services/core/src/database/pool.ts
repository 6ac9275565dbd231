import pg from 'pg'

/** How long a statement may run as seen from here; PostgreSQL's own limits (see grants.ts) end it earlier. */
const defaultQueryTimeoutMs = 12_000
const connectTimeoutMs = 2_000
const idleTimeoutMs = 60_000
/**
 * Set on connecting, they override the settings of the role and the database, which the service's role may change.
 * PostgreSQL's own names come first, and a commit is durable before it is answered.
 */
const startOptions = '-c search_path=public,pg_temp -c synchronous_commit=on'

export type PoolOptions = {
  /** Shown in `pg_stat_activity`. */
  name: string
  max: number
  /** Statements follow each other without waiting for answers: for transactions that are written out by hand. */
  pipeline?: boolean
  queryTimeoutMs?: number
}

/** How every connection of core is made, those of the ORM included. */
export function poolConfig(url: string, { name, max, pipeline = false, queryTimeoutMs }: PoolOptions) {
  return {
    // The driver reads the parameters of the URL too (sslmode).
    connectionString: url,
    options: startOptions,
    application_name: `core ${name}`,
    pipeline,
    keepAlive: true,
    min: 0,
    max,
    idleTimeoutMillis: idleTimeoutMs,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs ?? defaultQueryTimeoutMs,
  }
}

/** Connections for prepared statements (see statement.ts). None is opened before it is needed. */
export function openPool(url: string, options: PoolOptions): pg.Pool {
  const pool = new pg.Pool(poolConfig(url, options))
  // The statement under way fails with its connection; without a listener it would also end the process.
  pool.on('connect', client => client.on('error', () => {}))
  pool.on('error', () => {})
  return pool
}
