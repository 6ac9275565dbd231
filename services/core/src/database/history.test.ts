import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Uuid } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { takeBaseBackup } from '../../../../cli/backup/base-backup.ts'
import { restore } from '../../../../cli/backup/restore.ts'
import { type Postgres, startPostgres } from '../../../../cli/processes/postgres.ts'
import { signalProcess } from '../../../../cli/processes/processes.ts'
import { execute, query } from '../../../../test/setup/database.ts'
import { type FaultProxy, startFaultProxy } from '../../../../test/setup/fault-proxy.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../../../test/setup/replicated-postgres.ts'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { classifyDatabaseError } from './errors.ts'
import { DatabaseHistory, StaleDatabase } from './history.ts'
import { openPool } from './pool.ts'

const common = { port: 0, durable: false, superuserPassword: 'superuser' }
let directory: string
let server: Postgres
let address: FaultProxy
const servers: Postgres[] = []
const pools: Pool[] = []
beforeAll(async () => {
  directory = await makeTempDir('history')
  server = await start('first')
  address = await startFaultProxy(server.port)
})
afterEach(() => Promise.all(pools.splice(0).map(pool => pool.end())))
afterAll(async () => {
  address.cut()
  await Promise.all(servers.map(each => each.stop()))
})

async function start(name: string): Promise<Postgres> {
  const started = await startPostgres({ ...common, dataDir: join(directory, name) })
  servers.push(started)
  return started
}

/** Connections to what the address leads to. */
function open(history: DatabaseHistory, url = address.through(server.url('postgres'))): Pool {
  const pool = openPool(url, { name: 'test', max: 4, admit: client => history.admit(client) })
  pools.push(pool)
  return pool
}

async function leadTo({ port }: Postgres): Promise<void> {
  address.cut()
  address.pointTo(port)
  await address.restore()
}

/** @param leftAt when all workspaces have left; without it, none has */
const newHistory = (leftAt?: Date) =>
  new DatabaseHistory(createLog('test', 'silent').log, async (_, ids) => new Map(leftAt && ids.map(id => [id, leftAt])))
const reasonOf = (pool: Pool) =>
  pool.query('select 1').then(
    () => null,
    error => (error instanceof StaleDatabase ? error.reason : error),
  )
/** Moves the end of the log forward, by a segment: without a message, there may be nothing to switch from. */
const write = (to: Postgres) =>
  execute(to.url('postgres'), `select pg_logical_emit_message(false, 'test', ''); select pg_switch_wal()`)

test('a primary that has crashed and recovered is accepted', async () => {
  const history = newHistory()
  const pool = open(history)
  await write(server)
  expect(await reasonOf(pool)).toBe(null)
  signalProcess(server.pid, 'SIGKILL')
  await server.exited
  server = await start('first')
  await leadTo(server)
  await until('it answers', async () => (await reasonOf(pool)) === null)
  expect(history.refusal).toBe(null)
})

test('a copy that was restored while core runs is refused: it has the same timeline, and a shorter log', async () => {
  const backup = join(directory, 'backup.tar')
  await takeBaseBackup(server.url('postgres'), backup)
  await write(server)
  const history = newHistory()
  const pool = open(history)
  expect(await reasonOf(pool)).toBe(null)

  await restore(backup, join(directory, 'restored'))
  await leadTo(await start('restored'))
  await until('the connection is lost', async () => (await reasonOf(pool)) !== null)
  expect(await reasonOf(pool)).toBe('position')
  expect(history.refusal).toMatch(/^the log of the server ends at .*, and core has seen it up to /)
  // A core that has not seen more accepts it.
  expect(await reasonOf(open(newHistory()))).toBe(null)

  await leadTo(server)
  await until('it answers', async () => (await reasonOf(pool)) === null)
  expect(history.refusal).toBe(null)
})

test('another cluster is refused', async () => {
  const history = newHistory()
  const pool = open(history)
  expect(await reasonOf(pool)).toBe(null)
  await leadTo(await start('other'))
  await until('the connection is lost', async () => (await reasonOf(pool)) !== null)
  expect(await reasonOf(pool)).toBe('other_system')
  await leadTo(server)
})

test('a standby is refused; once it is promoted, connections to the former primary are closed, and it must have what was acknowledged', async () => {
  const postgres: ReplicatedPostgres = await startReplicatedPostgres({ isSynchronous: false })
  const [{ port } = { port: 0 }] = await query(postgres.ownerUrl, 'select inet_server_port() as port')
  const url = Object.assign(new URL(postgres.serviceUrl), { port }).href
  const history = newHistory()
  const client = await open(history, url).connect()
  const ended = new Promise<Error>(resolve => client.on('error', resolve))
  await postgres.connectToStandby()
  const pool = open(history, postgres.serviceUrl)
  expect(await reasonOf(pool)).toBe('standby')
  expect((await client.query('select 1')).rowCount).toBe(1)

  await execute(postgres.ownerUrl, 'select pg_promote()')
  await until('the promoted server is accepted', async () => (await reasonOf(pool)) === null)
  expect((await ended).message).toBe('the connection leads to a stale server')
  client.release(true)
  expect(await reasonOf(open(history, url))).toBe('timeline')

  // A commit that the promoted server lacks, of a workspace that has left afterwards, or before.
  const lost = {
    table: 'transfer',
    workspaceId: randomUUID() as Uuid<'workspace'>,
    position: 1,
    mac: randomBytes(32),
  } as const
  for (const [leftAt, reason] of [
    [new Date(Date.now() + 60_000), null],
    [new Date(Date.now() - 60_000), 'lost_commits'],
    [undefined, 'lost_commits'],
  ] as const) {
    const core = newHistory(leftAt)
    expect(await reasonOf(open(core, url))).toBe(null)
    core.acknowledge(lost)
    expect(await reasonOf(open(core, postgres.serviceUrl))).toBe(reason)
  }
  await postgres.stop()
})

test('what is refused is unavailable', () => {
  expect(classifyDatabaseError(new StaleDatabase('timeline', 'the server is on timeline 1'))).toBe('unavailable')
})
