import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPostgres } from '../../../../cli/processes/postgres.ts'
import { connect, execute, query } from '../../../../test/setup/database.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../../../test/setup/replicated-postgres.ts'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { watchDataDisk } from './data-disk.ts'
import { watchDatabaseServer } from './database-server.ts'
import { Metrics } from './metrics.ts'

let postgres: ReplicatedPostgres
let service: pg.Pool
const metrics = new Metrics()
beforeAll(async () => {
  postgres = await startReplicatedPostgres()
  service = new pg.Pool({ connectionString: postgres.serviceUrl })
  watchDatabaseServer(metrics, service)
})
afterAll(async () => {
  await service?.end()
  await postgres?.stop()
})

/** The series of a metric, by their labels. */
async function read(name: string): Promise<Record<string, number>> {
  const text = await metrics.registry.metrics()
  const series = text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (.*)$`, 'gm'))
  return Object.fromEntries(Array.from(series, ([, labels = '', value]) => [labels, Number(value)]))
}

const replicationState = 'standby="standby",sync_state="sync"'

test('the oldest transaction is that of any role', async () => {
  const name = 'core_database_oldest_transaction_seconds'
  const other = await connect(postgres.ownerUrl)
  try {
    await other.query('begin')
    const age = async () => {
      const sql = 'select extract(epoch from clock_timestamp() - transaction_timestamp())::float8 as age'
      return (await other.query<{ age: number }>(sql)).rows[0]!.age
    }
    await until('it is a second old', async () => (await age()) > 1)
    const youngest = await age()
    await until('the metric has it', async () => (await read(name))['']! >= youngest)
    await other.query('rollback')
    await until('it has ended', async () => (await read(name))['']! < youngest)
  } finally {
    await other.end()
  }
})

test('the oldest transaction may be that of a session that has logged in and not started', async () => {
  const late = new pg.Client({ connectionString: postgres.serviceUrl, options: '-c post_auth_delay=2000' })
  late.on('error', () => {})
  const ended = new Promise(resolve => late.once('end', resolve))
  late.connect().catch(() => {})
  const name = 'core_database_oldest_transaction_seconds'
  await until('the metric has it', async () => (await read(name))['']! > 1)
  await query(postgres.ownerUrl, `select pg_terminate_backend(pid) from pg_stat_activity where state = 'starting'`)
  await ended
  await until('it has ended', async () => (await read(name))['']! < 1)
})

test('transactions use up what is left until PostgreSQL refuses writes', async () => {
  const left = async () => (await read('core_database_transactions_left'))['']!
  const before = await until('the metric is read', async () => (await left()) || false)
  expect(before).toBeLessThan(2 ** 31 - 3_000_000)
  for (let at = 0; at < 20; at++) await query(postgres.ownerUrl, 'select pg_current_xact_id()')
  await until('they are counted', async () => (await left()) <= before - 20)
})

test('a standby that does not follow falls behind, and one that is gone is missing', async () => {
  const standbys = (connected: number) =>
    until(`${connected} standbys are connected`, async () => {
      const series = await read('core_database_synchronous_standbys')
      return series['state="required"'] === 1 && series['state="connected"'] === connected
    })
  const lag = async () => (await read('core_database_standby_lag_bytes'))[replicationState]!
  await standbys(1)
  await until('the standby has everything', async () => (await lag()) === 0)
  postgres.replication.freeze()
  await execute(
    postgres.ownerUrl,
    'set synchronous_commit = local; create table written as select generate_series(1, 10000)',
  )
  await until('the standby is behind', async () => (await lag()) > 100_000)
  postgres.replication.thaw()
  await until('the standby has caught up', async () => (await lag()) === 0)
  postgres.replication.cut()
  await standbys(0)
  await postgres.replication.restore()
  await standbys(1)
})

test('the owner of a replication slot and the archiver are seen, and what is kept for them', async () => {
  const up = () => read('core_database_log_receiver_up')
  const lag = () => read('core_database_log_receiver_lag_bytes')
  const archive = 'receiver="archive"'
  await until('there is none', async () => Object.keys(await up()).length === 0)
  await execute(postgres.ownerUrl, `select pg_create_physical_replication_slot('archive', true)`)
  await until('the slot is seen', async () => (await up())[archive] === 0)
  await execute(postgres.ownerUrl, 'create table kept as select generate_series(1, 10000)')
  await until('its log is kept', async () => (await lag())[archive]! > 100_000)
  await execute(postgres.ownerUrl, `select pg_drop_replication_slot('archive')`)
  await until('it is gone', async () => Object.keys(await up()).length === 0)
})

test('an archiver that fails is down, and up again when it has archived', async () => {
  const directory = await makeTempDir('archive')
  // PostgreSQL runs as another user if the tests run as root.
  await chmod(directory, 0o777)
  const archiving = await startPostgres({
    dataDir: join(await makeTempDir('archiving'), 'postgres'),
    port: 0,
    durable: false,
    superuserPassword: 'superuser',
    settings: { archive_mode: 'on', archive_library: 'basic_archive' },
  })
  const owner = archiving.url('postgres')
  const pool = new pg.Pool({ connectionString: owner })
  // end() does not wait until the connections are closed: the server may end them first.
  pool.on('error', () => {})
  const watched = new Metrics()
  watchDatabaseServer(watched, pool)
  const archiver = async (name: string) => {
    const text = await watched.registry.metrics()
    return new RegExp(`^core_database_log_receiver_${name}\\{receiver="archiver"\\} (.*)$`, 'm').exec(text)?.[1]
  }
  const archiveTo = async (path: string) => {
    await execute(owner, `alter system set basic_archive.archive_directory = '${path}'`)
    await execute(owner, 'select pg_reload_conf()')
    await execute(owner, 'create table if not exists written (); select pg_switch_wal()')
  }
  try {
    await archiveTo(directory)
    await until(
      'it archives',
      async () => (await archiver('up')) === '1' && Number(await archiver('lag_bytes')) < 2 ** 24,
    )
    await chmod(directory, 0o500)
    await execute(owner, 'create table more (); select pg_switch_wal()')
    await until('it fails', async () => (await archiver('up')) === '0')
    await until('a segment is not archived', async () => Number(await archiver('lag_bytes')) >= 2 ** 24)
    await chmod(directory, 0o777)
    await until('it archives again', async () => (await archiver('up')) === '1')
  } finally {
    await pool.end()
    await archiving.stop()
  }
})

test('the number of required standbys follows synchronous_standby_names', async () => {
  const settings = [
    ["''", 0],
    ["'*'", 1],
    ["'a, b'", 1],
    ["'ANY 2 (a, b, c)'", 2],
    ["'first 3 (a, b, c)'", 3],
    ["'2 (a, b)'", 2],
    ["'standby'", 1],
  ] as const
  for (const [setting, required] of settings) {
    await execute(postgres.ownerUrl, `alter system set synchronous_standby_names = ${setting}`)
    await execute(postgres.ownerUrl, 'select pg_reload_conf()')
    const series = () => read('core_database_synchronous_standbys')
    await until(`${setting} is ${required}`, async () => (await series())['state="required"'] === required)
  }
})

test('an owner without pg_read_all_stats leaves the standbys out', async () => {
  await execute(
    postgres.ownerUrl,
    `create role owner; grant create on schema public to owner; alter table ledger owner to owner;
     alter function replication_state owner to owner; alter function oldest_transaction_start owner to owner`,
  )
  await until(
    'there are no series',
    async () => Object.keys(await read('core_database_standby_lag_bytes')).length === 0,
  )
  expect(await read('core_database_synchronous_standbys')).toEqual({})
  await execute(postgres.ownerUrl, 'grant pg_read_all_stats to owner')
  await until('the standby is seen', async () => replicationState in (await read('core_database_standby_lag_bytes')))
})

test('the space of the disk of a directory is exported, and nothing for one that does not exist', async () => {
  const directory = await makeTempDir('disk')
  const watched = new Metrics()
  watchDataDisk(watched.registry, directory)
  const [metric] = (await watched.registry.getMetricsAsJSON()).filter(({ name }) => name === 'core_data_disk_bytes')
  const [available, total] = metric!.values.map(({ value }) => value)
  expect(available).toBeGreaterThan(0)
  expect(total).toBeGreaterThan(available!)
  const missing = new Metrics()
  watchDataDisk(missing.registry, `${directory}/missing`)
  expect(await missing.registry.metrics()).not.toContain('core_data_disk_bytes{')
})
