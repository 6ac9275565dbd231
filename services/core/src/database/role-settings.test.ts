import { randomUUID } from 'node:crypto'
import type { Log } from '@workspace-wallet/runtime'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, execute, query, type TestDatabase } from '../../../../test/setup/database.ts'
import { openPool } from './pool.ts'
import { resetHugeSettings } from './role-settings.ts'

/** Not that of the service, whose settings hold for the databases of all tests. */
const role = `role_${randomUUID().replaceAll('-', '')}`
let database: TestDatabase
let here: string
let url: string
let pool: pg.Pool
let lines: { fields: Record<string, unknown>; message: string }[]
const log = {
  debug() {},
  error: (fields: Record<string, unknown>, message: string) => lines.push({ fields, message }),
} as unknown as Log
beforeAll(async () => {
  database = await createTestDatabase('template1')
  here = new URL(database.ownerUrl).pathname.slice(1)
  url = Object.assign(new URL(database.serviceUrl), { username: role, password: role }).href
  await execute(database.ownerUrl, `create role ${role} login password '${role}'`)
})
afterAll(async () => {
  await database.drop()
  await execute(new URL('postgres', database.ownerUrl).href, `drop role ${role}`)
})
beforeEach(() => {
  lines = []
  pool = openPool(url, { name: 'sessions', max: 1 })
})
afterEach(() => pool.end())

/** As the role itself. */
const set = (name: string, value: string, where = '') =>
  execute(url, `alter role ${role} ${where} set ${name} = ${value}`)
const settings = async () =>
  (
    await query(
      database.ownerUrl,
      `select unnest(setconfig) as text from pg_db_role_setting where setrole = '${role}'::regrole`,
    )
  )
    .map(({ text }) => (text as string).slice(0, 30))
    .sort()

const megabytes = (count: number) => `repeat('x', ${count}000000)`
/** The value is computed in the database. */
const setHuge = (name: string, value = megabytes(10), where = '') =>
  execute(url, `do $$ begin execute format('alter role ${role} ${where} set ${name} = %L', ${value}); end $$`)

test('huge settings are reset, for one database and for all, and short ones remain', async () => {
  await set('datestyle', `'German'`)
  await resetHugeSettings(pool, log)
  expect(await settings()).toEqual(['DateStyle=German'])
  expect(lines).toEqual([])
  await setHuge('application_name')
  await setHuge('search_path', megabytes(10), `in database ${here}`)
  // Its settings exist in sessions that have used the language only.
  await setHuge(
    'plpgsql.extra_errors',
    `repeat('shadowed_variables,', 100000) || 'shadowed_variables'`,
    `in database ${here}`,
  )
  await resetHugeSettings(pool, log)
  expect(await settings()).toEqual([])
  expect(lines).toEqual([
    { fields: { bytes: expect.any(Number) }, message: expect.stringContaining('were reset') },
    { fields: { bytes: expect.any(Number) }, message: expect.stringContaining('were reset') },
  ])
})
