import { randomBytes, randomUUID } from 'node:crypto'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { createLog, parseKeyRing } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KeyCache } from '../gateway/src/auth/keys/key-cache.ts'
import { type Credentials, call, createPath } from './setup/client.ts'
import { createTestDatabase, execute, query, type TestDatabase } from './setup/database.ts'
import { type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { logLines } from './setup/log-lines.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey, createWallet } from './setup/workspaces.ts'

/** Somebody has the password of the service's role, or of the owner of the tables, in one of two places. The other one is attacked. */

type Tenant = Credentials & { workspaceId: string; place: number; a: string; b: string }

const keyRing = `k1:${randomBytes(32).toString('base64')}`
let system: System
let second: TestDatabase
/** Between core and the second place. */
let proxy: FaultProxy

beforeAll(async () => {
  second = await createTestDatabase()
  proxy = await startFaultProxy(Number(new URL(second.serviceUrl).port))
  system = await startSystem({
    coreEnvironment: { KEY_ENCRYPTION_KEYS: keyRing, DATABASE_URLS: proxy.through(second.serviceUrl) },
    gatewayEnvironment: { KEY_ENCRYPTION_KEYS: keyRing },
  })
})
afterAll(async () => {
  proxy.thaw()
  await system.stop()
  proxy.cut()
  await second.drop()
})

const serviceUrls = () => [system.database.serviceUrl, second.serviceUrl]
const ownerUrls = () => [system.database.ownerUrl, second.ownerUrl]

async function newTenant(place: number): Promise<Tenant> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test', place })
  await admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const credentials = await createKey({ ...system, workspaceId })
  const a = await createWallet({ admin, workspaceId }, { name: 'A', deposits: ['100.00'] })
  const b = await createWallet({ admin, workspaceId }, { name: 'B' })
  return { ...credentials, workspaceId, place, a, b }
}

const pay = ({ a, b, ...credentials }: Tenant) =>
  call(credentials, 'POST', createPath, {
    bizId: randomUUID(),
    sourceWalletId: a,
    targetWalletId: b,
    amount: '1.00',
    currency: 'USD',
  })

/** A core and a gateway that have read nothing before. */
async function startFresh() {
  const core = await system.startCore()
  const gateway = await system.startGateway({ CORE_URL: core.url })
  await until('the gateway is ready', async () => (await fetch(`${gateway.url}/readyz`)).status === 200)
  const admin = createCoreClient({ url: core.url, token: system.adminToken })
  return {
    core,
    admin,
    of: (tenant: Tenant): Tenant => ({ ...tenant, baseUrl: gateway.url }),
    async stop() {
      await admin.close()
      await Promise.all([core.stop(), gateway.stop()])
    },
  }
}

/** Rows with the IDs of another place, as far as the role of the service may write them. None has a valid MAC. */
async function forge(url: string, { workspaceId, apiKey, a, b }: Tenant, webhookId: string): Promise<void> {
  const id = `'${uuidFromId('workspace', workspaceId)}'`
  const now = "date_trunc('milliseconds', clock_timestamp())"
  const mac = "'\\x00'"
  const openWallet = (walletId: string, currency: string) =>
    `select create_wallet(${id}, '${uuidFromId('wallet', walletId)}', null, null, 'A', '${currency}', ${now}, ${mac}, ${mac}, null);`
  await execute(
    url,
    `insert into workspace (id, name, created_at, updated_at, revision, mac) values (${id}, 'x', now(), now(), 1, ${mac});
     insert into member (workspace_id, user_id, created_at, revision, mac) values (${id}, 'owner', now(), 1, ${mac});
     insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version,
         created_at, updated_at, access_revision, revision, mac)
       values ('${uuidFromId('apiKey', apiKey)}', ${id}, 'owner', 'x', 'DISABLED', '{transfer:create}', '{}', 'k1:x', 1,
         now(), now(), 0, 1, ${mac});
     select open_ledger(${id}, ${now}, ${mac});
     ${openWallet(a, 'USD')} ${openWallet(b, 'EUR')}
     insert into webhook (id, workspace_id, biz_id, biz_id_mac, url, types, concurrency, status, secret, secret_version,
         created_at, updated_at, position, generation, leased_until, next_attempt_at, failures, revision, mac)
       values ('${uuidFromId('webhook', webhookId)}', ${id}, 'hook', ${mac}, 'https://x', '{}', 1, 'ACTIVE', 'k1:x', 1,
         now(), now(), 0, gen_random_uuid(), now(), now(), 0, 1, ${mac})`,
  )
}

async function repeatedly(until: AbortSignal, action: () => Promise<void>): Promise<void> {
  while (!until.aborted) await action()
}

describe.each([
  { name: 'the second place', attacked: 0, attacker: 1 },
  { name: 'home', attacked: 1, attacker: 0 },
])('with the role of $name, forged rows with the IDs of the other place', ({ attacked, attacker }) => {
  test('change nothing for its workspaces, keys, wallets and webhooks', async () => {
    const tenant = await newTenant(attacked)
    const { workspaceId, apiKey } = tenant
    const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
    const hook = { workspaceId, caller: { requestId: 'test' }, url: 'https://example.com/', bizId: 'hook', types: [] }
    const { webhookId } = await service.webhooks.create.mutate(hook)
    await service.close()
    await forge(serviceUrls()[attacker]!, tenant, webhookId)
    const fresh = await startFresh()
    const mine = fresh.of(tenant)
    expect(await pay(mine)).toMatchObject({ status: 200 })
    const { body } = await call(mine, 'GET', `/api/v1/wallets/${tenant.b}`)
    expect(body.data.balance).toBe('1.00')
    await fresh.admin.apiKeys.disable.mutate({ apiKey })
    expect((await pay(mine)).body.code).toBe('GA2021')
    await fresh.admin.apiKeys.enable.mutate({ apiKey })
    expect((await pay(mine)).status).toBe(200)
    const found = await fresh.admin.transfers.search.query({ walletId: tenant.b, limit: 10 })
    expect(found.transfers.length).toBe(2)
    const courier = createCoreClient({ url: fresh.core.url, token: system.courierToken })
    const report = { webhookId, generation: randomUUID(), delivered: null, lastStatus: 500, lastError: null }
    expect(await courier.courier.report.mutate({ ...report, failure: null })).toEqual({ accepted: false })
    await courier.close()
    await fresh.stop()
    expect(logLines(fresh.core).map(({ msg }) => msg)).toContainEqual(expect.stringContaining('modified outside'))
  })
})

test('a copy of a workspace in another place is not used, also while its own place does not answer', async () => {
  const tenant = await newTenant(1)
  const inWorkspace = `'${uuidFromId('workspace', tenant.workspaceId)}'`
  const tables = { workspace: 'id', ledger: 'workspace_id', member: 'workspace_id', api_key: 'workspace_id' }
  for (const [table, column] of Object.entries({ ...tables, wallet: 'workspace_id', transfer: 'workspace_id' })) {
    const rows = await query(
      ownerUrls()[1]!,
      `select to_jsonb(t)::text as text from ${table} t where ${column} = ${inWorkspace}`,
    )
    for (const { text } of rows)
      await query(
        ownerUrls()[0]!,
        `with replica as (select set_config('session_replication_role', 'replica', false))
         insert into ${table} select t.* from replica, jsonb_populate_record(null::${table}, $1) t`,
        [text],
      )
  }
  const fresh = await startFresh()
  const mine = fresh.of(tenant)
  expect(await pay(mine)).toMatchObject({ status: 200 })
  await fresh.stop()
  proxy.cut()
  const later = await startFresh()
  expect((await pay(later.of(tenant))).body.code).toBe('S002')
  const service = createCoreClient({ url: later.core.url, token: system.serviceToken })
  const order = { sourceWalletId: tenant.a, targetWalletId: tenant.b, amount: '1.00', currency: 'USD' }
  const create = { workspaceId: tenant.workspaceId, caller: { requestId: 'test' }, order }
  await expect(service.transfers.create.mutate(create)).rejects.toThrow('S002')
  await service.close()
  await proxy.restore()
  await until('the place of the workspace is served again', async () => (await pay(later.of(tenant))).status === 200)
  await later.stop()
})

test('a place that answers nothing stops no workspace of the others, also after a start', async () => {
  const [first, other] = [await newTenant(0), await newTenant(1)]
  const used = await startFresh()
  for (const tenant of [first, other]) expect((await pay(used.of(tenant))).status).toBe(200)
  proxy.freeze()
  try {
    await until('the keys of that place are not used any more', async () => (await pay(used.of(other))).status === 503)
    const fresh = await startFresh()
    for (const { of, admin } of [used, fresh])
      for (let count = 0; count < 5; count++) {
        expect(await pay(of(first))).toMatchObject({ status: 200 })
        expect((await admin.workspaces.get.query({ workspaceId: first.workspaceId })).workspaceId).toBeTruthy()
      }
    const courier = createCoreClient({ url: fresh.core.url, token: system.courierToken })
    const lease = await courier.courier.lease.mutate({ size: 1, held: [] })
    expect(lease.revoked).toEqual([])
    await courier.close()
    const { workspaceId } = await fresh.admin.workspaces.create.mutate({ name: 'New' })
    expect(
      await query(ownerUrls()[0]!, 'select from workspace where id = $1', [uuidFromId('workspace', workspaceId)]),
    ).toHaveLength(1)
    await fresh.stop()
  } finally {
    proxy.thaw()
  }
  await until('the other place is served again', async () => (await pay(used.of(other))).status === 200)
  await used.stop()
})

test('changes of access that the role of a place makes up do not make gateways forget the keys of the others', async () => {
  const [first, other] = [await newTenant(0), await newTenant(1)]
  const forged = `'${uuidFromId('workspace', mintId('workspace'))}'`
  await execute(
    serviceUrls()[1]!,
    `insert into workspace (id, name, created_at, updated_at, revision, mac) values (${forged}, 'x', now(), now(), 1, '\\x00');
     insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version,
         created_at, updated_at, access_revision, revision, mac)
       select gen_random_uuid(), ${forged}, 'x', 'x', 'ACTIVE', '{x}', '{}', 'x', 1, now(), now(), 0, 1, '\\x00'
       from generate_series(1, 1100)`,
  )
  const gateway = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
  const { log } = createLog('gateway', 'silent')
  // On a clock that stands still, so that no key is read again because of its age.
  const cache = new KeyCache(gateway, parseKeyRing(keyRing), log, () => 0)
  cache.start()
  const isCached = (apiKey: string) => {
    const found = cache.find(apiKey)
    if (!(found instanceof Promise)) return true
    // The client closes at the end, whatever is looked up then.
    found.catch(() => {})
    return false
  }
  await until('the cache has polled core', () => cache.isCurrent)
  for (const { apiKey } of [first, other])
    await until('the key is cached', async () => (await cache.find(apiKey)) && isCached(apiKey))
  const changes = new AbortController()
  // More keys than a poll lists.
  const changing = repeatedly(changes.signal, () =>
    execute(
      serviceUrls()[1]!,
      `update access_revision set revision = revision + 1;
       update api_key set access_revision = (select revision from access_revision) where workspace_id = ${forged}`,
    ),
  )
  for (let count = 0; count < 5; count++) {
    await until('the keys of that place are dropped', () => !isCached(other.apiKey))
    expect(cache.find(first.apiKey)).toMatchObject({ apiKey: first.apiKey, status: 'ACTIVE' })
  }
  changes.abort()
  await changing
  cache.close()
  await gateway.close()
})

test('a place whose tables have another chain key keeps no core from starting, and nothing of it is used', async () => {
  const tenants = [await newTenant(0), await newTenant(1)]
  const [row] = await query(ownerUrls()[1]!, 'select fingerprint from chain_key')
  await query(ownerUrls()[1]!, 'update chain_key set fingerprint = $1', [Buffer.alloc(32)])
  const fresh = await startFresh()
  const [inFirst, inSecond] = tenants.map(fresh.of) as [Tenant, Tenant]
  try {
    expect((await pay(inFirst)).status).toBe(200)
    expect((await pay(inSecond)).body.code).toBe('S002')
    const names = () => logLines(fresh.core).filter(line => JSON.stringify(line).includes('is not the key'))
    await until('the log says so', () => names().length > 0)
  } finally {
    await query(ownerUrls()[1]!, 'update chain_key set fingerprint = $1', [row!.fingerprint])
  }
  await until('the other place is served again', async () => (await pay(inSecond)).status === 200)
  await fresh.stop()
})

test('forged halted ledgers of a place do not hide those of the others', async () => {
  const tenant = await newTenant(1)
  const inWorkspace = `workspace_id = '${uuidFromId('workspace', tenant.workspaceId)}'`
  await execute(
    ownerUrls()[1]!,
    `set session_replication_role = replica; update wallet set balance = balance + 1 where ${inWorkspace}`,
  )
  expect((await call(tenant, 'GET', `/api/v1/wallets/${tenant.a}`)).body.code).toBe('S002')
  await execute(
    serviceUrls()[0]!,
    `select open_ledger(id, date_trunc('milliseconds', clock_timestamp()), '\\x00'),
       change_ledger_status(id, 'HALTED', 'forged', '\\x00')
     from (select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as id
       from generate_series(1, 1500) n offset 0) _`,
  )
  const { ledgers, total } = await system.admin.ledger.halted.query()
  expect(ledgers.length).toBe(1000)
  expect(total).toBe(1501)
  const { halted } = await system.admin.system.status.query()
  for (const list of [ledgers, halted]) expect(list.map(each => each.workspaceId)).toContain(tenant.workspaceId)
})
