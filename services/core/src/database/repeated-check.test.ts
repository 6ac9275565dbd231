import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, query, type TestDatabase } from '../../../../test/setup/database.ts'
import { isEnded } from './repeated-check.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test.each([
  ['select pg_terminate_backend(pg_backend_pid())', true],
  ['select pg_cancel_backend(pg_backend_pid())', true],
  [`set statement_timeout = '1ms'; select pg_sleep(60)`, false],
  ['select 1 / 0', false],
])('whether somebody has ended a session or cancelled its statement: %s', async (sql, expected) => {
  const error = await query(database.serviceUrl, sql).then(
    () => undefined,
    error => error,
  )
  expect(error).toBeInstanceOf(Error)
  expect(isEnded(error)).toBe(expected)
})
