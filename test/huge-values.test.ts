import { uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { query } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { type System, startSystem } from './setup/system.ts'
import { webhooksOf } from './setup/webhooks.ts'

/**
 * An attacker has the role of the service. A value in PostgreSQL may have a gigabyte, which would fill the memory of every program
 * that reads it, before it can check a MAC. So no column that the role can write takes one.
 */

let system: System
let workspace: string
beforeAll(async () => {
  system = await startSystem()
  workspace = `'${uuidFromId('workspace', system.workspaceId)}'`
  await fillTables()
})
afterAll(() => system.stop())

const asService = (sql: string) => query(system.database.serviceUrl, sql)
const garbage = `decode(repeat('01', 32), 'hex')`
const post = async (path: string, body: object) =>
  expect((await call(system, 'POST', path, body)).body.code).toBe('2000')

/** One row at least in every table that the service writes. */
async function fillTables(): Promise<void> {
  const [{ walletId: a } = {}, { walletId: b } = {}] = system.wallets
  const { workspaceId, admin } = system
  await post(createPath, { sourceWalletId: a, targetWalletId: b, amount: '1.00', currency: 'USD', bizId: 'rent' })
  const hold = { walletId: a, amount: '1.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'room' }
  await post('/api/v1/hold/command/create', hold)
  await admin.limits.set.mutate({ workspaceId, subject: { walletId: a! }, currency: 'USD', perDay: '100.00' })
  await admin.operators.create.mutate({ name: 'ada', role: 'viewer' })
  const webhooks = webhooksOf(system)
  await webhooks.create({ url: 'https://receiver.example/', secrets: [] })
  await webhooks.close()
  const refusal = {
    at: new Date(),
    method: 'GET',
    route: 'none',
    code: 'GA2012',
    step: 'signature',
    detail: '',
    apiKey: system.apiKey,
    address: '203.0.113.7',
    requestId: 'req_1',
    isSigned: false,
  }
  const gateway = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
  await gateway.refusals.report.mutate({ refusals: [refusal], dropped: 0 })
  await gateway.close()
  await asService(`insert into checkpoint_part (upload_id, part, content) values (gen_random_uuid(), 0, '')`)
  await asService(
    `insert into verified_ledger (workspace_id, position, order_count, journal_head, audit_position, audit_mac, wallets, audit)
     values (gen_random_uuid(), 0, 0, '', 0, '', '', '')`,
  )
  await asService(
    `insert into workspace_move (workspace_id, generation, state, from_place, to_place, at, access_revision, revision, mac)
     values (gen_random_uuid(), 1, 'LEFT', 0, 1, now(), 0, 1, ${garbage})`,
  )
  await asService(
    `insert into instance (id, kind, name, host, version, started_at, waiting, unhealthy_cores)
     values (gen_random_uuid(), 'core', 'core', 'h', '1', now(), 0, 0)`,
  )
}

/** Nobody but the migration step writes these. */
const ofMigration = ['currency', 'mikro_orm_migrations']

test('no column of a table that the service writes takes a huge value', async () => {
  const { ownerUrl } = system.database
  const columns = await query(
    ownerUrl,
    `select c.relname as table, a.attname as column, coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all ($1) and a.attnum > 0
       and not a.attisdropped and t.typlen = -1
     order by 1, 2`,
    [ofMigration],
  )
  expect(new Set(columns.map(({ table }) => table)).size).toBeGreaterThan(12)
  const huge: Record<string, string[]> = {
    text: [`repeat('x', 5000000)`],
    bytea: [`decode(repeat('00', 5000000), 'hex')`],
    json: [`to_json(repeat('x', 5000000))`],
    // The second one compresses to two kilobytes in the row, and takes half a megabyte in a program.
    'text[]': [`array_fill('x'::text, array[1000000])`, `array_fill(''::text, array[512])`],
    // A few bytes in the row, and up to 131 kB as text.
    numeric: ['1e131071', '-1e131071', '1e57', '1e-16383', `'NaN'`, `'Infinity'`, `'-Infinity'`],
  }
  for (const { table, column, type } of columns) {
    // A check of the journal refuses amounts of events that have none.
    const constraint = type === 'numeric' && { constraint: expect.stringMatching(/_amount_check$/) }
    for (const value of huge[String(type)]!) {
      const set = `update ${table} set ${column} = ${value}`
      // Without triggers, which refuse most updates whatever the value is.
      const written = query(ownerUrl, `set session_replication_role = replica; ${set} returning 1`)
      await expect(written, set).rejects.toMatchObject({ code: '23514', ...constraint })
    }
  }
})

test('no column of a table that the service writes takes a time that programs cannot show', async () => {
  const { ownerUrl } = system.database
  const columns = await query(
    ownerUrl,
    `select c.relname as table, a.attname as column
     from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all ($1) and a.attnum > 0
       and not a.attisdropped and coalesce(nullif(t.typbasetype, 0), t.oid) = 'timestamptz'::regtype
     order by 1, 2`,
    [ofMigration],
  )
  expect(columns.length).toBeGreaterThan(30)
  const taken: string[] = []
  for (const { table, column } of columns)
    for (const value of ['infinity', '-infinity', '294276-12-31', '10000-01-01', '1969-12-31', '0044-03-15 BC']) {
      const set = `update ${table} set ${column} = '${value}'`
      const written = query(ownerUrl, `set session_replication_role = replica; begin; ${set}; rollback`)
      await written.then(
        () => taken.push(set),
        error => expect(error, set).toMatchObject({ code: '23514' }),
      )
    }
  expect(taken).toEqual([])
})

test('a halt with a huge reason is refused', async () => {
  const halt = asService(`select change_ledger_status(${workspace}, 'HALTED', repeat('x', 5000000), ${garbage})`)
  await expect(halt).rejects.toMatchObject({ code: '23514' })
})

test('however many ledgers are forged and halted, a list of them is short, and all are counted', async () => {
  const count = 1_500
  await asService(
    `select open_ledger(id, date_trunc('milliseconds', clock_timestamp()), ${garbage}),
       change_ledger_status(id, 'HALTED', 'forged', ${garbage})
     from (select gen_random_uuid() as id from generate_series(1, ${count}) offset 0) _`,
  )
  const { ledgers, total } = await system.admin.ledger.halted.query()
  expect([ledgers.length, total]).toEqual([1_000, count])
  expect(await readMetric(system.coreUrl, 'core_halted_workspaces')).toBe(count)
})

test('however many limits of a workspace are forged, each is listed as modified, and no list has all of them', async () => {
  const { workspaceId, admin } = system
  const forge = (amount: string, count: number) =>
    asService(
      `select set_limit(${workspace}, 'key:ak_' || lpad(n::text, 26, '0'), 'USD', ${amount}, ${amount}, current_date, ${amount}, 0,
         date_trunc('milliseconds', clock_timestamp()), ${garbage}, n + 1, ${garbage}) from generate_series(1, ${count}) n`,
    )
  await expect(forge('1e131071', 1)).rejects.toMatchObject({ code: '23514' })
  const count = 1_200
  await forge('9999', count)
  const listed = []
  let after: string | undefined
  do {
    const { limits, next } = await admin.limits.list.query({ workspaceId, after, limit: 500 })
    expect(limits.length).toBeLessThanOrEqual(500)
    listed.push(...limits)
    after = next ?? undefined
  } while (after !== undefined)
  const keys = new Set(listed.map(({ apiKey, walletId }) => apiKey ?? walletId))
  expect([listed.length, keys.size]).toEqual([count + 1, count + 1])
  const { walletId } = system.wallets[0]!
  const ofWallet = await admin.limits.list.query({ workspaceId, subject: { walletId } })
  expect(ofWallet).toMatchObject({ limits: [{ walletId, isModified: false }], next: null })
  expect(listed.filter(({ isModified }) => !isModified)).toEqual(ofWallet.limits)
  await expect(admin.limits.list.query({ workspaceId, after: 'x' })).rejects.toThrow('not the end of a page')
})

test('however many moves are forged, no list of operators fills the memory of core', async () => {
  const core = await system.startCore({ NODE_OPTIONS: '--max-old-space-size=160' })
  const admin = createCoreClient({ url: core.url, token: system.adminToken })
  // In parts, because core ends long sessions that others wait for.
  for (let part = 0; part < 6; part++)
    await asService(
      `insert into workspace_move (workspace_id, generation, state, from_place, to_place, at, access_revision, revision, mac)
       select gen_random_uuid(), 1, 'LEFT', 0, 1, now(), 0, 1, ${garbage} from generate_series(1, 25000)`,
    )
  for (const list of [
    () => admin.audit.list.query({}),
    () => admin.system.activity.query({ hours: 1 }),
    () => admin.search.find.query({ text: 'rent' }),
  ])
    await list()
  expect(core.process.signalCode).toBe(null)
  await admin.close()
})
