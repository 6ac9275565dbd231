import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, query, type TestDatabase } from '../../../../../test/setup/database.ts'
import { positionOf, readStoredPage } from '../../events/queries.ts'
import { listHolds } from '../../holds/queries.ts'
import { listOrders, listOrdersOfWallet } from '../../transfers/queries.ts'
import { readFlowsAfter, readPastBalances, sumOut } from '../../wallets/past-balances.ts'
import { listFlows, listWallets } from '../../wallets/queries.ts'
import { run } from '../statement.ts'
import type { ListDatabase, ListQuery } from './list-reader.ts'

/** Pages in order of creation read few blocks, even if the tables are new or just restored and were never analyzed. */
const rows = 20_000
const orders = rows + rows / 10
const events = orders + 5_000 + orders / 50 + 5_000
const ids = {
  workspace: randomUUID() as string as Uuid<'workspace'>,
  dollarA: randomUUID() as string as Uuid<'wallet'>,
  dollarB: randomUUID(),
  euroA: randomUUID(),
  euroB: randomUUID(),
}
const workspaceId = idFromUuid('workspace', ids.workspace)
const walletId = idFromUuid('wallet', ids.dollarA)

let database: TestDatabase
let client: pg.Client
beforeAll(async () => {
  database = await createTestDatabase()
  const { workspace, ...wallets } = ids
  const tables = ['wallet', 'transfer', 'ledger', 'journal', 'hold']
  for (const table of tables) await query(database.ownerUrl, `alter table ${table} set (autovacuum_enabled = off)`)
  await query(
    database.ownerUrl,
    "insert into ledger (workspace_id, last_posted_at, revision, mac) values ($1, now(), 1, '')",
    [workspace],
  )
  for (const [at, [name, id]] of Object.entries(wallets).entries())
    await query(
      database.ownerUrl,
      `insert into wallet (workspace_id, id, number, kind, name, currency, status, created_at, updated_at, revision, mac)
       values ($1, $2, $3, 'CUSTOMER', 'Filled', $4, 'ACTIVE', now(), now(), 1, '')`,
      [workspace, id, at + 1, name.startsWith('dollar') ? 'USD' : 'EUR'],
    )
  const values: Record<string, unknown> = { ...ids, rows, orders, wallets: rows }
  const sql = await readFile(new URL('../../../../../tools/bench/parts/lists/fill.sql', import.meta.url), 'utf8')
  client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  await client.query(sql.replaceAll(/@(\w+)@/g, (_, name) => String(values[name])))
  await insertDeposits()
  await insertJournal()
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

/** Inserts 5,000 deposits between two orders of the page in the middle of the wallet's list. */
async function insertDeposits(): Promise<void> {
  const before = rows / 2 - 10
  const { workspace, dollarA } = ids
  const shift = (side: string) => `
    update transfer set ${side}_sequence = ${side}_sequence + 5000
    where workspace_id = '${workspace}' and ${side}_wallet_id = '${dollarA}' and ${side}_order_count > ${before};`
  await client.query(`
    set session_replication_role = replica;
    drop index transfer_source, transfer_target, transfer_position;
    ${shift('source')} ${shift('target')}
    create unique index transfer_source on transfer (workspace_id, source_wallet_id, source_sequence);
    create unique index transfer_target on transfer (workspace_id, target_wallet_id, target_sequence);
    with last as (
      select * from transfer where workspace_id = '${workspace}' and '${dollarA}' in (source_wallet_id, target_wallet_id)
        and case source_wallet_id when '${dollarA}' then source_order_count else target_order_count end = ${before}),
    shifted as (
      update transfer t set position = t.position + 5000 from last
      where t.workspace_id = '${workspace}' and t.position > last.position)
    insert into transfer (workspace_id, id, position, order_count, type, amount, currency, actor, request_id, created_at,
        source_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_wallet_id,
        target_sequence, target_order_count, target_balance, target_mac)
      select workspace_id, gen_random_uuid(), position + n, order_count, 'DEPOSIT', 1, 'USD', 'admin:test', 'test',
        created_at, gen_random_uuid(), n, 0, -n, '', '${dollarA}', ${before} + n, ${before}, n, ''
      from last, generate_series(1, 5000) n;
    create unique index transfer_position on transfer (workspace_id, position);
    update wallet set sequence = sequence + 5000 where workspace_id = '${workspace}' and id = '${dollarA}';
    update ledger set position = position + 5000 where workspace_id = '${workspace}';
    reset session_replication_role`)
  const [found] = await query(
    database.ownerUrl,
    `select count(*)::int as deposits from transfer where type = 'DEPOSIT'`,
  )
  expect(found).toEqual({ deposits: 5000 })
}

/** Inserts a row of the journal after every fiftieth order, and 5,000 between two orders of the page in the middle. */
async function insertJournal(): Promise<void> {
  const before = orders - 10_010
  const { workspace, dollarA } = ids
  await client.query(`
    set session_replication_role = replica;
    drop index transfer_position;
    create temp table added as
      select order_count, row_number() over (order by order_count) as place
      from (select generate_series(50, ${orders}, 50) union all select ${before} from generate_series(1, 5000)) _ (order_count);
    create index on added (order_count, place);
    analyze added;
    insert into journal (workspace_id, position, order_count, id, type, wallet_id, status, actor, request_id, created_at,
        mac)
      select workspace_id, t.position + place, t.order_count, gen_random_uuid(), 'wallet.frozen', '${dollarA}', 'FROZEN',
        'admin:test', 'test', t.created_at, ''
      from transfer t join added using (order_count) where t.workspace_id = '${workspace}' and t.type = 'TRANSFER';
    update transfer t
    set position = position + coalesce((
      select place from added a where a.order_count < t.order_count + (t.type <> 'TRANSFER')::integer
      order by a.order_count desc, place desc limit 1), 0)
    where workspace_id = '${workspace}';
    create unique index transfer_position on transfer (workspace_id, position);
    update ledger set position = position + (select count(*) from added) where workspace_id = '${workspace}';
    reset session_replication_role`)
  const [log] = await query(
    database.ownerUrl,
    `select l.position::int, count(*)::int, count(distinct e.position)::int as places, max(e.position)::int as last
     from ledger l, (select position from transfer union all select position from journal) e group by l.position`,
  )
  expect(log).toEqual({ position: events, count: events, places: events, last: events })
}

/** The number of blocks that a statement reads with a custom or a generic plan. */
async function blocksOf({ statement, values }: ListQuery<unknown>, plan: 'custom' | 'generic'): Promise<number> {
  await client.query(`set plan_cache_mode = force_${plan}_plan`)
  await client.query(`prepare page as ${statement.text}`)
  const bound = values.map(value => pg.escapeLiteral(String(value))).join(', ')
  const result = await client.query(`explain (analyze, buffers, timing off, format json) execute page (${bound})`)
  await client.query('deallocate page')
  const { Plan } = result.rows[0]['QUERY PLAN'][0]
  return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
}

function recording(): { db: ListDatabase; queries: ListQuery<unknown>[] } {
  const queries: ListQuery<unknown>[] = []
  const db: ListDatabase = {
    async read(asked) {
      queries.push(asked)
      return run(client, { ...asked.statement, name: '' }, asked.values)
    },
  }
  return { db, queries }
}

/** None of these lists shows a due hold. */
const ledgerWaits = { wait: () => Promise.reject(new Error('a due hold')) }
const lists: Record<string, (db: ListDatabase, request: Request) => Promise<unknown>> = {
  orders: (db, request) => listOrders(db, workspaceId, request),
  "a wallet's orders": (db, request) => listOrdersOfWallet(db, workspaceId, walletId, request),
  "a wallet's orders in its currency": (db, { filter, ...request }) =>
    listOrdersOfWallet(db, workspaceId, walletId, { ...request, filter: { ...filter, currency: 'USD' } }),
  flows: (db, request) => listFlows(db, workspaceId, walletId, request),
  'flows of transfers': (db, { filter, ...request }) =>
    listFlows(db, workspaceId, walletId, { ...request, filter: { ...filter, type: 'TRANSFER' } }),
  wallets: (db, request) => listWallets(db, workspaceId, request),
  holds: (db, request) => listHolds({ lists: db, ledgerWaits }, workspaceId, undefined, request),
  "a wallet's holds": (db, request) => listHolds({ lists: db, ledgerWaits }, workspaceId, walletId, request),
}
type Request = { filter: { createdFrom?: Date }; sort: never[]; page: number; size: number }

describe.each(Object.keys(lists))('%s', name => {
  test.each([
    ['the first page', { page: 0, filter: {} }],
    ['a page in the middle', { page: 500, filter: {} }],
    ['a page since some time', { page: 10, filter: { createdFrom: new Date(Date.now() - 60_000) } }],
  ])('%s reads few blocks without statistics', async (_, asked) => {
    const { db, queries } = recording()
    await lists[name]!(db, { sort: [], size: 20, ...asked })
    expect(queries).toMatchObject([{ cost: 'bounded' }])
    for (const plan of ['custom', 'generic'] as const) expect(await blocksOf(queries[0]!, plan), plan).toBeLessThan(500)
  })
})

describe('events', () => {
  test.each([
    ['the first page', 0],
    ['a page in the middle', events / 2],
    ['the last page', events - 500],
  ])('%s reads few blocks without statistics', async (_, after) => {
    const { db, queries } = recording()
    const page = await readStoredPage(db, ids.workspace, { after, size: 500, types: [] })
    // The event before the page is read as well, because the answer names it.
    const first = Math.max(after, 1)
    expect(page!.events.map(positionOf)).toEqual(Array.from({ length: after + 501 - first }, (_, at) => first + at))
    expect(queries).toMatchObject([{ cost: 'events' }])
    for (const plan of ['custom', 'generic'] as const)
      expect(await blocksOf(queries[0]!, plan), plan).toBeLessThan(1_500)
  })

  test('a filter by type reads 10,000 positions at most', async () => {
    for (const [types, mostBlocks] of [
      [['wallet.withdrawn'], 12_000],
      [['wallet.closed'], 6_000],
    ] as const)
      for (const after of [0, events / 2, events - 500]) {
        const { db, queries } = recording()
        const page = await readStoredPage(db, ids.workspace, { after, size: 500, types: [...types] })
        const last = Math.min(after + 10_000, events)
        expect(page!.info).toMatchObject({ after, last })
        expect(page!.events.map(positionOf)).toEqual(after === 0 ? [last] : [after, last])
        for (const plan of ['custom', 'generic'] as const)
          expect(await blocksOf(queries[0]!, plan), plan).toBeLessThan(mostBlocks)
      }
  })
})

test('open holds are found without reading those that ended', async () => {
  for (const wallet of [undefined, walletId]) {
    const { db, queries } = recording()
    const page = await listHolds({ lists: db, ledgerWaits }, workspaceId, wallet, {
      filter: { status: 'OPEN' },
      sort: [],
      page: 0,
      size: 20,
    })
    expect(page!.page.totalElements).toBe((wallet ? rows : orders) / 100)
    expect(await blocksOf(queries[0]!, 'custom')).toBeLessThan(1_000)
  }
})

test('the tables were not analyzed during the test', async () => {
  const { rows } = await client.query(
    `select from pg_stats where tablename in ('transfer', 'wallet', 'journal', 'hold')`,
  )
  expect(rows).toEqual([])
})

describe('statements', () => {
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const of = [workspaceId, walletId] as const
  const blocks = async (read: (db: ListDatabase) => Promise<unknown>) => {
    const { db, queries } = recording()
    await read(db)
    return Math.max(await blocksOf(queries[0]!, 'custom'), await blocksOf(queries[0]!, 'generic'))
  }

  test('a balance at a time, and the lines of a statement, read few blocks without statistics', async () => {
    for (const to of [0, 1, 2, 60].map(minutesAgo))
      expect(await blocks(db => readPastBalances(db, ...of, { from: minutesAgo(3), to }))).toBeLessThan(500)
    for (const after of [0, rows / 2, rows])
      expect(await blocks(db => readFlowsAfter(db, ...of, { after, upTo: after + 1_000 }))).toBeLessThan(3_500)
  })

  test('the sum of a statement reads its own flows only, with and without statistics', async () => {
    for (const command of ['select', 'analyze transfer']) {
      await client.query(command)
      for (const after of [0, rows / 2, rows])
        expect(
          await blocks(db =>
            sumOut(db, { workspace: ids.workspace, wallet: ids.dollarA }, { after, upTo: after + 1_000 }),
          ),
          command,
        ).toBeLessThan(2_000)
    }
  })
})
