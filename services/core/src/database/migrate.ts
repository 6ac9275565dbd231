import { setTimeout } from 'node:timers/promises'
import type { MigrationObject } from '@mikro-orm/core'
import { currencyDecimals } from '@workspace-wallet/contract'
import pg from 'pg'
import { isLockTimeout } from './errors.ts'
import { type BlockingSession, describeSession } from './foreign-sessions.ts'
import { grants } from './grants.ts'
import { migrations } from './migrations/index.ts'
import { type Em, type Orm, openOrm } from './orm.ts'
import { settingsFunction } from './pooler.ts'
import { inSchema, schemaOf } from './schema.ts'

/** The advisory lock of migrations: any number, the same in every version. */
const migrationLock = 4_283_310_117

/**
 * All later statements on a table wait behind a schema change that waits for its lock. The change therefore gives up before
 * statements of core time out (see session-settings.ts), and is retried.
 */
const lockTimeout = '1s'
const pauseMs = 1_000
const maxAttempts = 30
/** Shorter than `lockTimeout`. */
const watchMs = 250

/** PostgreSQL's errors if another session changes the rights to the same object, or the same role or its settings, in the meantime. */
const concurrentChange = /^tuple concurrently (updated|deleted)$/
const concurrentChangeAdvice =
  'somebody changes the rights of the roles at the same time: lock the role of the service out first (see docs/operations.md, "Change the password of the service\'s role")'

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
 * @param serviceUrl the role of core, which must differ. It is created if absent, and gets the password of this URL
 * @param report receives a sentence about each session that the migration waits for, and about a right that it could not revoke
 * @returns the names of the applied migrations
 * @throws Error if both URLs have the same role or different schemas, or a currency has other decimals in the database
 */
export async function migrate(
  ownerUrl: string,
  serviceUrl: string,
  listOf: (inSchema: (sql: string) => string) => readonly MigrationObject[] = migrations,
  report: (sentence: string) => void = () => {},
): Promise<string[]> {
  const service = serviceRole(ownerUrl, serviceUrl)
  const schema = schemaOf(ownerUrl)
  if (schema !== schemaOf(serviceUrl))
    throw new Error('DATABASE_URL and MIGRATION_DATABASE_URL must name the same schema')
  const orm = await openOrm(ownerUrl, {
    name: 'migrate',
    max: 2,
    queryTimeoutMs: 0,
    settings: noTimeouts,
    migrations: listOf(sql => inSchema(sql, schema)),
  })
  const ended = new AbortController()
  const watching = reportBlocking(orm, report, ended.signal)
  try {
    for (let attempt = 1; ; attempt++)
      try {
        return await migrateOnce(orm, service, schema, report)
      } catch (error) {
        const isConcurrent = concurrentChange.test((error as Error).message)
        if (attempt < maxAttempts && (isLockTimeout(error) || isConcurrent)) await setTimeout(pauseMs)
        else if (isConcurrent) throw new Error(concurrentChangeAdvice, { cause: error })
        else throw error
      }
  } finally {
    ended.abort()
    await watching
    await orm.close(true)
  }
}

/** Reports each session that holds a lock for which a migration of this database waits, once. */
async function reportBlocking(orm: Orm, report: (sentence: string) => void, ended: AbortSignal): Promise<void> {
  const reported = new Set<number>()
  while (!ended.aborted) {
    await setTimeout(watchMs, undefined, { signal: ended }).catch(() => {})
    // The migration itself fails if the database is lost.
    for (const session of await findBlocking(orm).catch(() => [])) {
      if (reported.has(session.pid)) continue
      reported.add(session.pid)
      const isPrepared = session.pid === preparedPid
      report(`The migration waits for a lock of ${isPrepared ? preparedTransaction : describeSession(session)}.`)
    }
  }
}

/** What `pg_blocking_pids` has for a prepared transaction, which has no session. */
const preparedPid = 0
const preparedTransaction =
  'a prepared transaction: find it in pg_prepared_xacts, and run `rollback prepared` in its database'

function findBlocking(orm: Orm): Promise<BlockingSession[]> {
  return orm.em.fork().execute(
    `select distinct blocking.pid, coalesce(a.usename, '') as role, coalesce(a.application_name, '') as application
     from pg_stat_activity waiting, unnest(pg_blocking_pids(waiting.pid)) as blocking (pid)
     left join pg_stat_activity a on a.pid = blocking.pid
     where waiting.datname = current_database() and waiting.application_name = 'core migrate'`,
  )
}

function migrateOnce(
  orm: Orm,
  service: ServiceRole,
  schema: string,
  report: (sentence: string) => void,
): Promise<string[]> {
  return orm.em.fork().transactional(async em => {
    await em.execute(`select pg_advisory_xact_lock(${migrationLock})`)
    await em.execute(`set local lock_timeout = '${lockTimeout}'`)
    const applied = await orm.migrator.up({ transaction: em.getTransactionContext()! })
    await writeCurrencies(em)
    await createRole(em, service)
    await em.execute(settingsFunction(schema))
    const [{ database }] = await em.execute<[{ database: string }]>('select current_database() as database')
    const names = [service.name, database].map(name => pg.escapeIdentifier(name)) as [string, string]
    for (const sql of grants(...names, schema)) await em.execute(sql)
    await reportTemporary(em, names, report)
    return applied.map(migration => migration.name)
  })
}

/** Only the owner of the database can revoke the right to create temporary tables. To others, PostgreSQL gives a mere warning. */
async function reportTemporary(em: Em, [role, database]: [string, string], report: (sentence: string) => void) {
  const [{ isGranted }] = await em.execute<[{ isGranted: boolean }]>(
    `select has_database_privilege(?::regrole::oid, current_database(), 'TEMPORARY') as "isGranted"`,
    [role],
  )
  if (isGranted)
    report(
      `The role ${role} may still create temporary tables: run as the owner of the database: ` +
        `revoke temporary on database ${database} from public, ${role}`,
    )
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

/** The role may change its own password, which locks core out: so this sets it each time. Without one, others authenticate it. */
async function createRole(em: Em, { name, password }: ServiceRole): Promise<void> {
  const existing = await em.execute('select 1 from pg_roles where rolname = ?', [name])
  const withPassword = password ? ` password ${pg.escapeLiteral(password)}` : ''
  const verb = existing.length > 0 ? 'alter' : 'create'
  await em.execute(`${verb} role ${pg.escapeIdentifier(name)} login${withPassword}`)
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
