import { randomBytes } from 'node:crypto'
import { accessMaxAgeMs, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { createLog, parseKeyRing } from '@workspace-wallet/runtime'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { connect, query } from '../../../../test/setup/database.ts'
import { type FaultProxy, startFaultProxy } from '../../../../test/setup/fault-proxy.ts'
import { hidingAccessChanges } from '../../../../test/setup/hidden-changes.ts'
import { signRows } from '../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../test/setup/system.ts'
import { until } from '../../../../test/setup/until.ts'
import { type Key, KeyCache } from './key-cache.ts'

/**
 * A key cache and a real core, with a connection that can be cut. The tests control the cache's clock, so that assertions on
 * time do not depend on the speed of the machine.
 */

const ring = `k1:${randomBytes(32).toString('base64')}`
const leaseMs = 3_000

let system: System
let path: FaultProxy
let core: CoreClient
let nowMs: number
let cache: KeyCache
const opened: KeyCache[] = []

beforeAll(async () => {
  system = await startSystem({ gateways: 0, coreEnvironment: { KEY_ENCRYPTION_KEYS: ring } })
})
afterAll(() => system.stop())

beforeEach(async () => {
  path = await startFaultProxy(system.cores[0]!.port)
  core = createCoreClient({ url: path.url, token: system.gatewayToken })
  nowMs = 0
  cache = startCache()
  await until('the cache has polled core', () => cache.isCurrent)
})
afterEach(async () => {
  for (const each of opened.splice(0)) each.close()
  path.cut()
  await core.close()
})

function startCache(): KeyCache {
  const cache = new KeyCache(core, parseKeyRing(ring), createLog('gateway', 'silent').log, () => nowMs)
  opened.push(cache)
  cache.start()
  return cache
}

async function newKey(): Promise<string> {
  const { admin, workspaceId } = system
  const key = { workspaceId, ownerUserId: 'owner', scopes: ['wallet:read' as const] }
  const { apiKey } = await admin.apiKeys.create.mutate(key)
  return apiKey
}

/**
 * A cached key. The cache has polled all changes up to that of another, later key, so no change of this one is pending.
 */
async function newCachedKey(): Promise<string> {
  const [key, other] = [await newKey(), await newKey()]
  expect(await statusOf(other)).toBe('ACTIVE')
  await system.admin.apiKeys.disable.mutate({ apiKey: other })
  await until('the cache has dropped the other key', async () => (await statusOf(other)) === 'DISABLED')
  expect(await statusOf(key)).toBe('ACTIVE')
  return key
}

/** The status of a key in the cache; 'nothing' if the cache asks core. */
function cachedStatus(apiKey: string): Key['status'] | 'nothing' {
  const found = cache.find(apiKey)
  if (!(found instanceof Promise)) return found?.status ?? 'nothing'
  found.catch(() => {})
  return 'nothing'
}

async function statusOf(apiKey: string): Promise<string | undefined> {
  return (await cache.find(apiKey))?.status
}

const unavailable = { code: 'S002' }

test('a gateway that cannot reach core uses its cache for the lease, and not longer', async () => {
  const apiKey = await newCachedKey()
  path.cut()
  await system.admin.apiKeys.disable.mutate({ apiKey })
  nowMs += leaseMs - 1
  expect(cachedStatus(apiKey)).toBe('ACTIVE')
  nowMs += 1
  expect(cache.isCurrent).toBe(false)
  expect(cachedStatus(apiKey)).toBe('nothing')
  await expect(cache.find(apiKey)).rejects.toMatchObject(unavailable)
  await path.restore()
  await until('the cache has polled core again', () => cache.isCurrent)
  expect(await statusOf(apiKey)).toBe('DISABLED')
})

test('an answer that took as long as the lease is not used', async () => {
  const apiKey = await newKey()
  await system.cores[0]!.kill('SIGSTOP')
  const looked = Promise.resolve(cache.find(apiKey)).catch(error => error)
  // The look-up is sent in the next turn of the event loop.
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  nowMs += leaseMs
  await system.cores[0]!.kill('SIGCONT')
  expect(await looked).toMatchObject(unavailable)
})

test('a change is polled again if the answer was lost', async () => {
  const apiKey = await newCachedKey()
  path.loseAnswers()
  await system.admin.apiKeys.disable.mutate({ apiKey })
  const lost = path.lost()
  await until('answers were lost after the change', () => path.lost() > lost + 1)
  expect(cachedStatus(apiKey)).toBe('ACTIVE')
  await path.restore()
  await until('the change arrives', async () => (await statusOf(apiKey)) === 'DISABLED')
})

test('a gateway that starts without core accepts no request', async () => {
  const apiKey = await newKey()
  path.cut()
  cache = startCache()
  expect(cache.isCurrent).toBe(false)
  await expect(cache.find(apiKey)).rejects.toMatchObject(unavailable)
  await path.restore()
  await until('the new cache has polled core', () => cache.isCurrent)
  expect(await statusOf(apiKey)).toBe('ACTIVE')
})

test('a change that commits late is not missed when a later one waits for it', async () => {
  const [first, second] = [await newCachedKey(), await newCachedKey()]
  expect([cachedStatus(first), cachedStatus(second)]).toEqual(['ACTIVE', 'ACTIVE'])
  const { ownerUrl } = system.database
  const late = await connect(ownerUrl)
  // The same statements as core, without a commit yet.
  await late.query('begin')
  const { rows } = await late.query('update access_revision set revision = revision + 1 returning revision')
  const isFirst = `id = '${uuidFromId('apiKey', first)}'`
  await late.query(
    `update api_key set status = 'DISABLED', access_revision = $1, revision = revision + 1 where ${isFirst}`,
    [rows[0].revision],
  )
  await signRows(late, system.chainKey, 'api_key', isFirst)
  const change = system.admin.apiKeys.disable.mutate({ apiKey: second })
  const waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
  await until('the second change waits for the first', async () => (await query(ownerUrl, waits)).length > 0)
  await late.query('commit')
  await late.end()
  await change
  await until('both arrive', () => cachedStatus(first) !== 'ACTIVE' && cachedStatus(second) !== 'ACTIVE')
  expect([await statusOf(first), await statusOf(second)]).toEqual(['DISABLED', 'DISABLED'])
})

test('a change that the owner of the tables has hidden from the polls is in force after half a minute', async () => {
  const apiKey = await newCachedKey()
  await hidingAccessChanges(system.database, () => system.admin.apiKeys.disable.mutate({ apiKey }))
  nowMs += accessMaxAgeMs - 1
  await until('the cache has polled core', () => cache.isCurrent)
  expect(cachedStatus(apiKey)).toBe('ACTIVE')
  nowMs += 1
  expect(await statusOf(apiKey)).toBe('DISABLED')
  expect(cachedStatus(apiKey)).toBe('DISABLED')
})

/** Rewrites the history of changes, and disables a key in its first revision. */
async function rewriteHistory(key: string, history: string): Promise<void> {
  const owner = await connect(system.database.ownerUrl)
  const isKey = `id = '${uuidFromId('apiKey', key)}'`
  await owner.query('begin; set local session_replication_role = replica')
  await owner.query(`${history}; update api_key set status = 'DISABLED', access_revision = 1 where ${isKey}`)
  await signRows(owner, system.chainKey, 'api_key', isKey)
  await owner.query('commit')
  await owner.end()
}

test('a database with another history under the same numbers is detected: cached keys are not used', async () => {
  const key = await newCachedKey()
  // A replica that lacks the last changes took over. It has other changes under the same revisions, and the cached key was
  // disabled in a revision that the gateway has passed.
  await rewriteHistory(
    key,
    `delete from access_change;
     insert into access_change (revision)
       select revision - n from access_revision, generate_series(0, 1) n`,
  )
  await until('the cache is cleared', () => cachedStatus(key) === 'nothing')
  expect(await statusOf(key)).toBe('DISABLED')
})

test('a database that was reset to an earlier state is detected', async () => {
  const key = await newCachedKey()
  await rewriteHistory(key, 'delete from access_change where revision > 1; update access_revision set revision = 1')
  await until('the cache is cleared', () => cachedStatus(key) === 'nothing')
  expect(await statusOf(key)).toBe('DISABLED')
})
