import pg from 'pg'
import { inSchema, schemaOf } from './schema.ts'
import { type PoolName, poolSettings, settingsOf } from './session-settings.ts'

/**
 * PgBouncer in transaction mode: a few sessions of PostgreSQL for many connections of cores. It drops the settings of the startup
 * message, so it sets them on each session that it opens (`connect_query`), by a function of the database.
 *
 * Its sessions have a role of their own. The defaults of a role, which whoever has its password may change, can make `connect_query`
 * fail, and PgBouncer ignores that. Core ends sessions of its role that it has not marked (see session-marks.ts), and cannot mark those of a
 * pooler.
 */
export type Pooler = {
  /** DATABASE_POOLER_URL, with the schema of DATABASE_URL. */
  url: string
  /** The role of DATABASE_URL. */
  serviceRole: string
}

/** The pooler that core is configured to use, if any. */
export function poolerOf(databaseUrl: string, url: string | undefined): Pooler | undefined {
  if (url === undefined) return undefined
  const target = new URL(url)
  target.searchParams.set('schema', schemaOf(databaseUrl))
  return { url: target.href, serviceRole: decodeURIComponent(new URL(databaseUrl).username) }
}

/** The URL of one pool of core. Each has its own database in PgBouncer, so its own sessions, settings and number of sessions. */
export function poolerUrl({ url }: Pooler, pool: PoolName): string {
  const target = new URL(url)
  target.pathname += `_${pool}`
  return target.href
}

/** The SQL that creates the function for `connect_query`. */
export function settingsFunction(schema: string): string {
  const json = (value: object) => `${pg.escapeLiteral(JSON.stringify(value))}::jsonb`
  // The body is parsed now, so the defaults of a role cannot change what it means.
  return inSchema(
    `
    create or replace function {schema}.set_session(pool text) returns bigint language sql begin atomic
      select count(pg_catalog.set_config(name, value, false))
      from jsonb_each_text(${json(settingsOf(schema))} || (${json(poolSettings)} -> pool)) as setting (name, value);
    end`,
    schema,
  )
}
