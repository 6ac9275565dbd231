import { randomBytes, randomUUID } from 'node:crypto'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { query } from './setup/database.ts'
import { type GatewayApp, startGatewayApp } from './setup/gateway-app.ts'
import { type System, startSystem } from './setup/system.ts'
import { createKey } from './setup/workspaces.ts'

/** A gateway whose clock differs from the clocks of its clients, the other gateways, and Redis. */

const keyEncryptionKeys = `k1:${randomBytes(32).toString('base64')}`
const list = '/api/v1/wallets'
/** How many seconds the clock of this gateway is ahead. */
let aheadSeconds = 0
let system: System
let gateway: GatewayApp
let baseUrl: string
beforeAll(async () => {
  const keys = { KEY_ENCRYPTION_KEYS: keyEncryptionKeys }
  system = await startSystem({ coreEnvironment: keys, gatewayEnvironment: keys })
  const now = () => Date.now() + aheadSeconds * 1000
  gateway = await startGatewayApp(system, { keyEncryptionKeys, now })
  baseUrl = gateway.baseUrl
})
afterAll(async () => {
  await gateway.close()
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
  'a gateway whose clock is %i s ahead serves requests, and shares nonces with the other gateways',
  async ahead => {
    aheadSeconds = ahead
    const request = fresh()
    expect(await send(request)).toBe('2000')
    expect(await send(request, system.baseUrl)).toBe('GA2013')
  },
)

test('while its clock is an hour off, in either direction, a gateway rejects every request', async () => {
  for (const ahead of [3600, -3600]) {
    aheadSeconds = ahead
    expect(await send(fresh())).toBe('GA2013')
    aheadSeconds = 0
    expect(await send(fresh())).toBe('2000')
  }
})

test('a key expires at its time, by the clock of the gateway, without any change in core', async () => {
  const expiring = await createKey(system, { expiresAt: new Date(Date.now() + 3600_000) })
  const codeOf = async () => (await call({ ...expiring, baseUrl }, 'GET', list)).body.code
  expect(await codeOf()).toBe('2000')
  // Two hours ahead, the key's status is checked before the timestamp, which is outside the window.
  aheadSeconds = 7200
  expect(await codeOf()).toBe('GA2021')
  expect(await send(fresh())).toBe('GA2013')
})

test('a clock that goes back does not let a request be replayed', async () => {
  const requests = [-50, 0, 50].map(offset => fresh(offset))
  for (const request of requests) expect(await send(request)).toBe('2000')
  for (const ahead of [-40, 40, 0]) {
    aheadSeconds = ahead
    for (const request of requests) expect(await send(request)).toBe('GA2013')
  }
})

test('a request whose nonce might expire too early, because clocks differ too much, fails with S002', async () => {
  aheadSeconds = 30
  // Within the window on the clock of this gateway, and 85 s ahead on the clock of Redis.
  expect(await send(fresh(85))).toBe('S002')
  expect(await send(fresh(0))).toBe('2000')
})

/** A module that sets the clock of a Node process a day ahead. */
const dayAhead = `data:text/javascript,${encodeURIComponent(`
  const Real = Date
  const now = () => Real.now() + 86400000
  globalThis.Date = class Date extends Real {
    constructor(...parts) { if (parts.length > 0) super(...parts); else super(now()) }
    static now() { return now() }
  }`)}`

test('the clock of a core sets no stored time: all of them come from PostgreSQL', async () => {
  const core = await system.startCore({ NODE_OPTIONS: `--import=${dayAhead}` })
  const admin = createCoreClient({ url: core.url, token: system.adminToken })
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Ahead' })
  const member = { workspaceId, userId: 'ada' }
  await admin.members.add.mutate(member)
  const key = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
  await admin.apiKeys.rotate.mutate({ ...key, graceMs: 60_000 })
  // In the future on the clock of PostgreSQL, in the past on that of core.
  const expiresAt = new Date(Date.now() + 3600_000)
  expect(await admin.apiKeys.setExpiry.mutate({ ...key, expiresAt })).toEqual({ expiresAt })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Ahead' })
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })
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
