import type { KeyObject } from 'node:crypto'
import pg from 'pg'
import type { Pooler } from './pooler.ts'
import { withoutSchema } from './schema.ts'
import { requireOwnSession, requirePooledSession } from './session-checks.ts'
import { markSession } from './session-marks.ts'
import { type SettingChanges, startupOf } from './session-settings.ts'

/** The client's timeout of a statement. PostgreSQL's own timeouts are shorter (see session-settings.ts). */
const defaultQueryTimeoutMs = 12_000
const connectTimeoutMs = 2_000
const idleTimeoutMs = 60_000
/**
 * When the first keep-alive probe of an idle connection is sent. Node sends ten, one a second, so that a connection to a machine
 * that lost its power is closed within 15 seconds, instead of failing the next call.
 */
const keepAliveAfterMs = 5_000

export type PoolOptions = {
  /** Shown in `pg_stat_activity`. */
  name: string
  max: number
  /** Sends statements without waiting for the previous response. Only for hand-written transactions. */
  pipeline?: boolean
  queryTimeoutMs?: number
  /** Settings that differ from those of core's other sessions. */
  settings?: SettingChanges
  /** Marks the sessions as those of a core (see session-marks.ts), except for those of a pooler. */
  chainKey?: KeyObject
  /** Refuses a connection to a server or to tables that core must not use. @throws UnsuitableSession, StaleDatabase */
  admit?: (client: pg.ClientBase) => Promise<void>
  /** The connection pooler that the URL leads to, if any. */
  pooler?: Pooler | undefined
  /** Called with each new connection, before anything uses it. */
  onOpened?: (client: pg.ClientBase) => void
}

/**
 * The driver leaves the connection open if it does not log in (see `isLoginRefused`), and PostgreSQL counts it for a minute. Nobody else
 * could connect after a hundred of them.
 */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

/** The options of all connections of core, including those of the ORM. */
export function poolConfig(
  url: string,
  { name, max, pipeline = false, queryTimeoutMs, settings = {}, chainKey, admit, pooler, onOpened }: PoolOptions,
) {
  return {
    Client,
    // Contains the whole URL, because the driver also reads its parameters (sslmode).
    ...(pooler ? { connectionString: withoutSchema(url) } : startupOf(url, settings)),
    application_name: `core ${name}`,
    pipeline,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    // Kept while it is idle: when somebody else takes all connections that the server has, calls still have this one.
    min: 1,
    max,
    idleTimeoutMillis: idleTimeoutMs,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs ?? defaultQueryTimeoutMs,
    async onConnect(client: pg.ClientBase) {
      // The pending statement fails too. Without a listener the error would end the process.
      client.on('error', () => {})
      onOpened?.(client)
      if (pooler) await requirePooledSession(client, url, settings, pooler.serviceRole)
      else await requireOwnSession(client, url, settings)
      if (chainKey && !pooler) await markSession(client, chainKey)
      await admit?.(client)
    },
  }
}

/** A pool for prepared statements (see statement.ts). Opens connections when they are needed. */
export function openPool(url: string, options: PoolOptions): pg.Pool {
  const pool = new pg.Pool(poolConfig(url, options))
  // Of an idle connection.
  pool.on('error', () => {})
  return pool
}
