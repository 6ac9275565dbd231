/** A PostgreSQL database for each test file: a copy of a template that global.ts migrates once. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { createCitusDatabase, dropCitusDatabase } from '../../cli/processes/citus.ts'
import { connect, query } from '../../cli/processes/database.ts'
import { until } from './until.ts'

export { connect, query } from '../../cli/processes/database.ts'

const databaseProgram = fileURLToPath(new URL('../../cli/database.ts', import.meta.url))

export const templateDatabase = 'wallet_template'

/** The schema of the tables: not `public` in the project `buckets`. */
export const schema = process.env.TEST_SCHEMA ?? 'public'

/** URLs of the server that global.ts has started; `urlOf` changes the database. */
export interface DatabaseServer {
  ownerUrl: string
  serviceUrl: string
  /** Its files belong to the user that PostgreSQL runs as. */
  dataDir: string
}

export interface TestDatabase {
  /** With the role that owns the schema, a superuser. */
  ownerUrl: string
  /** With the role that core runs under. */
  serviceUrl: string
  drop(): Promise<void>
}

/** With the product's schema, unless the template is another one: `template1` is empty. */
export async function createTestDatabase(template = templateDatabase): Promise<TestDatabase> {
  if (process.env.CITUS_URL !== undefined && template === templateDatabase) return createBucket(process.env.CITUS_URL)
  const server = inject('databaseServer')
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  const admin = await connect(adminUrl)
  await admin.query(`create database ${name} template ${template}`)
  // Copies have the rights in the database, but not those to the database, as the migration sets them.
  if (template === templateDatabase) await admin.query(`revoke temporary on database ${name} from public`)
  await admin.end()
  return {
    ownerUrl: urlOf(server.ownerUrl, name),
    serviceUrl: urlOf(server.serviceUrl, name),
    drop: () => execute(adminUrl, `drop database if exists ${name} with (force)`),
  }
}

/**
 * An empty place for the workspaces of no test, which becomes home in the project `buckets`: its tables are larger than those of the
 * place of the test, so that core creates all workspaces there. What forgets the place of a workspace finds nothing at home.
 */
export async function createOtherHome(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  await execute(
    database.ownerUrl,
    `set session_replication_role = replica;
     insert into ledger (workspace_id, last_posted_at, revision, mac) values ('${randomUUID()}', now(), 1, '');
     insert into wallet (workspace_id, id, kind, name, currency, status, created_at, updated_at, revision, mac, number)
       select workspace_id, gen_random_uuid(), 'CUSTOMER', repeat('x', 900), 'USD', 'ACTIVE', now(), now(), 1, '', n
       from ledger, generate_series(1, 5000) n;
     delete from wallet; delete from ledger`,
  )
  return database
}

/** Whether cores have two places, of which the second one is that of the tests. */
export const hasOtherHome = process.env.TEST_PLACES === '2'
/** The number of the place of the tests. */
export const testPlace = hasOtherHome ? 1 : 0

/** A bucket in a database of its own, and the URLs of its worker. The tests of test/citus run on it. */
async function createBucket(citusUrl: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const { url } = await createCitusDatabase(citusUrl, name)
  const { host, pathname } = new URL(url)
  const serviceUrl = `postgres://wallet_service:wallet_service@${host}${pathname}`
  const env = { PATH: process.env.PATH, MIGRATION_DATABASE_URL: url, DATABASE_URL: serviceUrl }
  await promisify(execFile)(process.execPath, [databaseProgram, 'distribute', '--buckets', '1'], { env })
  const [placed] = await query(url, `select nodename || ':' || nodeport as worker from citus_shards limit 1`)
  const onWorker = (each: string) => `${Object.assign(new URL(each), { host: placed!.worker }).href}?schema=${schema}`
  return {
    ownerUrl: onWorker(url),
    serviceUrl: onWorker(serviceUrl),
    drop: () => dropCitusDatabase(citusUrl, name),
  }
}

/** The URL for a core that waits for locks without a limit: a test may hold a lock for as long as it needs. */
export function waitingForLocks(serviceUrl: string, moreOptions = ''): string {
  const url = new URL(serviceUrl)
  url.searchParams.set('options', `-c lock_timeout=0 ${moreOptions}`)
  return url.href
}

/** The URL of another database, with the same server and role. */
export function urlOf(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

export async function execute(url: string, sql: string): Promise<void> {
  await query(url, sql)
}

/**
 * Makes writes to a table wait in the middle of their transactions, until the function that it returns is called. A lock of a row would
 * keep a change of access from beginning, because it locks the table first.
 *
 * @param when a condition on `old` or `new`
 */
export async function holdWrites(
  ownerUrl: string,
  { table, event, when = 'true' }: { table: string; event: 'insert' | 'update'; when?: string },
): Promise<() => Promise<void>> {
  const owner = await connect(ownerUrl)
  await owner.query(`
    select pg_advisory_lock(1);
    create function wait_here() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return new; end $$;
    create trigger waits_here before ${event} on ${table} for each row when (${when}) execute function wait_here()`)
  return async () => {
    await owner.query(`
      select pg_advisory_unlock(1);
      drop trigger waits_here on ${table};
      drop function wait_here`)
    await owner.end()
  }
}

/** A statement of an attacker, who repeats it if core ends the session because it blocks core. */
export function queryPersistently(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  return until('the statement is not interrupted', () =>
    query(url, sql, values).catch((error: Error & { code?: string }) => {
      if (['57P01', 'ECONNRESET'].includes(error.code!) || error.message === 'Connection terminated unexpectedly')
        return null
      throw error
    }),
  )
}
