import { randomUUID } from 'node:crypto'
import { idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient, readKekStatus, verifyLedger as verify } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { type Answer, type Credentials, call } from './setup/client.ts'
import { query, queryPersistently } from './setup/database.ts'
import { logLines } from './setup/log-lines.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * An attacker has the role of the service, but no keys, and inserts rows into every table where the role may: webhooks, API keys,
 * members and workspaces. Such a row has no valid MAC. It stops nothing, takes no name, and is named and removed.
 */

let system: System
let service: CoreClient
let courier: CoreClient
beforeAll(async () => {
  system = await startSystem()
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  courier = createCoreClient({ url: system.coreUrl, token: system.courierToken })
})
afterAll(async () => {
  await Promise.all([service.close(), courier.close()])
  await system.stop()
})

type Tenant = Credentials & { workspaceId: string; walletId: string }

async function newTenant(): Promise<Tenant> {
  const tenant = await createTenant(system)
  return { ...tenant, walletId: await createWallet({ ...system, ...tenant }) }
}

type Values = Record<string, unknown>

/** Inserts a row with the role of the service. Returns the row's ID. */
async function insert(table: 'api_key' | 'member' | 'webhook' | 'workspace', values: Values): Promise<string> {
  const row: Values = {
    ...(table === 'member' ? {} : { id: randomUUID() }),
    revision: 1,
    mac: Buffer.alloc(32),
    ...values,
  }
  const names = Object.keys(row)
  const sql = `insert into ${table} (${names}) values (${names.map((_, at) => `$${at + 1}`)})`
  // Inserts at the same time may wait for one another, for which core ends them.
  await queryPersistently(system.database.serviceUrl, sql, Object.values(row))
  return row.id as string
}

const now = new Date()
const forgedSecret = 'v1.lost.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA.AAAA'

async function forgeWebhook({ workspaceId }: { workspaceId: string }, values: Values = {}): Promise<string> {
  const id = await insert('webhook', {
    workspace_id: uuidFromId('workspace', workspaceId),
    biz_id: 'orders',
    biz_id_mac: Buffer.from(randomUUID()),
    url: 'https://attacker.example/',
    types: [],
    concurrency: 1,
    status: 'ACTIVE',
    secret: forgedSecret,
    secret_version: 1,
    created_at: now,
    updated_at: now,
    position: 0,
    generation: randomUUID(),
    leased_until: now,
    next_attempt_at: now,
    failures: 0,
    ...values,
  })
  return idFromUuid('webhook', id as Uuid<'webhook'>)
}

async function forgeKey({ workspaceId }: { workspaceId: string }, values: Values = {}): Promise<string> {
  const id = await insert('api_key', {
    workspace_id: uuidFromId('workspace', workspaceId),
    owner_user_id: 'owner',
    name: 'Forged',
    status: 'ACTIVE',
    scopes: ['transfer:create'],
    ip_allowlist: [],
    secret: forgedSecret,
    secret_version: 1,
    created_at: now,
    updated_at: now,
    access_revision: 0,
    ...values,
  })
  return idFromUuid('apiKey', id as Uuid<'apiKey'>)
}

const create = (tenant: Tenant, bizId: string) =>
  call(tenant, 'POST', '/api/v1/webhook/command/create', { url: 'https://receiver.example/', bizId })
const listed = async (tenant: Tenant): Promise<{ webhookId: string }[]> =>
  (await call(tenant, 'GET', '/api/v1/webhook/query/webhooks?size=100')).body.data.content
const codeOf = ({ body }: Answer) => body.code
/** The rules that are broken in a workspace. */
const brokenIn = async ({ workspaceId }: { workspaceId: string }) =>
  (await verify(system.admin, { workspaceId })).brokenRules.map(({ rule }) => rule).sort()

describe('a forged row whose secret names a key-encryption key that nobody has', () => {
  test('does not keep a core from starting, which names it', async () => {
    const tenant = await newTenant()
    const webhookId = await forgeWebhook(tenant)
    const apiKey = await forgeKey(tenant)
    const core = await system.startCore()
    const line = await until('the rows are named', () =>
      logLines(core).find(({ msg }) => msg.includes('secrets are ignored')),
    )
    const { workspaceId } = tenant
    expect(line).toMatchObject({
      level: 40,
      count: 2,
      rows: expect.arrayContaining([
        { id: apiKey, workspaceId },
        { id: webhookId, workspaceId },
      ]),
    })
    await core.stop()
  })

  test('does not count as a secret, and does not keep a rotation from its end', async () => {
    const tenant = await newTenant()
    const forged = [await forgeWebhook(tenant), await forgeKey(tenant)]
    const { keks, modified } = await readKekStatus(system.admin)
    expect(keks.map(({ kek }) => kek)).toEqual(['k1'])
    expect(modified.rows.map(({ id }) => id)).toEqual(expect.arrayContaining(forged))
    expect(modified.count).toBe(modified.rows.length)
    const step = await system.admin.keks.rewrap.mutate({ to: 'k1' })
    expect(step).toMatchObject({ rewrapped: 0, unreadable: [] })
  })

  test('does not hide that a genuine secret needs a key', async () => {
    const tenant = await newTenant()
    for (let at = 0; at < 4; at++)
      await forgeWebhook(tenant, { biz_id: `many-${at}`, secret: forgedSecret.replace('lost', 'k1') })
    await expect(
      system.startCore({ KEY_ENCRYPTION_KEYS: `k2:${Buffer.alloc(32, 7).toString('base64')}` }),
    ).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS lacks k1, which encrypts secrets such as that of (ak|whk)_\w{26}: append that key/,
    )
    const other = `k1:${Buffer.alloc(32, 7).toString('base64')}`
    await expect(system.startCore({ KEY_ENCRYPTION_KEYS: other })).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS has another k1 than the one that encrypts/,
    )
  })
})

describe('a forged webhook', () => {
  test('does not take a bizId, does not count, and is not listed', async () => {
    const tenant = await newTenant()
    const forged = await Promise.all(
      Array.from({ length: 20 }, (_, at) => forgeWebhook(tenant, { biz_id: `orders-${at}` })),
    )
    // A busy machine may reject some with S002.
    const created = await until('the webhook is created', async () => {
      const answer = await create(tenant, 'orders-1')
      return codeOf(answer) !== 'S002' && answer
    })
    expect(codeOf(created)).toBe('2000')
    expect(await listed(tenant)).toEqual([expect.objectContaining({ webhookId: created.body.data.webhookId })])
    expect(codeOf(await call(tenant, 'GET', `/api/v1/webhook/query/webhooks/${forged[0]}`))).toBe('S002')
    // A row under the name of an existing webhook is refused.
    const [row] = await query(system.database.serviceUrl, 'select biz_id_mac from webhook where id = $1', [
      uuidFromId('webhook', created.body.data.webhookId),
    ])
    await expect(forgeWebhook(tenant, row)).rejects.toThrow('webhook_biz_id_mac_key')
  })

  test('gets no delivery, is named by log, verification and operators, and can be deleted', async () => {
    const tenant = await newTenant()
    const { workspaceId, walletId } = tenant
    const webhookId = await forgeWebhook(tenant)
    await system.admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
    const { webhooks } = await courier.courier.lease.mutate({ size: 64 })
    expect(webhooks.map(leased => leased.webhookId)).not.toContain(webhookId)
    await until('the log names it', () =>
      logLines(system.cores[0]!).some(
        line =>
          line.webhookId === webhookId && line.workspaceId === workspaceId && line.msg.includes('outside the service'),
      ),
    )
    expect(await system.admin.webhooks.modified.query({ workspaceId })).toEqual({ webhookIds: [webhookId] })
    expect(await brokenIn(tenant)).toEqual(['webhook-audit', 'webhook-mac'])
    const operator = { workspaceId, caller: { requestId: 'test' }, webhookId }
    await expect(system.admin.webhooks.update.mutate({ ...operator, status: 'PAUSED' })).rejects.toThrow(
      'was modified outside the service',
    )
    await system.admin.webhooks.delete.mutate(operator)
    expect(await system.admin.webhooks.modified.query({ workspaceId })).toEqual({ webhookIds: [] })
    expect(await brokenIn(tenant)).toEqual([])
  })

  test('that marks a webhook as deleted does not make it one that does not exist', async () => {
    const tenant = await newTenant()
    const { webhookId } = (await create(tenant, 'mine')).body.data
    await query(
      system.database.serviceUrl,
      'update webhook set deleted_at = now(), revision = revision + 1 where id = $1',
      [uuidFromId('webhook', webhookId)],
    )
    const path = `/api/v1/webhook/query/webhooks/${webhookId}`
    expect(codeOf(await call(tenant, 'GET', path))).toBe('S002')
    const update = { webhookId, status: 'PAUSED' }
    expect(codeOf(await call(tenant, 'POST', '/api/v1/webhook/command/update', update))).toBe('S002')
    await system.admin.webhooks.delete.mutate({
      workspaceId: tenant.workspaceId,
      caller: { requestId: 'test' },
      webhookId,
    })
    expect(codeOf(await call(tenant, 'GET', path))).toBe('E002')
  })

  test('in any number makes the webhooks of its workspace unavailable, and those of no other', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()]
    await forgeWebhook(tenant)
    await query(
      system.database.serviceUrl,
      `insert into webhook select (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid(),
         'biz_id_mac', '\\x' || encode(sha256(gen_random_uuid()::text::bytea), 'hex')))).*
       from webhook w, generate_series(1, 200) where workspace_id = $1`,
      [uuidFromId('workspace', tenant.workspaceId)],
    )
    expect(codeOf(await create(tenant, 'mine'))).toBe('S002')
    // A busy machine may reject some with S002.
    await until('the other workspace creates one', async () => codeOf(await create(other, 'mine')) === '2000')
    await until('the log names the workspace', () =>
      logLines(system.cores[0]!).some(
        ({ workspaceId, msg }) => workspaceId === tenant.workspaceId && msg.includes('more than 100 webhooks'),
      ),
    )
    // Operators can delete them, a hundred at a time.
    const { workspaceId } = tenant
    const modified = async () => (await system.admin.webhooks.modified.query({ workspaceId })).webhookIds
    expect(await modified()).toHaveLength(100)
    const caller = { requestId: 'test' }
    expect((await system.admin.webhooks.list.query({ workspaceId, caller, size: 1 })).content).toEqual([])
    while ((await modified()).length > 0)
      await inParallel(4, await modified(), async webhookId => {
        await system.admin.webhooks.delete.mutate({ workspaceId, caller, webhookId })
      })
    await until('the webhook is created', async () => codeOf(await create(tenant, 'mine')) === '2000')
    expect(await brokenIn(tenant)).toEqual([])
  })
})

test('a forged API key is shown as modified, and can be deleted', async () => {
  const tenant = await newTenant()
  const { workspaceId } = tenant
  const forged = await forgeKey(tenant, { scopes: ['odd'], created_at: new Date('9999-12-31T23:59:59.999Z') })
  const { keys } = await system.admin.apiKeys.list.query({ workspaceId })
  const shown = keys.map(({ apiKey, isModified }) => [apiKey, isModified])
  expect(Object.fromEntries(shown)).toEqual({ [tenant.apiKey]: false, [forged]: true })
  expect(await brokenIn(tenant)).toEqual(['key-audit', 'key-mac'])
  await system.admin.apiKeys.delete.mutate({ apiKey: forged })
  expect((await system.admin.apiKeys.list.query({ workspaceId })).keys).toHaveLength(1)
  expect(await brokenIn(tenant)).toEqual([])
})

test.each<[what: string, ipAllowlist: unknown]>([
  ['null in place of an address', [null]],
  ['lists in place of addresses', [['::1'], ['::2']]],
  ['as many control characters as it takes', ['\u0001'.repeat(32_768)]],
])('a forged API key with %s fails no list of keys, and can be deleted', async (_, ipAllowlist) => {
  const tenant = await newTenant()
  const { workspaceId } = tenant
  const forged = await forgeKey(tenant, { ip_allowlist: ipAllowlist })
  const { keys } = await system.admin.apiKeys.list.query({ workspaceId })
  expect(keys.find(({ apiKey }) => apiKey === forged)).toMatchObject({ isModified: true, ipAllowlist: [] })
  await system.admin.apiKeys.delete.mutate({ apiKey: forged })
  expect(await brokenIn(tenant)).toEqual([])
})

test('the list of members continues after a forged one, however long its user ID is', async () => {
  const { workspaceId } = await newTenant()
  const userId = `${'!'.repeat(1_022)}é`
  await insert('member', { workspace_id: uuidFromId('workspace', workspaceId), user_id: userId, created_at: now })
  const first = await system.admin.members.list.query({ workspaceId, limit: 1 })
  expect(first).toMatchObject({ members: [{ userId, isModified: true }], next: userId })
  const rest = await system.admin.members.list.query({ workspaceId, limit: 1, after: first.next! })
  expect(rest).toMatchObject({ members: [{ userId: 'owner', isModified: false }], next: null })
})

test('forged keys and operators that expire sooner do not hide genuine ones from the status', async () => {
  const tenant = await newTenant()
  const days = (count: number) => new Date(Date.now() + count * 86_400_000)
  await system.admin.apiKeys.setExpiry.mutate({ apiKey: tenant.apiKey, expiresAt: days(20) })
  await system.admin.operators.create.mutate({ name: 'soon', role: 'viewer', expiresAt: days(20) })
  const id = await forgeKey(tenant, { expires_at: days(1) })
  await query(
    system.database.serviceUrl,
    `insert into api_key select (jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid()))).*
     from api_key k, generate_series(1, 600) where id = $1`,
    [uuidFromId('apiKey', id)],
  )
  await query(
    system.database.serviceUrl,
    `insert into operator (name, role, status, token_hash, token_version, expires_at, created_at, updated_at, revision, mac)
     select 'forged-' || n, 'admin', 'ACTIVE', sha256(n::text::bytea), 1, $1, now(), now(), 1, ''
     from generate_series(1, 600) n`,
    [days(1)],
  )
  const { expiringKeys, expiringOperators } = (await system.admin.system.status.query()).credentials!
  expect(expiringKeys.map(({ apiKey }) => apiKey)).toEqual([tenant.apiKey])
  expect(expiringOperators.map(({ name }) => name)).toEqual(['soon'])
})

test('a forged member does not keep the user from being added, and owns no key until then', async () => {
  const tenant = await newTenant()
  const { workspaceId } = tenant
  await insert('member', { workspace_id: uuidFromId('workspace', workspaceId), user_id: 'eve', created_at: now })
  const key = { workspaceId, ownerUserId: 'eve', scopes: ['wallet:read' as const] }
  await expect(system.admin.apiKeys.create.mutate(key)).rejects.toThrow('eve is not a member')
  expect(await brokenIn(tenant)).toEqual(['member-audit', 'member-mac'])
  await system.admin.members.add.mutate({ workspaceId, userId: 'eve' })
  await system.admin.apiKeys.create.mutate(key)
  expect(await brokenIn(tenant)).toEqual([])
  await expect(system.admin.members.add.mutate({ workspaceId, userId: 'eve' })).rejects.toThrow('is a member of')
})

test('a forged workspace gets no members, and can be deleted', async () => {
  const id = await insert('workspace', { name: 'Forged', created_at: now, updated_at: now })
  const workspaceId = idFromUuid('workspace', id as Uuid<'workspace'>)
  await expect(system.admin.members.add.mutate({ workspaceId, userId: 'eve' })).rejects.toThrow(
    `${workspaceId} was modified outside the service`,
  )
  const broken = () => brokenIn({ workspaceId })
  expect(await broken()).toEqual(['workspace-audit', 'workspace-ledger', 'workspace-mac'])
  await system.admin.workspaces.delete.mutate({ workspaceId })
  expect(await broken()).toEqual([])
})

test.each([
  ['workspace', { name: 'Forged', created_at: now, updated_at: now }],
  ['member', { workspace_id: 'here', user_id: 'mallory', created_at: now }],
] as const)(
  'PostgreSQL refuses a row whose revision or values nobody could raise or read: %s',
  async (table, values) => {
    const { workspaceId } = await newTenant()
    const row = { ...values, ...('workspace_id' in values && { workspace_id: uuidFromId('workspace', workspaceId) }) }
    for (const [odd, refusal] of [
      [{ revision: '9223372036854775807' }, 'revisions begin with 1'],
      [{ revision: 2 }, 'revisions begin with 1'],
      [{ mac: Buffer.alloc(65) }, 'check constraint'],
      [{ created_at: 'infinity' }, 'check constraint'],
      [{ created_at: '10000-01-01' }, 'check constraint'],
      [{ created_at: '1969-12-31T23:00:00Z' }, 'check constraint'],
    ] as const)
      await expect(insert(table, { ...row, ...odd })).rejects.toThrow(refusal)
  },
)

test('PostgreSQL refuses webhooks and API keys whose revision or values nobody could raise or read', async () => {
  const tenant = await newTenant()
  const long = 'x'.repeat(100_000)
  for (const [odd, refusal] of [
    [{ revision: '9223372036854775807' }, 'revisions begin with 1'],
    [{ mac: Buffer.alloc(100_000) }, 'check constraint'],
    [{ secret: long }, 'check constraint'],
    [{ previous_secret: long, previous_secret_until: now }, 'check constraint'],
    [{ updated_at: 'infinity' }, 'check constraint'],
    [{ deleted_at: '294276-12-31' }, 'check constraint'],
  ] as const)
    for (const forge of [forgeWebhook, forgeKey]) await expect(forge(tenant, odd)).rejects.toThrow(refusal)
  for (const odd of [
    { position: '9223372036854775807' },
    { url: long },
    { types: [long] },
    { types: Array(100_000).fill('') },
    { biz_id: long },
    { biz_id_mac: Buffer.alloc(100_000) },
    { last_status: 2147483647 },
    { next_attempt_at: '294276-12-31' },
    { leased_until: 'infinity' },
  ])
    await expect(forgeWebhook(tenant, odd)).rejects.toThrow('check constraint')
  for (const odd of [{ name: long }, { owner_user_id: long }, { scopes: [long] }, { ip_allowlist: [long] }])
    await expect(forgeKey(tenant, odd)).rejects.toThrow('check constraint')
})
