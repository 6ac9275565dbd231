import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { uuidFromId } from '@workspace-wallet/contract'
import { verifyLedger as verify } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../cli/processes/postgres.ts'
import { migrate } from '../services/core/src/database/migrate.ts'
import { call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { createPages, pinBuffers } from './setup/pins.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * An attacker has DATABASE_URL. PostgreSQL cannot keep a role from locking what it may change, so a session of the attacker can
 * hold a lock that core needs, and never let it go.
 */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
})
afterAll(() => system.stop())

const sessions: pg.Client[] = []
afterEach(() => Promise.all(sessions.splice(0).map(session => session.end().catch(() => {}))))

type Session = { pid: number; ended: Promise<void> }

/** A session that runs a statement in a transaction, without any of the timeouts of core, and does not end the transaction. */
async function hold(sql: string, { url = system.database.serviceUrl, name = 'psql' } = {}): Promise<Session> {
  const client = await openSession(url, name)
  await client.query(`begin; ${sql}`)
  return sessionOf(client)
}

async function openSession(url: string, name: string): Promise<pg.Client> {
  const options =
    '-c lock_timeout=0 -c statement_timeout=0 -c transaction_timeout=0 -c idle_in_transaction_session_timeout=0'
  const client = new pg.Client({ connectionString: url, application_name: name, options })
  client.on('error', () => {})
  await client.connect()
  sessions.push(client)
  return client
}

function sessionOf(client: pg.Client): Session {
  const { processID } = client as unknown as { processID: number }
  return { pid: processID, ended: new Promise<void>(resolve => client.once('end', resolve)) }
}

type Books = { workspaceId: string; workspace: string; apiKey: string; apiSecret: string; walletId: string }

async function newBooks(): Promise<Books> {
  const tenant = await createTenant(system)
  const walletId = await createWallet({ ...system, ...tenant }, { deposits: ['100.00'] })
  return { ...tenant, walletId, workspace: `'${uuidFromId('workspace', tenant.workspaceId)}'` }
}

const literalOfKey = ({ apiKey }: Books) => `'${uuidFromId('apiKey', apiKey)}'`

/** What operators must be able to do, on this workspace. */
async function administer(books: Books): Promise<void> {
  const { admin } = system
  const { workspaceId, walletId, apiKey } = books
  await admin.apiKeys.disable.mutate({ apiKey })
  await until('the gateway rejects the key', async () => {
    const { body } = await call({ ...books, baseUrl: system.baseUrl }, 'GET', '/api/v1/wallets')
    return body.code === 'GA2021'
  })
  await admin.members.remove.mutate({ workspaceId, userId: 'owner' })
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })
  expect(await verify(system.admin, { workspaceId })).toMatchObject({ ok: true })
  await admin.workspaces.delete.mutate({ workspaceId, force: true })
}

const logLines = () =>
  system.cores.flatMap(core =>
    core
      .output()
      .split('\n')
      .filter(line => line.startsWith('{')),
  )
/** Waits until a core has logged that it ended this session. */
const untilLogged = ({ pid }: Session) =>
  until('the log names the session', () =>
    logLines().some(
      line =>
        line.includes('"core ends sessions of the service\'s role that no core has opened') &&
        line.includes(`"pid":${pid},`),
    ),
  )

describe('a session that no core has opened is ended when it holds', () => {
  test.each<[string, (books: Books) => string]>([
    ['the access revision', () => 'select from access_revision for update'],
    ['the audit of a workspace', ({ workspace }) => `select from lock_audit(array[${workspace}]::uuid[])`],
    ['the ledger of a workspace', ({ workspace }) => `select from lock_ledgers(array[${workspace}]::uuid[])`],
    ['the row of a key', books => `select from api_key where id = ${literalOfKey(books)} for update`],
    ['the row of a member', ({ workspace }) => `select from member where workspace_id = ${workspace} for update`],
    ['the row of a workspace', ({ workspace }) => `select from workspace where id = ${workspace} for update`],
    [
      'a change of a key that it does not commit',
      books => `update api_key set last_used_at = now() where id = ${literalOfKey(books)}`,
    ],
    ['a table', () => 'lock table checkpoint_part'],
  ])('%s', async (_, sql) => {
    const books = await newBooks()
    // The name of an application can be forged.
    const session = await hold(sql(books), { name: 'core reads' })
    if (sql(books).startsWith('lock table')) {
      await expect(uploadNothing()).resolves.toBeDefined()
    } else await administer(books)
    await session.ended
    await untilLogged(session)
  })
})

/** Reads the table of uploaded checkpoints. */
const uploadNothing = () => query(system.database.ownerUrl, 'select count(*) from checkpoint_part')

test('an operator can disable a key although many sessions wait for its lock, and others run statements', async () => {
  const books = await newBooks()
  const holder = await openSession(system.database.serviceUrl, 'psql')
  await holder.query('begin; select from access_revision for update')
  // Busy, not idle.
  holder.query('select pg_sleep(600)').catch(() => {})
  const queue = []
  for (let count = 0; count < 20; count++) {
    const client = await openSession(system.database.serviceUrl, 'psql')
    client.query('begin; select from access_revision for update').catch(() => {})
    queue.push(sessionOf(client))
  }
  await administer(books)
  for (const session of [sessionOf(holder), ...queue]) await untilLogged(session)
  const figures = system.cores.map(core => readMetric(core.url, 'core_foreign_sessions_ended_total'))
  expect((await Promise.all(figures)).reduce((sum, each) => sum + each)).toBeGreaterThanOrEqual(21)
})

test.each<[string, (books: Books) => string]>([
  ['the access revision', () => 'select from access_revision for share'],
  ['a key', books => `select from api_key where id = ${literalOfKey(books)} for share`],
])(
  'sessions that share a lock in turns, each for a moment, do not keep an operator from disabling a key: %s',
  async (_, sql) => {
    const books = await newBooks()
    let isOver = false
    const turns = Array.from({ length: 8 }, async () => {
      while (!isOver)
        try {
          const client = await openSession(system.database.serviceUrl, 'psql')
          while (!isOver) await client.query(`begin; ${sql(books)}; select pg_sleep(0.05 + 0.1 * random()); commit`)
        } catch {
          // Ended by a core.
        }
    })
    try {
      await administer(books)
    } finally {
      isOver = true
      await Promise.all(turns)
    }
  },
)

test('a transaction that was prepared and holds locks is rolled back', async () => {
  const books = await newBooks()
  await execute(
    system.database.serviceUrl,
    `begin; select from access_revision for update; prepare transaction 'it''s mine'`,
  )
  await administer(books)
  expect(
    await query(system.database.ownerUrl, 'select from pg_prepared_xacts where database = current_database()'),
  ).toEqual([])
})

test('a migration is not blocked either', async () => {
  const { ownerUrl } = system.database
  const owner = await openSession(ownerUrl, 'core migrate')
  const session = await hold('select pg_advisory_xact_lock(4283310117); select from wallet')
  await owner.query('select pg_advisory_lock(4283310117)')
  await session.ended
  const reader = await hold('select from wallet')
  await owner.query('begin; lock table wallet; rollback')
  await reader.ended
})

test('a session of another role is not ended: the error and the log name it', async () => {
  const books = await newBooks()
  const session = await hold('select from access_revision for update', {
    url: system.database.ownerUrl,
    name: 'pgAdmin',
  })
  const name = new RegExp(`process ${session.pid} \\(role postgres, application "pgAdmin"`)
  const disable = system.admin.apiKeys.disable.mutate({ apiKey: books.apiKey })
  await expect(disable).rejects.toMatchObject({ message: expect.stringMatching(name) })
  await until('the log names the session', () =>
    logLines().some(line => line.includes(`"pid":${session.pid},`) && line.includes('blocks core')),
  )
  await sessions.pop()!.end()
  await administer(books)
})

describe('a session that ends the sessions with which cores look for foreign ones', () => {
  /** Ends the sessions that a condition on pg_stat_activity holds for, again and again, as fast as it can. */
  async function endAll(condition: string): Promise<{ stop(): Promise<void> }> {
    const killer = await openSession(system.database.serviceUrl, 'psql')
    let isOver = false
    const ending = (async () => {
      while (!isOver)
        await killer.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and usename = session_user and ${condition} and pid <> pg_backend_pid()`,
        )
    })()
    return {
      async stop() {
        isOver = true
        await ending
      },
    }
  }

  const ended = 'a check of the database fails, because somebody ends or cancels it'
  const succeeds = 'a check of the database succeeds again'
  const isLogged = (message: string, check: string) =>
    logLines().some(line => line.includes(message) && line.includes(`"check":"${check}"`))
  const age = async () =>
    Math.max(
      ...(await Promise.all(system.cores.map(({ url }) => readMetric(url, 'core_foreign_sessions_look_age_seconds')))),
    )

  test('does not keep another one from being ended, and is logged', async () => {
    const books = await newBooks()
    const own = 'foreign sessions, on the own connection'
    const attack = await endAll(`application_name = 'core sessions'`)
    try {
      await until('the log says so', () => isLogged(ended, own))
      const session = await hold(`select from lock_ledgers(array[${books.workspace}]::uuid[])`)
      await administer(books)
      await session.ended
    } finally {
      await attack.stop()
    }
    await until('the log says that it is over', () => isLogged(succeeds, own))
  })

  test('is visible if it ends all of them', async () => {
    const attack = await endAll(`application_name ~ '^core (sessions|reads|lists)$'`)
    try {
      for (const check of ['foreign sessions', 'history'])
        await until(`the log says so: ${check}`, () => isLogged(ended, check))
      await until('the metrics say so', async () => (await age()) >= 2)
    } finally {
      await attack.stop()
    }
    for (const check of ['foreign sessions', 'history'])
      await until(`the log says that it is over: ${check}`, () => isLogged(succeeds, check))
    await until('the metrics say that it is over', async () => (await age()) < 2)
  })
})

describe('cursors that keep a page in every buffer of PostgreSQL', () => {
  let postgres: Postgres
  let small: System
  beforeAll(async () => {
    postgres = await startPostgres({
      dataDir: join(await makeTempDir('buffers'), 'postgres'),
      port: 0,
      durable: false,
      superuserPassword: randomUUID(),
      settings: { shared_buffers: '16MB' },
    })
    await execute(postgres.url('postgres'), 'create database wallet')
    const role = 'wallet_service'
    const database = { ownerUrl: postgres.url('wallet'), serviceUrl: postgres.url('wallet', role, randomUUID()) }
    await migrate(database.ownerUrl, database.serviceUrl)
    await createPages(database.ownerUrl, role)
    small = await startSystem({ database })
  })
  afterAll(async () => {
    await small?.stop()
    await postgres?.stop()
  })

  test('do not stop transfers for long, also if the session with which core looks for foreign ones was ended', async () => {
    const { ownerUrl, serviceUrl } = small.database
    const ofCore = `select pid from pg_stat_activity where application_name = 'core sessions'`
    const [own] = await until('core has opened its session', async () => {
      const rows = await query(ownerUrl, ofCore)
      return rows.length > 0 && rows
    })
    const attacker = await openSession(serviceUrl, 'psql')
    const killer = await openSession(serviceUrl, 'psql')
    const end = (pid: unknown) =>
      killer.query({ name: 'end', text: 'select pg_terminate_backend($1)', values: [pid] }).catch(() => {})
    // Another time, it needs no page.
    await end(0)
    const { ended } = sessionOf(attacker)
    // Core ends the session at the latest when there is no buffer left.
    await pinBuffers(attacker).catch(error => expect(error.message).toMatch(/terminat/))
    await end(own!.pid)
    await ended
    await until('a transfer succeeds', async () => {
      const { body } = await call(small, 'POST', createPath, { bizId: randomUUID(), ...transferOrder(small) })
      return body.code === '2000' || expect(body.code).toBe('S002')
    })
    await until('the log says so', () => small.cores[0]!.output().includes('core ends sessions'))
  })
})
