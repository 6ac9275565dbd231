import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts'
import { openPool } from './pool.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('a pool keeps one connection while it is idle, and closes the others', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const pool = openPool(database.serviceUrl, { name: 'idle', max: 3 })
  const pidOf = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid
  try {
    const pids = await Promise.all([pidOf(), pidOf(), pidOf()])
    expect(pool.totalCount).toBe(3)
    vi.advanceTimersByTime(600_000)
    expect(pool.totalCount).toBe(1)
    expect(pids).toContain(await pidOf())
  } finally {
    vi.useRealTimers()
    await pool.end()
  }
})
