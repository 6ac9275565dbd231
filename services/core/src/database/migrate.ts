import { setTimeout } from 'node:timers/promises'
import type { MigrationObject } from '@mikro-orm/core'
import { currencyDecimals } from '@workspace-wallet/contract'
import pg from 'pg'
import { grants } from './grants.ts'
import { migrations } from './migrations/index.ts'
import { type Em, type Orm, openOrm } from './orm.ts'

/** The advisory lock of migrations: any number, the same in every version. */
const migrationLock = 4_283_310_117

/**
 * All later statements on a table wait behind a schema change that waits for its lock. The change therefore gives up before
 * statements of core time out (see session-settings.ts), and is retried.
 */
const lockTimeout = '1s'
const pauseMs = 1_000
const maxAttempts = 30
const lockNotAvailable = '55P03'

/** An index on a large table takes long, as does waiting for a concurrent migration. */
const noTimeouts = {
  lock_timeout: '0',
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
}

/**
 * Updates a database: the schema, the currencies, the service's role and its rights. One transaction under one lock, so that
 * concurrent migrations run once and a failed one changes nothing.
 *
 * @param ownerUrl a role that owns the schema and may create roles
 * @param serviceUrl the role of core, which must differ; created with the password of this URL if absent
 * @returns the names of the applied migrations
 * @throws Error if both URLs have the same role, or a currency has other decimals in the database
 */
export async function migrate(
  ownerUrl: string,
  serviceUrl: string,
  list: readonly MigrationObject[] = migrations,
): Promise<string[]> {
  const service = serviceRole(ownerUrl, serviceUrl)
  const orm = await openOrm(ownerUrl, {
    name: 'migrate',
    max: 2,
    queryTimeoutMs: 0,
    settings: noTimeouts,
    migrations: list,
  })
  try {
    for (let attempt = 1; ; attempt++)
      try {
        return await migrateOnce(orm, service)
      } catch (error) {
        if (attempt >= maxAttempts || (error as { code?: unknown }).code !== lockNotAvailable) throw error
        await setTimeout(pauseMs)
      }
  } finally {
    await orm.close(true)
  }
}

function migrateOnce(orm: Orm, service: ServiceRole): Promise<string[]> {
  return orm.em.fork().transactional(async em => {
    await em.execute(`select pg_advisory_xact_lock(${migrationLock})`)
    await em.execute(`set local lock_timeout = '${lockTimeout}'`)
    const applied = await orm.migrator.up({ transaction: em.getTransactionContext()! })
    await writeCurrencies(em)
    await createRole(em, service)
    const [{ database }] = await em.execute<[{ database: string }]>('select current_database() as database')
    for (const sql of grants(pg.escapeIdentifier(service.name), pg.escapeIdentifier(database))) await em.execute(sql)
    return applied.map(migration => migration.name)
  })
}

type ServiceRole = { name: string; password: string }

function serviceRole(ownerUrl: string, serviceUrl: string): ServiceRole {
  const owner = decodeURIComponent(new URL(ownerUrl).username)
  const { username, password } = new URL(serviceUrl)
  const name = decodeURIComponent(username)
  if (!name || name === owner)
    throw new Error(
      'DATABASE_URL must name another role than MIGRATION_DATABASE_URL: the service must not own its tables',
    )
  return { name, password: decodeURIComponent(password) }
}

async function createRole(em: Em, { name, password }: ServiceRole): Promise<void> {
  const existing = await em.execute('select 1 from pg_roles where rolname = ?', [name])
  if (existing.length > 0) return
  await em.execute(`create role ${pg.escapeIdentifier(name)} login password ${pg.escapeLiteral(password)}`)
}

/** Adds new currencies. @throws Error if the decimals of a stored one differ, which would corrupt balances */
async function writeCurrencies(em: Em): Promise<void> {
  const stored = new Map<string, number>()
  for (const { code, decimals } of await em.execute<{ code: string; decimals: number }[]>('select * from currency'))
    stored.set(code, decimals)
  for (const [code, decimals] of currencyDecimals) {
    const before = stored.get(code)
    if (before === decimals) continue
    if (before !== undefined)
      throw new Error(`currency ${code} has ${before} decimals in the database and ${decimals} in the code`)
    await em.execute('insert into currency (code, decimals) values (?, ?)', [code, decimals])
  }
}
