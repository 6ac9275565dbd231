import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '@workspace-wallet/runtime'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../../../../cli/processes/postgres.ts'
import { connect, execute, query } from '../../../../test/setup/database.ts'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { classifyDatabaseError } from './errors.ts'
import { migrate } from './migrate.ts'
import { openOrm } from './orm.ts'
import { openPool } from './pool.ts'
import { RepeatedCheck } from './repeated-check.ts'

// A server of its own: all databases of a server share its roles.
const role = 'wallet_service'
const maxConnections = 20
const notPermittedToLogIn = '28000'
let postgres: Postgres
let ownerUrl: string
const serviceUrl = (password: string) => postgres.url('wallet', role, password)
beforeAll(async () => {
  const dataDir = join(await makeTempDir('password'), 'postgres')
  postgres = await startPostgres({
    dataDir,
    port: 0,
    durable: false,
    superuserPassword: randomUUID(),
    settings: { max_connections: String(maxConnections) },
  })
  await execute(postgres.url('postgres'), 'create database wallet')
  ownerUrl = postgres.url('wallet')
})
afterAll(() => postgres?.stop())

/** Runs the statements of docs/operations.md that lock the role out, again and again until they succeed. */
async function lockOut(): Promise<void> {
  const text = await readFile(fileURLToPath(new URL('../../../../docs/operations.md', import.meta.url)), 'utf8')
  const [, sql] = /```sql\n +(set lock_timeout = [^`]+)```/.exec(text)!
  const superuser = await connect(ownerUrl)
  const runAll = async () => {
    for (const statement of sql!.trim().split(/;\s+/)) await superuser.query(statement)
    return true
  }
  await until('the role is locked out', () =>
    runAll().catch(error => expect(error.message).toMatch(/^tuple concurrently updated$|due to lock timeout$/)),
  )
  await superuser.end()
}

async function openSession(password: string): Promise<pg.Client> {
  const client = new pg.Client(serviceUrl(password))
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Runs this statement again and again, until the session ends. `runs`: how often it succeeded. */
function repeat(client: pg.Client, sql: string): { runs(): number; ended: Promise<void> } {
  const ended = new Promise<void>(resolve => client.on('end', () => resolve()))
  let runs = 0
  const run = (): Promise<void> =>
    client.query(sql).then(
      () => {
        runs++
        return run()
      },
      error => (error.message === 'tuple concurrently updated' ? run() : undefined),
    )
  void run()
  return { runs: () => runs, ended }
}

const canLogIn = (password: string) =>
  execute(serviceUrl(password), 'select').then(
    () => true,
    error => {
      expect(error.message).toMatch('password authentication failed')
      return false
    },
  )

test('the password of the role is changed while others who have it set it again and grant rights', async () => {
  const [known, next] = [randomUUID(), randomUUID()]
  await migrate(ownerUrl, serviceUrl(known))
  const statements = [
    `alter role ${role} password 'theirs'`,
    `alter role ${role} password 'theirs'`,
    `grant select on wallet to ${role}`,
    `grant select on ledger to ${role}`,
  ]
  // All of them connect before one of them sets the password.
  const sessions = await Promise.all(statements.map(() => openSession(known)))
  const attackers = statements.map((sql, at) => repeat(sessions[at]!, sql))
  await until('all of them do so', () => attackers.every(({ runs }) => runs() > 0))
  await lockOut()
  await Promise.all(attackers.map(({ ended }) => ended))
  await migrate(ownerUrl, serviceUrl(next))
  expect(await Promise.all([next, known, 'theirs'].map(canLogIn))).toEqual([true, false, false])
})

test('the change of the password ends a session that has logged in and not started', async () => {
  const known = randomUUID()
  await migrate(ownerUrl, serviceUrl(known))
  const late = new pg.Client({ connectionString: serviceUrl(known), options: '-c post_auth_delay=2000' })
  let hasEnded = false
  late.on('error', () => {}).on('end', () => (hasEnded = true))
  late.connect().catch(() => {})
  const starting = `select from pg_stat_activity where state = 'starting' and backend_xmin is not null`
  await until('it has logged in', async () => (await query(ownerUrl, starting)).length > 0)
  await lockOut()
  await until('it has ended', () => hasEnded)
})

test('a password that is stored with more iterations than core computes makes the database unavailable, which a check logs', async () => {
  const password = randomUUID()
  await migrate(ownerUrl, serviceUrl(password))
  await execute(ownerUrl, `set scram_iterations = 100001; alter role ${role} password '${password}'`)
  const pool = openPool(serviceUrl(password), { name: 'test', max: 1 })
  const orm = await openOrm(serviceUrl(password), { name: 'test', max: 1 })
  const lines: unknown[] = []
  const check = new RepeatedCheck({ error: (line: unknown) => lines.push(line), debug() {} } as unknown as Log, 'test')
  let attempts = 0
  await until('it is logged', async () => {
    attempts += 2
    for (const ask of [() => pool.query('select'), () => orm.em.fork().execute('select')]) {
      const error = await ask().then(
        () => undefined,
        error => error,
      )
      expect(error.message).toMatch('iteration count')
      expect(classifyDatabaseError(error)).toBe('unavailable')
      check.failed(error)
    }
    return lines.length > 0 && attempts > 2 * maxConnections
  })
  expect(lines).toHaveLength(1)
  await pool.end()
  await orm.close(true)
})

test('the role is locked out although its sessions keep a change of its password open, and connect again when they are ended', async () => {
  const [known, next] = [randomUUID(), randomUUID()]
  await migrate(ownerUrl, serviceUrl(known))
  let kept = 0
  const keep = async () => {
    const client = await openSession(known)
    const ended = new Promise(resolve => client.once('end', resolve))
    await client.query(`begin; alter role ${role} password 'theirs'`)
    kept++
    await ended
  }
  const attackers = Array.from({ length: 3 }, () =>
    until('the attacker is locked out', () => keep().catch(error => error.code === notPermittedToLogIn)),
  )
  await until('one of them keeps it open', () => kept > 0)
  await lockOut()
  await Promise.all(attackers)
  await migrate(ownerUrl, serviceUrl(next))
  expect(await Promise.all([next, known, 'theirs'].map(canLogIn))).toEqual([true, false, false])
})

test.each([
  ['grants itself rights', `grant select on wallet to ${role}`],
  ['resets its settings', `alter role ${role} reset all`],
])('a migration is repeated if the role %s in the meantime', async (_, sql) => {
  const password = randomUUID()
  await migrate(ownerUrl, serviceUrl(password))
  const attacker = await connect(serviceUrl(password))
  await attacker.query(`alter role ${role} set work_mem = '5MB'`)
  await attacker.query(`begin; ${sql}`)
  const migrated = migrate(ownerUrl, serviceUrl(password))
  const waiting = `select from pg_stat_activity where application_name = 'core migrate' and wait_event_type = 'Lock'`
  await until('the migration waits', async () => (await query(ownerUrl, waiting)).length > 0)
  await attacker.query('commit')
  expect(await migrated).toEqual([])
  await attacker.end()
})
