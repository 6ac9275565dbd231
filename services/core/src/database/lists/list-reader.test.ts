import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../../test/setup/database.ts'
import { until } from '../../../../../test/setup/until.ts'
import type { Statement } from '../statement.ts'
import { ListReader } from './list-reader.ts'

let database: TestDatabase
let pool: pg.Pool
const connections = 5
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.serviceUrl, max: connections, pipeline: true } as pg.PoolConfig)
  // Dropping the database closes connections of the pool.
  pool.on('error', () => {})
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

type Answer = { answer: string }
const pageStatement: Statement<Answer> = { name: 'test-page', text: "select 'page' as answer" }
const page = (workspace: string) => ({
  workspace,
  cost: 'bounded' as const,
  statement: pageStatement,
  values: [],
})
const search = (workspace: string, text: string) => ({
  workspace,
  cost: 'search' as const,
  statement: { name: '', text } as Statement<Answer>,
  values: [],
  blamed: 'currency',
})

test('a search that takes too long fails with S012 and names the parameter to change', async () => {
  const reader = new ListReader(pool, connections, { shortMs: 10, longMs: 20 })
  const refusal = { code: 'S012', details: { field: 'currency', reason: 'TOO_EXPENSIVE', limit: 0.02 } }
  await expect(reader.read(search('a', 'select pg_sleep(60)'))).rejects.toMatchObject(refusal)
  const next = new ListReader(pool, connections, { shortMs: 60_000 })
  expect(await next.read(search('a', "select 'next' as answer"))).toEqual([{ answer: 'next' }])
  expect(pool.idleCount).toBe(pool.totalCount)
})

test('a failed search releases its connection', async () => {
  const reader = new ListReader(pool, connections)
  for (let count = 0; count < 2 * connections; count++)
    await expect(reader.read(search('a', 'select nonsense'))).rejects.toMatchObject({ code: '42703' })
  expect(await reader.read(search('a', "select 'next' as answer"))).toEqual([{ answer: 'next' }])
})

test('a search runs on one processor, in a read-only transaction', async () => {
  const reader = new ListReader(pool, connections)
  const settings = ['transaction_read_only', 'max_parallel_workers_per_gather', 'jit', 'enable_seqscan']
  const text = `select ${settings.map(name => `current_setting('${name}')`).join(" || ' ' || ")} as answer`
  expect(await reader.read(search('a', text))).toEqual([{ answer: 'on 0 off off' }])
  const { rows } = await pool.query(text)
  expect(rows).toEqual([{ answer: 'off 2 on on' }])
})

test('long searches of many workspaces do not delay the pages and short searches of another one', async () => {
  const blocker = new pg.Client({ connectionString: database.ownerUrl })
  await blocker.connect()
  await blocker.query('select pg_advisory_lock(1)')
  const running = async () => {
    const sql =
      "select count(*)::int as count from pg_stat_activity where datname = current_database() and state = 'active'"
    return (await blocker.query(`${sql} and query like '%wait_for_lock%' and pid <> pg_backend_pid()`)).rows[0]
      .count as number
  }
  // As a short search, this one is canceled at once. No other one takes so long that it becomes a long search.
  await blocker.query(`create function wait_for_lock() returns text language plpgsql as $$ begin
    if current_setting('statement_timeout') = '1min' then raise sqlstate '57014'; end if;
    perform pg_advisory_xact_lock(1); return 'long'; end $$`)
  const reader = new ListReader(pool, connections, { shortMs: 60_000, longMs: 600_000, waitMs: 600_000 })
  const waitForLock = 'select wait_for_lock() as answer'
  const long = ['a', 'a', 'b', 'b', 'c', 'd'].map(each => reader.read(search(each, waitForLock)))
  await until('one of them runs as a long search, and no other does', async () => (await running()) === 1)

  for (let count = 0; count < 20; count++) {
    const answers = [reader.read(page('victim')), reader.read(search('victim', "select 'short' as answer"))]
    expect(await Promise.all(answers)).toEqual([[{ answer: 'page' }], [{ answer: 'short' }]])
  }
  expect(await running()).toBe(1)
  await blocker.end()
  expect(await Promise.all(long)).toEqual(long.map(() => [{ answer: 'long' }]))
})
