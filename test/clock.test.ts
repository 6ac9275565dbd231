import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createCoreClient } from '@workspace-wallet/core-client'
import { createLog, parseKeyRing } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { KeyCache } from '../gateway/src/auth/keys/key-cache.ts'
import { openRedisNonces } from '../gateway/src/auth/nonces/redis-store.ts'
import { createApp } from '../gateway/src/http/app.ts'
import { createMetrics } from '../gateway/src/internal/metrics.ts'
import { Denials } from '../gateway/src/observability/denials.ts'
import { SampledLog } from '../gateway/src/observability/sampled-log.ts'
import { call } from './setup/client.ts'
import { query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** A gateway whose clock is not that of its clients, of the other gateways, or of Redis. */

const keyEncryptionKeys = `k1:${randomBytes(32).toString('base64')}`
const list = '/api/v1/wallets'
/** How far the clock of this gateway is ahead. */
let aheadSeconds = 0
let system: System
let server: Server
let baseUrl: string
const closing: (() => unknown)[] = []
beforeAll(async () => {
  const keys = { KEY_ENCRYPTION_KEYS: keyEncryptionKeys }
  system = await startSystem({ coreEnvironment: keys, gatewayEnvironment: keys })
  const { log } = createLog('gateway', 'silent')
  const core = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
  const directory = new KeyCache(core, parseKeyRing(keyEncryptionKeys), log)
  const limits = { key: undefined, failures: undefined }
  const isFirst = async (generationId: string) =>
    (await core.access.beginNonceGeneration.mutate({ generationId })).isFirst
  const nonces = openRedisNonces(inject('redisUrl'), isFirst, limits, log)
  const metrics = createMetrics()
  const sampled = new SampledLog(log)
  const denials = new Denials(metrics.registry, sampled)
  const now = () => Date.now() + aheadSeconds * 1000
  const edge = { keys: directory, nonces, bodyLimitBytes: 65_536, trustedProxies: [], now, denials, log, sampled }
  server = createServer(
    createApp(edge, core, metrics, async () => ({
      status: (await nonces.fault()) === null ? 'ready' : 'not ready',
      parts: {},
    })),
  )
  directory.start()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closing.push(
    () => directory.close(),
    () => sampled.flush(),
    () => nonces.close(),
    () => core.close(),
  )
  await until('the gateway is ready', async () => (await fetch(`${baseUrl}/readyz`)).ok)
})
afterAll(async () => {
  server.close()
  server.closeAllConnections()
  for (const close of closing) await close()
  await system.stop()
})
beforeEach(() => {
  aheadSeconds = 0
})

type Sent = { nonce: string; timestamp: string }
const fresh = (offset = 0): Sent => ({
  nonce: randomUUID(),
  timestamp: String(Math.floor(Date.now() / 1000) + offset),
})
const send = async (sent: Sent, at = baseUrl) =>
  (await call({ ...system, baseUrl: at }, 'GET', list, undefined, sent)).body.code

test.each([-10, -5, 5, 10])(
  'a gateway that is %i s ahead serves, and shares nonces with one that is right',
  async ahead => {
    aheadSeconds = ahead
    const request = fresh()
    expect(await send(request)).toBe('2000')
    expect(await send(request, system.baseUrl)).toBe('GA2013')
  },
)

test('a clock that jumps an hour, either way, refuses everybody until it is back', async () => {
  for (const ahead of [3600, -3600]) {
    aheadSeconds = ahead
    expect(await send(fresh())).toBe('GA2013')
    aheadSeconds = 0
    expect(await send(fresh())).toBe('2000')
  }
})

test('a clock that runs back lets nothing in twice', async () => {
  const requests = [-50, 0, 50].map(offset => fresh(offset))
  for (const request of requests) expect(await send(request)).toBe('2000')
  for (const ahead of [-40, 40, 0]) {
    aheadSeconds = ahead
    for (const request of requests) expect(await send(request)).toBe('GA2013')
  }
})

test('a clock that is further off than nonces allow for: S002 where nonces might expire too early', async () => {
  aheadSeconds = 30
  // Within the window by the clock of this gateway, and 85 s ahead by that of Redis.
  expect(await send(fresh(85))).toBe('S002')
  expect(await send(fresh(0))).toBe('2000')
})

/** Node's own clock, a day ahead, for a whole process. */
const dayAhead = `data:text/javascript,${encodeURIComponent(`
  const Real = Date
  const now = () => Real.now() + 86400000
  globalThis.Date = class Date extends Real {
    constructor(...parts) { if (parts.length > 0) super(...parts); else super(now()) }
    static now() { return now() }
  }`)}`

test("the clock of a core reaches no time that is stored: all of them are PostgreSQL's", async () => {
  const core = await system.startCore({ NODE_OPTIONS: `--import=${dayAhead}` })
  const admin = createCoreClient({ url: core.url, token: system.adminToken })
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Ahead' })
  const member = { workspaceId, userId: 'ada' }
  await admin.members.add.mutate(member)
  const key = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
  await admin.apiKeys.rotate.mutate({ ...key, graceMs: 60_000 })
  // A time that is still to come by PostgreSQL's clock has passed by core's.
  const expiresAt = new Date(Date.now() + 3600_000)
  expect(await admin.apiKeys.setExpiry.mutate({ ...key, expiresAt })).toEqual({ expiresAt })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Ahead' })
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00' })
  await admin.wallets.freeze.mutate({ workspaceId, walletId })
  await admin.members.remove.mutate(member)
  await admin.workspaces.delete.mutate({ workspaceId, force: true })
  await admin.close()

  const { ownerUrl } = system.database
  const columns = await query(
    ownerUrl,
    `select table_name, column_name from information_schema.columns
     where table_schema = 'public' and data_type = 'timestamp with time zone' and table_name not like 'mikro%'`,
  )
  expect(columns.length).toBeGreaterThan(15)
  for (const { table_name: table, column_name: column } of columns) {
    const [row] = await query(
      ownerUrl,
      `select coalesce(max(${column}) < clock_timestamp() + interval '2 hours', true) as "isPast" from ${table}`,
    )
    expect(row!.isPast, `${table}.${column}`).toBe(true)
  }
})
