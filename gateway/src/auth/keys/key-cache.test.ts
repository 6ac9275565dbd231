import { randomBytes } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { createLog, parseKeyRing } from '@workspace-wallet/runtime'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { connect, query } from '../../../../test/setup/database.ts'
import { type FaultProxy, startFaultProxy } from '../../../../test/setup/fault-proxy.ts'
import { signRows } from '../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../test/setup/system.ts'
import { until } from '../../../../test/setup/until.ts'
import { type Key, KeyCache } from './key-cache.ts'

/**
 * How a gateway follows changes of keys, against a real core, on a way that can be cut. The clock by which leases end is
 * the tests' own: what is asserted of time holds on a machine of any speed.
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
  cache = startDirectory()
  await until('the cache has heard of core', () => cache.isCurrent)
})
afterEach(async () => {
  for (const each of opened.splice(0)) each.close()
  path.cut()
  await core.close()
})

function startDirectory(): KeyCache {
  const made = new KeyCache(core, parseKeyRing(ring), createLog('gateway', 'silent').log, () => nowMs)
  opened.push(made)
  made.start()
  return made
}

async function newKey(): Promise<string> {
  const { admin, workspaceId } = system
  const key = { workspaceId, ownerUserId: 'owner', scopes: ['wallet:read' as const] }
  const { apiKey } = await admin.apiKeys.create.mutate(key)
  return apiKey
}

/**
 * A key that the cache keeps, and has no reason to drop: it has heard of every change up to a later one, that of
 * another key.
 */
async function keptKey(): Promise<string> {
  const [key, other] = [await newKey(), await newKey()]
  expect(await statusOf(other)).toBe('ACTIVE')
  await system.admin.apiKeys.disable.mutate({ apiKey: other })
  await until('it has dropped the other one', async () => (await statusOf(other)) === 'DISABLED')
  expect(await statusOf(key)).toBe('ACTIVE')
  return key
}

/** What the cache holds: an answer that needs no look-up. */
function kept(apiKey: string): Key['status'] | 'nothing' {
  const found = cache.isCached(apiKey) ? (cache.find(apiKey) as Key) : null
  return found?.status ?? 'nothing'
}

async function statusOf(apiKey: string): Promise<string | undefined> {
  return (await cache.find(apiKey))?.status
}

const outOfReach = { code: 'S002' }

test('a gateway that is cut off believes what it has for a lease, and not a moment longer', async () => {
  const apiKey = await keptKey()
  path.cut()
  await system.admin.apiKeys.disable.mutate({ apiKey })
  nowMs += leaseMs - 1
  expect(kept(apiKey)).toBe('ACTIVE')
  nowMs += 1
  expect(cache.isCurrent).toBe(false)
  expect(kept(apiKey)).toBe('nothing')
  await expect(cache.find(apiKey)).rejects.toMatchObject(outOfReach)
  await path.restore()
  await until('it has heard of core again', () => cache.isCurrent)
  expect(await statusOf(apiKey)).toBe('DISABLED')
})

test('an answer that took as long as a lease is not believed', async () => {
  const apiKey = await newKey()
  await system.cores[0]!.kill('SIGSTOP')
  const looked = Promise.resolve(cache.find(apiKey)).catch(error => error)
  // The look-up leaves in the next turn of the event loop.
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  nowMs += leaseMs
  await system.cores[0]!.kill('SIGCONT')
  expect(await looked).toMatchObject(outOfReach)
})

test('news that is lost on its way is told again', async () => {
  const apiKey = await keptKey()
  path.loseAnswers()
  await system.admin.apiKeys.disable.mutate({ apiKey })
  const lost = path.lost()
  await until('answers were lost after the change', () => path.lost() > lost + 1)
  expect(kept(apiKey)).toBe('ACTIVE')
  await path.restore()
  await until('the change arrives', async () => (await statusOf(apiKey)) === 'DISABLED')
})

test('a gateway that starts without core lets nobody in', async () => {
  const apiKey = await newKey()
  path.cut()
  cache = startDirectory()
  expect(cache.isCurrent).toBe(false)
  await expect(cache.find(apiKey)).rejects.toMatchObject(outOfReach)
  await path.restore()
  await until('it has heard of core', () => cache.isCurrent)
  expect(await statusOf(apiKey)).toBe('ACTIVE')
})

test('a change that commits late is not overtaken by one that began after it', async () => {
  const [first, second] = [await keptKey(), await keptKey()]
  expect([kept(first), kept(second)]).toEqual(['ACTIVE', 'ACTIVE'])
  const { ownerUrl } = system.database
  const late = await connect(ownerUrl)
  // As core does it, and not committed yet.
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
  await until('both arrive', () => kept(first) === 'nothing' && kept(second) === 'nothing')
  expect([await statusOf(first), await statusOf(second)]).toEqual(['DISABLED', 'DISABLED'])
})

/** Disables a key under the first access revision, as if it had been so for long. */
async function inAnotherHistory(key: string, history: string): Promise<void> {
  const owner = await connect(system.database.ownerUrl)
  const isKey = `id = '${uuidFromId('apiKey', key)}'`
  await owner.query('begin; set local session_replication_role = replica')
  await owner.query(`${history}; update api_key set status = 'DISABLED', access_revision = 1 where ${isKey}`)
  await signRows(owner, system.chainKey, 'api_key', isKey)
  await owner.query('commit')
  await owner.end()
}

test('a database with another history under the same numbers is noticed: nothing that was kept is believed', async () => {
  const key = await keptKey()
  // A copy that lacks the last changes takes over. It has others under their numbers, and the key that the gateway keeps
  // was disabled under a number that the gateway has passed.
  await inAnotherHistory(
    key,
    `delete from access_change;
     insert into access_change (revision)
       select revision - n from access_revision, generate_series(0, 1) n`,
  )
  await until('what was kept is forgotten', () => kept(key) === 'nothing')
  expect(await statusOf(key)).toBe('DISABLED')
})

test('a database that was set back to an earlier state is noticed', async () => {
  const key = await keptKey()
  await inAnotherHistory(key, 'delete from access_change where revision > 1; update access_revision set revision = 1')
  await until('what was kept is forgotten', () => kept(key) === 'nothing')
  expect(await statusOf(key)).toBe('DISABLED')
})
