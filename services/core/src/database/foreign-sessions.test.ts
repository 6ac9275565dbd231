import { generateKeySync, type KeyObject, randomUUID } from 'node:crypto'
import { createLog, type Log } from '@workspace-wallet/runtime'
import pg, { type Pool, type PoolClient } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../../../../cli/processes/postgres.ts'
import { connect, query, urlOf, waitingForLocks } from '../../../../test/setup/database.ts'
import { createPages, pinBuffers, withoutBuffers } from '../../../../test/setup/pins.ts'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { ForeignSessions, prepareLook } from './foreign-sessions.ts'
import { openPool } from './pool.ts'

// A server of its own: cores of other test files would end these sessions first, and tests of this file those of other cores.
let postgres: Postgres
let ownerUrl: string
let serviceUrl: string
const chainKey = generateKeySync('hmac', { length: 256 })
const pools: Pool[] = []
const clients = new Set<PoolClient>()
let foreign: ForeignSessions
beforeAll(async () => {
  postgres = await startPostgres({
    dataDir: `${await makeTempDir('sessions')}/postgres`,
    port: 0,
    durable: false,
    superuserPassword: randomUUID(),
    settings: { max_connections: '40', max_prepared_transactions: '10', shared_buffers: '16MB' },
  })
  ownerUrl = postgres.url('postgres')
  const password = randomUUID()
  serviceUrl = postgres.url('postgres', 'service', password)
  await query(ownerUrl, `create role service login password '${password}'`)
  await query(ownerUrl, 'create database other')
  await query(
    ownerUrl,
    'create table webhook (); create table wallet (); grant select, update on webhook, wallet to service',
  )
  await createPages(ownerUrl, 'service')
})
afterAll(() => postgres.stop())
beforeEach(() => {
  foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, createLog('test', 'silent').log)
})
afterEach(async () => {
  for (const client of clients) client.release(true)
  await Promise.all(pools.splice(0).map(pool => pool.end()))
})

/** Connections like those of core; without a key, like those of an attacker. */
function openAs(name: string, key?: KeyObject, databaseUrl = serviceUrl): Pool {
  const settings = { idle_in_transaction_session_timeout: '0', transaction_timeout: '0', statement_timeout: '0' }
  const url = waitingForLocks(databaseUrl)
  const pool = openPool(url, {
    name,
    max: 10,
    queryTimeoutMs: 0,
    settings,
    ...(key && { chainKey: key, admit: prepareLook }),
  })
  // After a test that fails before it releases them.
  pool.on('acquire', client => clients.add(client))
  pool.on('release', (_, client) => clients.delete(client))
  pools.push(pool)
  return pool
}

/** An advisory lock stands for any other. */
const lock = (key: number) => `select pg_advisory_xact_lock(${key})`

async function hold(pool: Pool, key: number): Promise<{ client: PoolClient; pid: number }> {
  const client = await pool.connect()
  client.on('error', () => {})
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  await client.query('begin')
  await client.query(lock(key))
  return { client, pid: rows[0]!.pid }
}

/** Sessions that wait for each of these locks. Resolves with what they get when they all wait. */
async function waitFor(pool: Pool, keys: number[]): Promise<Promise<unknown>[]> {
  const waiting = keys.map(key => pool.query(lock(key)))
  await until('all of them wait', async () => {
    const rows = await query(
      ownerUrl,
      'select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())',
    )
    return rows.length === keys.length
  })
  return waiting
}

/** PostgreSQL's error when its table of locks is full. */
const full = { code: '53200' }

/** Takes locks until that table is full: advisory locks (1, 0), (1, 1), (1, 2) … */
async function fillLockTable(client: PoolClient): Promise<void> {
  let key = 0
  for (const count of [500, 1])
    for (let isFull = false; !isFull; key += count)
      await client
        .query('select pg_advisory_lock(1, n) from generate_series($1::integer, $2) n', [key, key + count - 1])
        .catch(error => {
          expect(error).toMatchObject(full)
          isFull = true
        })
}

/** A log, and what was written to it. */
function recordedLog() {
  const lines: { fields: object; message: string }[] = []
  const log = { error: (fields: object, message: string) => lines.push({ fields, message }), debug: () => {} }
  return { log: log as unknown as Log, lines }
}

/** Logs in, and does not start for a while. Resolves when the session has ended. */
function startLate(url: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url, options: '-c post_auth_delay=2000' })
  client.on('error', () => {})
  client.connect().catch(() => {})
  return new Promise(resolve => client.once('end', resolve))
}

const isAlive = async ({ pid }: { pid: number }, url = ownerUrl) =>
  (await query(url, 'select from pg_stat_activity where pid = $1', [pid])).length > 0

test('a session of another core is not ended, and one with a forged name or a copied mark is', async () => {
  const core = openAs('ledger', chainKey)
  const attacker = openAs('ledger')
  const ofCore = await hold(core, 1)
  const forged = await hold(attacker, 2)
  const copied = await hold(attacker, 3)
  const otherKey = await hold(openAs('ledger', generateKeySync('hmac', { length: 256 })), 4)
  const mark = `select ((classid::bigint << 32) | objid::bigint) as mark from pg_locks
    where pid = $1 and locktype = 'advisory' and classid <> 0`
  const [{ mark: markOfCore } = {}] = await query(ownerUrl, mark, [ofCore.pid])
  await copied.client.query('select pg_advisory_lock_shared($1)', [markOfCore])

  const waiting = await waitFor(core, [1, 2, 3, 4])
  await foreign.look()
  await Promise.all(waiting.slice(1))
  expect(foreign.ended).toBe(3)
  for (const each of [forged, copied, otherKey]) {
    await until('it has ended', async () => !(await isAlive(each)))
    each.client.release(true)
  }
  expect(await isAlive(ofCore)).toBe(true)
  await ofCore.client.query('commit')
  ofCore.client.release()
  await waiting[0]
})

test('a session for which nobody waits is counted, and not ended', async () => {
  const idle = await hold(openAs('psql'), 5)
  await until('it is counted', async () => {
    await foreign.look()
    return foreign.found === 1
  })
  expect(await isAlive(idle)).toBe(true)
  idle.client.release(true)
})

test('a session that has locked rows for five seconds is ended, although nobody waits for it', async () => {
  const attacker = openAs('ledger')
  const [locking, reading, core] = await Promise.all([
    hold(attacker, 21),
    hold(attacker, 22),
    hold(openAs('ledger', chainKey), 23),
  ])
  await reading.client.query('select from webhook')
  for (const { client } of [locking, core]) await client.query('select from webhook for update')
  await until('it is ended', async () => {
    await foreign.look()
    return !(await isAlive(locking))
  })
  expect(foreign.ended).toBe(1)
  expect([await isAlive(reading), await isAlive(core)]).toEqual([true, true])
  for (const { client } of [locking, reading, core]) client.release(true)
})

test('a session that PostgreSQL cannot interrupt is logged as such once, and counts once', async () => {
  const { log, lines } = recordedLog()
  foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, log, { endingMs: 1 })
  const { client, pid } = await hold(openAs('psql'), 25)
  const hashes = Array(300).fill('sha512(x)').join(', ')
  // PostgreSQL can interrupt it until it has this lock, and then only after the last hash.
  const busy = client.query(
    `select pg_try_advisory_lock(26), array[${hashes}] from (select repeat('a', 10000000)::bytea as x offset 0) _`,
  )
  const termination = expect(busy).rejects.toThrow('terminating connection')
  const isHashing = `select from pg_locks where pid = $1 and locktype = 'advisory' and objid = 26`
  await until('it computes hashes', async () => (await query(ownerUrl, isHashing, [pid])).length > 0)
  const [waiting] = await waitFor(openAs('ledger', chainKey), [25])
  for (let looks = 0; looks < 4; looks++) await foreign.look()
  expect(await isAlive({ pid })).toBe(true)
  expect(foreign.ended).toBe(1)
  expect(lines.map(({ message }) => message)).toEqual([
    expect.stringMatching('core ends sessions'),
    expect.stringMatching('a session does not end'),
  ])
  expect(lines[1]!.fields).toMatchObject({ pid })
  await termination
  client.release(true)
  await waiting
})

test('a session that keeps replaced rows from removal is ended after a while, also if it has passed that on', async () => {
  const sessions = openAs('sessions', chainKey)
  foreign = new ForeignSessions(sessions, chainKey, createLog('test', 'silent').log, { keptMs: 1 })
  const attacker = openAs('psql')
  const [first, second, core] = await Promise.all([
    hold(attacker, 31),
    hold(attacker, 32),
    hold(openAs('reads', chainKey), 33),
  ])
  const snapshot = 'commit; begin isolation level repeatable read'
  for (const { client } of [first, core]) await client.query(`${snapshot}; select from wallet`)
  const { rows } = await first.client.query<{ id: string }>('select pg_export_snapshot() as id')
  await second.client.query(`${snapshot}; set transaction snapshot '${rows[0]!.id}'; select from wallet`)
  // Another transaction, after which a new session has another snapshot.
  await query(ownerUrl, 'select pg_current_xact_id()')
  await foreign.look()
  first.client.release(true)
  await until('it is ended', async () => {
    await foreign.look()
    return !(await isAlive(second))
  })
  expect(await isAlive(core)).toBe(true)
  for (const { client } of [second, core]) client.release(true)
})

test('a session whose cursor stops a vacuum is ended when core waits for the vacuum', async () => {
  const attacker = await openAs('psql').connect()
  attacker.on('error', () => {})
  await query(ownerUrl, 'insert into wallet default values')
  await attacker.query('begin; declare c cursor for select from wallet; fetch c')
  const vacuum = query(ownerUrl, 'vacuum (freeze, disable_page_skipping) wallet')
  const isWaiting = (event: string) => async () =>
    (
      await query(
        ownerUrl,
        'select from pg_stat_activity where datname = current_database() and (wait_event_type, wait_event) = ($1, $2)',
        event.split(' '),
      )
    ).length > 0
  await until('the vacuum waits', isWaiting('BufferPin BufferPin'))
  const locked = openAs('ledger', chainKey).query('begin; lock table wallet in exclusive mode; commit')
  await until('core waits', isWaiting('Lock relation'))
  await foreign.look()
  await locked
  await vacuum
  expect(foreign.ended).toBe(1)
  attacker.release(true)
})

test('a session with a snapshot that nobody waits for is not ended while another role blocks core', async () => {
  const owner = await connect(ownerUrl)
  try {
    await owner.query('begin; lock table wallet in access exclusive mode')
    const locked = openAs('ledger', chainKey).query('begin; lock table wallet in exclusive mode; commit')
    // Like a session of core that has just begun and has no mark yet.
    const unmarked = await openAs('ledger').connect()
    await unmarked.query('begin isolation level repeatable read; select from webhook')
    await until('core waits', async () => {
      await foreign.look()
      return foreign.describeBlocking() !== ''
    })
    await unmarked.query('commit')
    expect(foreign.ended).toBe(0)
    unmarked.release(true)
    await owner.query('commit')
    await locked
  } finally {
    await owner.end()
  }
})

test('sessions that keep replaced rows from removal one after another, each for a moment, are ended after a while', async () => {
  foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, createLog('test', 'silent').log, {
    keptMs: 500,
  })
  const attacker = openAs('psql')
  let last: PoolClient | undefined
  await until('one of them is ended', async () => {
    const next = await attacker.connect()
    next.on('error', () => {})
    await next.query('begin isolation level repeatable read; declare c cursor for select from wallet; fetch c')
    last?.release(true)
    last = next
    // Another transaction, after which the next session has another snapshot.
    await query(ownerUrl, 'select pg_current_xact_id()')
    await foreign.look()
    return foreign.ended > 0
  })
  last!.release(true)
})

test.each(['own', 'other'])(
  'a transaction that keeps replaced rows from removal is ended after a while, in a database: %s',
  async which => {
    const sessions = openAs('sessions', chainKey)
    foreign = new ForeignSessions(sessions, chainKey, createLog('test', 'silent').log, { keptMs: 1 })
    const url = which === 'own' ? serviceUrl : urlOf(serviceUrl, 'other')
    const session = await hold(openAs('psql', undefined, url), 34)
    await session.client.query('select pg_current_xact_id()')
    await until('it is ended', async () => {
      await foreign.look()
      return !(await isAlive(session))
    })
    expect(foreign.ended).toBe(1)
    session.client.release(true)
  },
)

test('a session that stays long is ended, and one of a core is not', async () => {
  const sessions = openAs('sessions', chainKey)
  foreign = new ForeignSessions(sessions, chainKey, createLog('test', 'silent').log, { stayMs: 1 })
  const elsewhere = openAs('psql', undefined, urlOf(serviceUrl, 'other'))
  const [session, core, other] = await Promise.all([
    hold(openAs('psql'), 37),
    hold(openAs('reads', chainKey), 38),
    hold(elsewhere, 39),
  ])
  await foreign.look()
  await until('it is ended', async () => !(await isAlive(session)))
  expect([await isAlive(core), await isAlive(other)]).toEqual([true, true])
  expect(foreign.ended).toBe(1)
  for (const { client } of [session, core, other]) client.release(true)
})

test('a session that has logged in and does not start is ended after a while, and one of another role is not', async () => {
  const sessions = openAs('sessions', chainKey)
  const { log, lines } = recordedLog()
  const patient = new ForeignSessions(sessions, chainKey, log, { startingMs: 600_000 })
  foreign = new ForeignSessions(sessions, chainKey, log, { startingMs: 1 })
  const [attacker, other] = [serviceUrl, ownerUrl].map(startLate)
  const starting = `select pid from pg_stat_activity where state = 'starting' and backend_xmin is not null`
  await until('both have logged in', async () => (await query(ownerUrl, starting)).length === 2)
  const ownPid = 'select pg_backend_pid()'
  const { rows: before } = await sessions.query(ownPid)
  for (let looks = 0; looks < 2; looks++) await patient.look()
  expect(patient.ended).toBe(0)
  await until('it is ended', async () => {
    await foreign.look()
    return foreign.ended > 0
  })
  expect(foreign.found).toBe(1)
  await attacker
  await foreign.look()
  expect([foreign.ended, foreign.found]).toEqual([1, 0])
  const [left, ...more] = await query(ownerUrl, starting)
  expect(more).toEqual([])
  expect(lines).toEqual([
    {
      fields: { sessions: [{ pid: expect.any(Number), state: 'starting' }] },
      message: expect.stringMatching('core ends sessions'),
    },
  ])
  expect(lines[0]!.fields).not.toEqual({ sessions: [{ pid: left!.pid, state: 'starting' }] })
  // Its connection is not closed because PostgreSQL has refused to end the other one.
  expect((await sessions.query(ownPid)).rows).toEqual(before)
  await query(ownerUrl, 'select pg_terminate_backend($1)', [left!.pid])
  await other
})

test('a session in another database that locks the role itself is ended when it blocks a migration', async () => {
  const client = await openAs('psql', undefined, urlOf(serviceUrl, 'other')).connect()
  client.on('error', () => {})
  const role = new URL(serviceUrl).username
  const change = `alter role ${role} set geqo = off`
  await client.query(change)
  await client.query(`begin; ${change}`)
  const migration = query(ownerUrl, `alter role ${role} reset all`)
  let isOver = false
  void migration.finally(() => (isOver = true))
  await until('the migration has ended', async () => {
    await foreign.look()
    return isOver
  })
  await migration
  expect(foreign.ended).toBe(1)
  client.release(true)
})

describe('what all databases of a server share', () => {
  test.each(['postgres', 'other'])(
    'a session with more subtransactions than snapshots have room for is ended at once: database %s',
    async name => {
      foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, createLog('test', 'silent').log)
      const [few, many] = await Promise.all(
        [35, 36].map(key => hold(openAs('psql', undefined, urlOf(serviceUrl, name)), key)),
      )
      for (const [{ client }, count] of [
        [few!, 60],
        [many!, 70],
      ] as const)
        for (let at = 0; at < count; at++) await client.query(`savepoint s; create temporary table t${at} ()`)
      await foreign.look()
      await until('it is ended', async () => !(await isAlive(many!, ownerUrl)))
      expect(await isAlive(few!, ownerUrl)).toBe(true)
      expect(foreign.ended).toBe(1)
      for (const { client } of [few!, many!]) client.release(true)
    },
  )

  test('a core whose look fails because the table of locks is full keeps its connection, and looks again', async () => {
    foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, createLog('test', 'silent').log)
    await foreign.look()
    const attacker = await openAs('psql').connect()
    attacker.on('error', () => {})
    await attacker.query('select pg_advisory_lock(2, n) from generate_series(1, 900) n')
    // What others have filled the table with does not count as the attacker's.
    const other = await openAs('other', undefined, ownerUrl).connect()
    await fillLockTable(other)
    await expect(foreign.look()).rejects.toMatchObject(full)
    await other.query('select pg_advisory_unlock(1, n) from generate_series(0, 400) n')
    await attacker.query('select pg_advisory_lock(2, n) from generate_series(901, 1100) n')
    await fillLockTable(other)
    await foreign.look().catch(error => expect(error).toMatchObject(full))
    expect(foreign.ended).toBe(1)
    for (const client of [attacker, other]) client.release(true)
  })

  test('a prepared transaction in another database is logged once', async () => {
    const { log, lines } = recordedLog()
    foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, log)
    const other = urlOf(serviceUrl, 'other')
    await query(other, `begin; select pg_advisory_xact_lock(1); prepare transaction 'mine'`)
    for (let looks = 0; looks < 2; looks++) await foreign.look()
    expect(lines.map(({ fields }) => fields)).toEqual([{ transaction: 'mine', database: 'other' }])
    await query(other, `rollback prepared 'mine'`)
  })

  test.each(['postgres', 'other'])(
    'a session that fills the table of locks is ended, and others get locks again: database %s',
    async name => {
      foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, createLog('test', 'silent').log)
      await foreign.look()
      const attacker = openAs('psql', undefined, urlOf(serviceUrl, name))
      const client = await attacker.connect()
      client.on('error', () => {})
      const anyLock = 'select pg_advisory_lock(1)'
      await fillLockTable(client)
      await expect(query(ownerUrl, anyLock)).rejects.toMatchObject(full)
      // The table may stay full for a moment, and then the rest of this look fails.
      await foreign.look().catch(error => expect(error).toMatchObject(full))
      await until('others get locks', () =>
        query(ownerUrl, anyLock).then(
          () => true,
          () => false,
        ),
      )
      expect(foreign.ended).toBe(1)
      client.release(true)
    },
  )

  describe('when cursors keep a page in every buffer', () => {
    /** Whether somebody can open a new session. */
    const isOpen = () =>
      query(ownerUrl, 'select').then(
        () => true,
        error => {
          expect(error).toMatchObject(withoutBuffers)
          return false
        },
      )

    test.each(['own', 'other'])(
      'their sessions are ended, and others can read again: looking on the %s connection',
      async which => {
        const core = await openAs('reads', chainKey).connect()
        await core.query('begin isolation level repeatable read; select from wallet')
        const [own, other] = [openAs('sessions', chainKey), openAs('reads', chainKey)]
        foreign = new ForeignSessions(own, chainKey, createLog('test', 'silent').log, { others: [other] })
        for (const pool of [own, other]) foreign.watchErrors(pool)
        await foreign.look()
        if (which === 'other') {
          await other.query('select')
          await own.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {})
        }
        const attacker = await openAs('psql').connect()
        attacker.on('error', () => {})
        await pinBuffers(attacker)
        expect(await isOpen()).toBe(false)
        await until('others can read', async () => {
          await foreign.look().catch(error => expect(error).toMatchObject(withoutBuffers))
          return isOpen()
        })
        expect(foreign.ended).toBe(1)
        await core.query('commit')
        for (const client of [attacker, core]) client.release(true)
      },
    )

    test('those of other roles are not ended, and the log says that the look fails', async () => {
      const { log, lines } = recordedLog()
      foreign = new ForeignSessions(openAs('sessions', chainKey), chainKey, log)
      const other = await openAs('other', undefined, ownerUrl).connect()
      await pinBuffers(other)
      await until('the log says so', async () => {
        await expect(foreign.look()).rejects.toMatchObject(withoutBuffers)
        return lines.length > 0
      })
      expect(lines).toEqual([
        {
          fields: expect.objectContaining({ check: 'foreign sessions', err: expect.objectContaining(withoutBuffers) }),
          message: 'a check of the database fails',
        },
      ])
      other.release(true)
    })
  })
})
