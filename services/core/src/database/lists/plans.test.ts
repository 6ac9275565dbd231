import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { idFromUuid } from '@workspace-wallet/contract'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, query, type TestDatabase } from '../../../../../test/setup/database.ts'
import { listOrders, listOrdersOfWallet } from '../../transfers/queries.ts'
import { listFlows, listWallets } from '../../wallets/queries.ts'
import type { ListDatabase, ListQuery } from './list-reader.ts'

/** Pages in order of creation read few blocks, even if the tables are new or just restored and were never analyzed. */
const rows = 20_000
const ids = {
  workspace: randomUUID(),
  dollarA: randomUUID(),
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
  const tables = ['wallet', 'transfer', 'ledger']
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
  const values: Record<string, unknown> = { ...ids, rows, orders: rows + rows / 10, wallets: rows }
  const sql = await readFile(new URL('../../../../../tools/bench/lists/fill.sql', import.meta.url), 'utf8')
  client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  await client.query(sql.replaceAll(/@(\w+)@/g, (_, name) => String(values[name])))
  await insertDeposits()
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

/** Inserts 5,000 deposits between two orders of the page in the middle. */
async function insertDeposits(): Promise<void> {
  const before = rows / 2 - 10
  const { workspace, dollarA } = ids
  const shift = (side: string) => `
    update transfer set ${side}_sequence = ${side}_sequence + 5000
    where workspace_id = '${workspace}' and ${side}_wallet_id = '${dollarA}' and ${side}_order_count > ${before};`
  await client.query(`
    set session_replication_role = replica;
    drop index transfer_source, transfer_target;
    ${shift('source')} ${shift('target')}
    create unique index transfer_source on transfer (workspace_id, source_wallet_id, source_sequence);
    create unique index transfer_target on transfer (workspace_id, target_wallet_id, target_sequence);
    insert into transfer (workspace_id, id, type, amount, currency, actor, request_id, created_at, source_wallet_id,
        source_sequence, source_order_count, source_balance, source_mac, target_wallet_id, target_sequence,
        target_order_count, target_balance, target_mac)
      select workspace_id, gen_random_uuid(), 'DEPOSIT', 1, 'USD', 'admin:test', 'test', created_at, gen_random_uuid(), n,
        0, -n, '', target_wallet_id, ${before} + n, ${before}, n, ''
      from (select workspace_id, created_at, uuid '${dollarA}' as target_wallet_id from transfer
          where workspace_id = '${workspace}' and '${dollarA}' in (source_wallet_id, target_wallet_id)
            and case source_wallet_id when '${dollarA}' then source_order_count else target_order_count end = ${before}) t,
        generate_series(1, 5000) n;
    update wallet set sequence = sequence + 5000 where workspace_id = '${workspace}' and id = '${dollarA}';
    reset session_replication_role`)
  const [found] = await query(
    database.ownerUrl,
    `select count(*)::int as deposits from transfer where type = 'DEPOSIT'`,
  )
  expect(found).toEqual({ deposits: 5000 })
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

const lists: Record<string, (db: ListDatabase, request: Request) => Promise<unknown>> = {
  orders: (db, request) => listOrders(db, workspaceId, request),
  "a wallet's orders": (db, request) => listOrdersOfWallet(db, workspaceId, walletId, request),
  "a wallet's orders in its currency": (db, { filter, ...request }) =>
    listOrdersOfWallet(db, workspaceId, walletId, { ...request, filter: { ...filter, currency: 'USD' } }),
  flows: (db, request) => listFlows(db, workspaceId, walletId, request),
  'flows of transfers': (db, { filter, ...request }) =>
    listFlows(db, workspaceId, walletId, { ...request, filter: { ...filter, type: 'TRANSFER' } }),
  wallets: (db, request) => listWallets(db, workspaceId, request),
}
type Request = { filter: { createdFrom?: Date }; sort: never[]; page: number; size: number }

describe.each(Object.keys(lists))('%s', name => {
  test.each([
    ['the first page', { page: 0, filter: {} }],
    ['a page in the middle', { page: 500, filter: {} }],
    ['a page since some time', { page: 10, filter: { createdFrom: new Date(Date.now() - 60_000) } }],
  ])('%s reads few blocks without statistics', async (_, asked) => {
    const queries: ListQuery<unknown>[] = []
    const db: ListDatabase = {
      async read(asked) {
        queries.push(asked)
        return []
      },
    }
    await lists[name]!(db, { sort: [], size: 20, ...asked })
    expect(queries).toMatchObject([{ cost: 'bounded' }])
    for (const plan of ['custom', 'generic'] as const) expect(await blocksOf(queries[0]!, plan), plan).toBeLessThan(500)
  })
})

test('the tables were not analyzed during the test', async () => {
  const { rows } = await client.query(`select from pg_stats where tablename in ('transfer', 'wallet')`)
  expect(rows).toEqual([])
})
