import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/setup/database.ts'
import { type PoolName, poolSettings, settingsOf } from './session-settings.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Defaults that the role of a session may have. */
const hostile = [
  'search_path=pg_temp',
  'standard_conforming_strings=off',
  'backslash_quote=on',
  'quote_all_identifiers=on',
  'DateStyle=German',
  'default_transaction_isolation=serializable',
  'synchronous_commit=off',
  'statement_timeout=1min',
  'plpgsql.extra_errors=all',
]

test.each(Object.keys(poolSettings) as PoolName[])('connect_query sets all settings of the pool %s', async pool => {
  const options = hostile.map(setting => `-c ${setting}`).join(' ')
  const client = new pg.Client({ connectionString: database.serviceUrl, options })
  await client.connect()
  try {
    await client.query(`select public.set_session('${pool}')`)
    const expected: Record<string, string> = settingsOf('public', poolSettings[pool])
    const { rows } = await client.query<{ name: string; value: string }>(
      // PostgreSQL shows the value of the system in place of 0.
      `select name, case when starts_with(name, 'tcp_') then '0' else current_setting(name) end as value
       from unnest($1::text[]) as name`,
      [Object.keys(expected)],
    )
    expect(Object.fromEntries(rows.map(({ name, value }) => [name, value]))).toEqual(expected)
  } finally {
    await client.end()
  }
})

test('the service may not change what connect_query sets', async () => {
  const replace = `create or replace function public.set_session(pool text) returns bigint language sql as 'select 0'`
  await expect(execute(database.serviceUrl, replace)).rejects.toMatchObject({ code: '42501' })
})
