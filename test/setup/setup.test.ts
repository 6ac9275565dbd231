import { createClient } from 'redis'
import { afterAll, expect, inject, test } from 'vitest'
import { userOf } from '../../cli/processes/processes.ts'
import { startRedis } from '../../cli/processes/redis.ts'
import { createTestDatabase, execute, query } from './database.ts'
import { until } from './until.ts'

const databases = [await createTestDatabase(), await createTestDatabase()] as const
const redis = await startRedis()

afterAll(async () => {
  await redis.stop()
  for (const database of databases) await database.drop()
})

test('each test database has the schema, and test databases share no tables', async () => {
  const [first, second] = databases
  await execute(first.ownerUrl, 'create table only_here ()')
  const tables = 'select table_name from information_schema.tables where table_schema = current_schema()'
  const inFirst = await query(first.ownerUrl, tables)
  const inSecond = await query(second.ownerUrl, tables)
  expect(inFirst).toContainEqual({ table_name: 'only_here' })
  expect(inSecond).not.toContainEqual({ table_name: 'only_here' })
  expect(inSecond.length).toBeGreaterThan(0)
})

test('the service role is not a superuser', async () => {
  const rows = await query(databases[0].serviceUrl, 'select rolsuper from pg_roles where rolname = current_user')
  expect(rows).toEqual([{ rolsuper: false }])
})

test('the shared Redis answers', async () => {
  const client = await createClient({ url: inject('redisUrl') }).connect()
  expect(await client.ping()).toBe('PONG')
  client.destroy()
})

test('Redis does not run as root', async () => {
  expect(await userOf(redis.pid())).toBeGreaterThan(0)
})

test('a Redis of a test can be killed, restarted on its port, frozen and thawed', async () => {
  const client = createClient({ url: redis.url, socket: { reconnectStrategy: 10 } })
  client.on('error', () => {})
  await client.connect()
  await client.set('key', 'value')

  await redis.kill()
  await until('the connection is lost', () => !client.isReady)
  await redis.restart()
  expect(await client.get('key')).toBe(null)

  redis.freeze()
  const answer = client.ping()
  const frozen = await Promise.race([answer, new Promise(resolve => setTimeout(resolve, 200, 'no answer'))])
  expect(frozen).toBe('no answer')
  redis.thaw()
  expect(await answer).toBe('PONG')
  client.destroy()
})
