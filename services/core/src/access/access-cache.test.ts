import { randomUUID } from 'node:crypto'
import { accessLeaseMs, accessMaxAgeMs, type Scope } from '@workspace-wallet/contract'
import type { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { execute } from '../../../../test/setup/database.ts'
import { hidingAccessChanges } from '../../../../test/setup/hidden-changes.ts'
import { until } from '../../../../test/setup/until.ts'
import { AccessCache } from './access-cache.ts'

/** A cache of a core that polls for changes when the test says so, with a clock of the test. */

let opened: TestCore
let nowMs: number
let cache: AccessCache
beforeAll(async () => {
  opened = await openTestCore()
})
afterAll(() => opened.close())
beforeEach(async () => {
  nowMs = 0
  isHolding = false
  cache = newCache()
  await cache.poll()
})

function newCache(limit?: number): AccessCache {
  return new AccessCache({ ...opened.core, reads }, { elapsedMs: () => nowMs, ...(limit && { limit }) })
}

/** The connections of core, whose answers can be held back. */
const reads = {
  async query(statement: never) {
    const answer = await opened.core.reads.query(statement)
    if (isHolding) {
      heldAnswers++
      await held.promise
    }
    return answer
  },
} as unknown as Pool
let held: PromiseWithResolvers<void>
let heldAnswers: number
let isHolding = false

/** Holds all answers of PostgreSQL back until the returned function is called. */
function holdAnswers(): () => void {
  held = Promise.withResolvers()
  heldAnswers = 0
  isHolding = true
  return () => {
    isHolding = false
    held.resolve()
  }
}

const admin = () => opened.as('admin')

async function newKey(options: { scopes?: Scope[]; expiresAt?: Date } = {}): Promise<{ apiKey: string }> {
  const { workspaceId } = await admin().workspaces.create({ name: 'Test' })
  await admin().members.add({ workspaceId, userId: 'owner' })
  const scopes: Scope[] = ['wallet:read']
  const { apiKey } = await admin().apiKeys.create({ workspaceId, ownerUserId: 'owner', scopes, ...options })
  return { apiKey }
}

const codeOf = ({ apiKey }: { apiKey: string }, scope: Scope = 'wallet:read') =>
  cache.require(apiKey, scope).then(
    () => 'allowed',
    error => error.code,
  )

test('a key that is disabled is allowed until the next poll, and without one until the lease has ended', async () => {
  const [key, other] = [await newKey(), await newKey()]
  await cache.poll()
  for (const each of [key, other]) expect(await codeOf(each)).toBe('allowed')
  for (const each of [key, other]) await admin().apiKeys.disable(each)
  nowMs += accessLeaseMs - 1
  expect(await codeOf(key)).toBe('allowed')
  nowMs += 1
  expect(await codeOf(key)).toBe('GA2021')
  await cache.poll()
  expect(await codeOf(other)).toBe('GA2021')
})

test('a poll that failed does not extend the lease', async () => {
  const key = await newKey()
  await cache.poll()
  expect(await codeOf(key)).toBe('allowed')
  await admin().apiKeys.disable(key)
  nowMs += accessLeaseMs - 1
  await execute(opened.database.ownerUrl, 'alter table access_change rename to access_change_away')
  await expect(cache.poll()).rejects.toThrow('access_change')
  await execute(opened.database.ownerUrl, 'alter table access_change_away rename to access_change')
  nowMs += 1
  expect(await codeOf(key)).toBe('GA2021')
})

test('after a change that this core made, cached keys are read again, also if a poll in progress does not know the change', async () => {
  const key = await newKey()
  await cache.poll()
  expect(await codeOf(key)).toBe('allowed')
  const release = holdAnswers()
  const poll = cache.poll()
  await until('the poll has read', () => heldAnswers === 1)
  await admin().apiKeys.disable(key)
  nowMs += 1
  cache.expire()
  release()
  await poll
  expect(await codeOf(key)).toBe('GA2021')
})

test('a change that the owner of the tables has hidden from the polls is in force after half a minute, and is counted', async () => {
  const hidden = async () =>
    (await opened.core.metrics.registry.getSingleMetricAsString('core_modified_rows_total')).match(
      /"api_key"\} (\d+)/,
    )?.[1]
  const [key, other] = [await newKey(), await newKey()]
  await cache.poll()
  for (const each of [key, other]) expect(await codeOf(each)).toBe('allowed')
  await hidingAccessChanges(opened.database, () => admin().apiKeys.disable(key))
  nowMs += accessMaxAgeMs - 1
  await cache.poll()
  expect(await codeOf(key)).toBe('allowed')
  expect(await hidden()).toBe('0')
  nowMs += 1
  expect(await codeOf(other)).toBe('allowed')
  expect(await hidden()).toBe('0')
  expect(await codeOf(key)).toBe('GA2021')
  expect(await hidden()).toBe('1')
})

test('nobody is refused because of an outdated row', async () => {
  const key = await newKey()
  await admin().apiKeys.disable(key)
  await cache.poll()
  expect(await codeOf(key)).toBe('GA2021')
  await admin().apiKeys.enable(key)
  expect(await codeOf(key)).toBe('allowed')
  expect(await codeOf(key, 'transfer:create')).toBe('GA2024')
  await admin().apiKeys.setScopes({ ...key, scopes: ['transfer:create'] })
  expect(await codeOf(key, 'transfer:create')).toBe('allowed')
})

test('a key that was read before a change is not cached after the poll that reports the change', async () => {
  const key = await newKey()
  await cache.poll()
  const release = holdAnswers()
  const reading = codeOf(key)
  await until('the key is read', () => heldAnswers === 1)
  await admin().apiKeys.disable(key)
  isHolding = false
  await cache.poll()
  release()
  expect(await reading).toBe('allowed')
  expect(cache.size).toBe(0)
  expect(await codeOf(key)).toBe('GA2021')
})

test('a key that is read too slowly is not used: S002', async () => {
  const key = await newKey()
  await cache.poll()
  const release = holdAnswers()
  const reading = codeOf(key)
  await until('the key is read', () => heldAnswers === 1)
  nowMs += accessLeaseMs
  release()
  expect(await reading).toBe('S002')
  expect(cache.size).toBe(0)
})

test('in a database with another history, all keys are read again', async () => {
  const key = await newKey()
  await cache.poll()
  expect(await codeOf(key)).toBe('allowed')
  expect(cache.size).toBe(1)
  await execute(
    opened.database.ownerUrl,
    `update access_change set epoch = '${randomUUID()}' where revision = (select revision from access_revision)`,
  )
  await cache.poll()
  expect(cache.size).toBe(0)
  expect(await codeOf(key)).toBe('allowed')
})

test('keeps a limited number of keys', async () => {
  cache = newCache(2)
  await cache.poll()
  for (let count = 1; count <= 5; count++) {
    expect(await codeOf(await newKey())).toBe('allowed')
    expect(cache.size).toBeLessThanOrEqual(2)
    expect(cache.size).toBeGreaterThan(0)
  }
})
