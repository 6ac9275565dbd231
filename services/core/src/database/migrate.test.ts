import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Migration } from '@mikro-orm/migrations'
import { countViolations } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { retryUnavailable } from '../../../../cli/processes/retry.ts'
import { createTestDatabase, execute, query, urlOf } from '../../../../test/setup/database.ts'
import { type System, startSystem } from '../../../../test/setup/system.ts'
import { until } from '../../../../test/setup/until.ts'
import { verifyLedger } from '../../../../test/setup/verify.ts'
import { migrate } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import { migrationNames } from './migrations/names.ts'
import { openPool } from './pool.ts'

// The current core keeps working while the migrations of a later version run.
let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

class Additive extends Migration {
  override up(): void {
    this.addSql('alter table transfer add column category text')
    this.addSql(`alter table wallet add column color text not null default 'blue'`)
    this.addSql('create index transfer_category on transfer (workspace_id, category) where category is not null')
    this.addSql('create table later (id uuid primary key, wallet_id uuid not null)')
  }
}

class Broken extends Migration {
  override up(): void {
    this.addSql('alter table wallet add column broken text')
    this.addSql('drop table transfer cascade')
    this.addSql('create table half_done ()')
    this.addSql('select 1 / 0')
  }
}

const later = (name: string, next: typeof Additive) => (inSchema: (sql: string) => string) => [
  ...migrations(inSchema),
  { name, class: next },
]

/** Clients that pay continuously. `answered` is the number of answers so far; `stop` returns all of them. */
function keepPaying() {
  const [source, target] = system.wallets
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const codes: string[] = []
  let isPaying = true
  const order = () => ({
    bizId: `upgrade-${randomUUID()}`,
    sourceWalletId: source!.walletId,
    targetWalletId: target!.walletId,
    amount: '0.01',
    currency: 'USD',
  })
  const { workspaceId } = system
  const clients = Array.from({ length: 4 }, async () => {
    while (isPaying) {
      const call = { workspaceId, caller: { requestId: 'test' }, order: order() }
      // A busy machine rejects some.
      const paid = retryUnavailable(() => service.transfers.create.mutate(call))
      codes.push(
        await paid.then(
          ({ status }) => status,
          error => error.data?.appError?.code ?? String(error),
        ),
      )
    }
  })
  return {
    answered: () => codes.length,
    async stop(): Promise<string[]> {
      isPaying = false
      await Promise.all(clients)
      await service.close()
      return codes
    },
  }
}

const isReady = async () => (await fetch(`${system.coreUrl}/readyz`)).status === 200
const namesOf = async (sql: string) => (await query(system.database.ownerUrl, sql)).map(({ name }) => name)
const tables = () => namesOf('select tablename as name from pg_tables where schemaname = current_schema()')
const columnsOf = (table: string) =>
  namesOf(`select column_name as name from information_schema.columns where table_name = '${table}'`)
const applied = () => namesOf('select name from mikro_orm_migrations order by id')

test('concurrent migrations of an empty database run once', async () => {
  const server = inject('databaseServer')
  const name = `migrated_${randomUUID().replaceAll('-', '')}`
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  await execute(adminUrl, `create database ${name}`)
  const script = fileURLToPath(new URL('../migrate.ts', import.meta.url))
  const env = {
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    MIGRATION_DATABASE_URL: urlOf(server.ownerUrl, name),
    DATABASE_URL: urlOf(server.serviceUrl, name),
  }
  const outputs = await Promise.all(
    Array.from({ length: 3 }, async () => (await promisify(execFile)(process.execPath, [script], { env })).stdout),
  )
  const names = [...migrationNames]
  // The migrator logs its steps before.
  const lastLines = outputs.map(output => output.trimEnd().split('\n').at(-1))
  expect(lastLines.toSorted()).toEqual([
    `Applied ${names.join(', ')}.`,
    ...Array.from({ length: 2 }, () => 'The schema is up to date.'),
  ])
  const rows = await query(env.MIGRATION_DATABASE_URL, 'select name from mikro_orm_migrations order by id')
  expect(rows.map(row => row.name)).toEqual(names)
  await expect(execute(env.DATABASE_URL, 'create function pg_temp.f() return 1')).rejects.toThrow(
    'permission denied to create temporary tables in database',
  )
  await execute(adminUrl, `drop database ${name} with (force)`)
})

test('a failed migration leaves the schema unchanged, and core keeps working', async () => {
  const before = { tables: await tables(), columns: await columnsOf('wallet'), applied: await applied() }
  const load = keepPaying()
  await until('payments flow', () => load.answered() > 20)
  const { ownerUrl, serviceUrl } = system.database
  await expect(migrate(ownerUrl, serviceUrl, later('9001-broken', Broken))).rejects.toThrow('division by zero')
  const answered = load.answered()
  await until('payments flow', () => load.answered() > answered + 20)
  expect([...new Set(await load.stop())]).toEqual(['COMPLETED'])
  expect({ tables: await tables(), columns: await columnsOf('wallet'), applied: await applied() }).toEqual(before)
  expect(await isReady()).toBe(true)
  expect(await migrate(ownerUrl, serviceUrl)).toEqual([])
})

test('a migration that waits for a prepared transaction says so', async () => {
  const database = await createTestDatabase()
  const { ownerUrl, serviceUrl } = database
  const { username } = new URL(serviceUrl)
  await execute(ownerUrl, `begin; grant select on wallet to ${username}; prepare transaction 'kept'`)
  const reports: string[] = []
  const migration = migrate(ownerUrl, serviceUrl, undefined, sentence => reports.push(sentence))
  await until('it says what it waits for', () => reports.length > 0)
  expect(reports).toEqual([
    expect.stringMatching(/^The migration waits for a lock of a prepared transaction: .*rollback prepared/),
  ])
  await execute(ownerUrl, `rollback prepared 'kept'`)
  expect(await migration).toEqual([])
  await database.drop()
})

test('the previous core keeps serving during an additive migration, also while it waits for its lock', async () => {
  const { ownerUrl, serviceUrl } = system.database
  const reader = new pg.Client({ connectionString: ownerUrl })
  await reader.connect()
  await reader.query('begin; select count(*) from transfer')
  const load = keepPaying()
  await until('payments flow', () => load.answered() > 20)

  const reports: string[] = []
  const migration = migrate(ownerUrl, serviceUrl, later('9002-additive', Additive), sentence => reports.push(sentence))
  await until('the migration waits for the reader', () => isWaiting())
  await until('it has given up its lock request', async () => !(await isWaiting()))
  const held = load.answered()
  await until('payments flow', () => load.answered() > held + 20)
  const { processID } = reader as unknown as { processID: number }
  expect(reports).toEqual([`The migration waits for a lock of process ${processID} (role postgres, application "").`])
  await reader.end()
  expect(await migration).toEqual(['9002-additive'])

  const migrated = load.answered()
  await until('payments flow', () => load.answered() > migrated + 20)
  expect([...new Set(await load.stop())]).toEqual(['COMPLETED'])
  expect(await columnsOf('transfer')).toContain('category')
  expect(await isReady()).toBe(true)

  // Reads and writes of the changed tables, by old and new connections.
  const { workspaceId, admin, wallets } = system
  const caller = { requestId: 'test' }
  const another = await system.startCore()
  const client = createCoreClient({ url: another.url, token: system.adminToken })
  for (const each of [admin, client]) {
    const { walletId } = await each.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Later' })
    await each.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
    await each.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })
    const orders = await each.transfers.list.query({ workspaceId, caller, page: 0, size: 5, sort: [] })
    expect(orders.content).toHaveLength(5)
    const flows = await each.wallets.flows.query({
      workspaceId,
      caller,
      walletId: wallets[0]!.walletId,
      page: 0,
      size: 5,
      sort: [],
    })
    expect(flows.content).toHaveLength(5)
  }
  await client.close()
  // The verification of this version reports the new objects, and nothing else.
  const { violations, brokenRules } = await verifyLedger(system)
  expect(countViolations(brokenRules)).toBe(violations.length)
  expect(violations.map(({ ids }) => ids.object)).toEqual([
    'column public.later.id',
    'column public.later.wallet_id',
    'column public.transfer.category',
    'column public.wallet.color',
    'constraint public.later.later_id_not_null',
    'constraint public.later.later_pkey',
    'constraint public.later.later_wallet_id_not_null',
    'constraint public.wallet.wallet_color_not_null',
    'index public.later_pkey',
    'index public.transfer_category',
    'relation public.later',
    'service on public.later',
    // Its content is that of this version.
    'table mikro_orm_migrations',
  ])

  async function isWaiting(): Promise<boolean> {
    const waiting = await query(
      ownerUrl,
      `select pid from pg_stat_activity
       where datname = current_database() and application_name = 'core migrate' and wait_event_type = 'Lock'`,
    )
    return waiting.length > 0
  }
})

test('a migration sets the password of the role, which the role may have changed', async () => {
  const server = inject('databaseServer')
  const name = `role_${randomUUID().replaceAll('-', '')}`
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  await execute(adminUrl, `create database ${name}`)
  const ownerUrl = urlOf(server.ownerUrl, name)
  // Another role than that of the other test files.
  const serviceUrl = Object.assign(new URL(urlOf(server.serviceUrl, name)), { username: name }).href
  await migrate(ownerUrl, serviceUrl)
  await execute(serviceUrl, `alter role ${name} password 'mine'`)
  await expect(execute(serviceUrl, 'select 1')).rejects.toThrow('password authentication failed')
  await migrate(ownerUrl, serviceUrl)
  await execute(serviceUrl, 'select 1')
  await execute(ownerUrl, `drop owned by ${name}; drop role ${name}`)
  await execute(adminUrl, `drop database ${name} with (force)`)
})

test('a migration says that it could not revoke a right, because its role does not own the database', async () => {
  const server = inject('databaseServer')
  const name = `owned_${randomUUID().replaceAll('-', '')}`
  const owner = `${name}_owner`
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  await execute(adminUrl, `create database ${name}`)
  const superuserUrl = urlOf(server.ownerUrl, name)
  await execute(
    superuserUrl,
    `create role ${owner} login createrole password 'secret'; grant pg_read_all_stats to ${owner}; alter schema public owner to ${owner}`,
  )
  const ownerUrl = Object.assign(new URL(superuserUrl), { username: owner, password: 'secret' }).href
  const serviceUrl = Object.assign(new URL(urlOf(server.serviceUrl, name)), { username: name }).href
  const reports: string[] = []
  const run = () => migrate(ownerUrl, serviceUrl, undefined, sentence => reports.push(sentence))
  await run()
  const fix = `revoke temporary on database "${name}" from public, "${name}"`
  expect(reports).toEqual([
    `The role "${name}" may still create temporary tables: run as the owner of the database: ${fix}`,
  ])
  await execute(serviceUrl, 'create temporary table mine ()')
  await execute(superuserUrl, fix)
  await run()
  expect(reports).toHaveLength(1)
  await expect(execute(serviceUrl, 'create temporary table mine ()')).rejects.toThrow('permission denied')
  await execute(adminUrl, `drop database ${name} with (force)`)
  await execute(adminUrl, `drop role ${name}; drop role ${owner}`)
})

test('settings of the role cannot make PostgreSQL confirm a commit before it is durable', async () => {
  const { serviceUrl } = system.database
  const database = pg.escapeIdentifier(new URL(serviceUrl).pathname.slice(1))
  await execute(serviceUrl, `alter role wallet_service in database ${database} set synchronous_commit = off`)
  expect(await query(serviceUrl, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'off' }])
  const pool = openPool(serviceUrl, { name: 'test', max: 1 })
  try {
    const { rows } = await pool.query('show synchronous_commit')
    expect(rows).toEqual([{ synchronous_commit: 'on' }])
  } finally {
    await pool.end()
  }
})
