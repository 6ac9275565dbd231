import { randomBytes, randomUUID } from 'node:crypto'
import { type ErrorCode, errorTable, mintId, type Scope, scopes, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient, domainErrorOf, inputFaultsOf } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Endpoint } from '../gateway/src/api/endpoint.ts'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { type Answer, batchPath, type Credentials, call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { startGatewayApp } from './setup/gateway-app.ts'
import { findProcedures } from './setup/procedures.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/**
 * An attacker has the token of a gateway, and calls two cores directly. No gateway checks anything: what the attacker may do is
 * what core itself lets an API key do. How long a core may use cached keys is tested with a clock of the test:
 * services/core/src/access/access-cache.test.ts.
 */

const keyEncryptionKeys = `k1:${randomBytes(32).toString('base64')}`
let system: System
/** A client of each core, with the token of the gateways. The administrator of `system` calls the first core. */
let cores: CoreClient[]
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 0, coreEnvironment: { KEY_ENCRYPTION_KEYS: keyEncryptionKeys } })
  cores = system.cores.map(({ url }) => createCoreClient({ url, token: system.gatewayToken }))
})
afterAll(async () => {
  for (const core of cores) await core.close()
  await system.stop()
})

type Victim = { workspaceId: string; apiKey: string; source: string; target: string }

async function newVictim(options: { scopes?: Scope[]; expiresAt?: Date } = {}): Promise<Victim> {
  const { admin } = system
  const { workspaceId, apiKey } = await createTenant(system, options)
  const source = await createWallet({ admin, workspaceId }, { deposits: ['100.00'] })
  return { workspaceId, apiKey, source, target: await createWallet({ admin, workspaceId }) }
}

const on = ({ workspaceId, apiKey }: Victim) => ({ workspaceId, caller: { apiKey, requestId: 'stolen' } })
const orderOf = ({ source, target }: Victim) => ({
  sourceWalletId: source,
  targetWalletId: target,
  amount: '1.00',
  currency: 'USD',
})

/** The code of a call: `made` if core did what it was asked. */
function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'made',
    error => domainErrorOf(error)?.code ?? error.message,
  )
}
const create = (core: CoreClient, victim: Victim) =>
  codeOf(core.transfers.create.mutate({ ...on(victim), order: orderOf(victim) }))
const readBalance = (core: CoreClient, victim: Victim) =>
  codeOf(core.wallets.balance.query({ ...on(victim), walletId: victim.source }))

/** How much has left the wallet of the victim, without cents. */
async function loss({ workspaceId, source: walletId }: Victim): Promise<number> {
  const { balance } = await system.admin.wallets.balance.query({ workspaceId, walletId, caller: { requestId: 'r' } })
  return 100 - balance.toNumber()
}

describe('a key that may no longer be used', () => {
  test.each<[string, code: string, change: (victim: Victim) => Promise<unknown>]>([
    ['that is disabled', 'GA2021', key => system.admin.apiKeys.disable.mutate(key)],
    ['that has expired', 'GA2021', key => system.admin.apiKeys.setExpiry.mutate({ ...key, expiresAt: new Date(0) })],
    ['that is deleted', 'GA2011', key => system.admin.apiKeys.delete.mutate(key)],
    ['without the scope', 'GA2024', key => system.admin.apiKeys.setScopes.mutate({ ...key, scopes: ['hold:read'] })],
    ['of a removed member', 'GA2034', key => system.admin.members.remove.mutate({ ...key, userId: 'owner' })],
    ['of a deleted workspace', 'GA2032', key => system.admin.workspaces.delete.mutate({ ...key, force: true })],
  ])('%s is refused by both cores: %s', async (_, code, change) => {
    const victim = await newVictim()
    for (const core of cores)
      expect([await create(core, victim), await readBalance(core, victim)]).toEqual(['made', 'made'])
    await change(victim)
    const [first, second] = cores as [CoreClient, CoreClient]
    // The core that made the change knows it at once, the other one with its next poll.
    expect([await create(first, victim), await readBalance(first, victim)]).toEqual([code, code])
    await until('the other core refuses the key', async () => (await readBalance(second, victim)) === code)
    expect(await create(second, victim)).toBe(code)
    if (code !== 'GA2032') expect(await loss(victim)).toBe(2)
  })

  test('expires on the clock of PostgreSQL, without any change', async () => {
    const victim = await newVictim({ expiresAt: new Date(Date.now() + 3_000) })
    for (const core of cores) {
      await readBalance(core, victim)
      await until('the key has expired', async () => (await readBalance(core, victim)) === 'GA2021')
      expect(await create(core, victim)).toBe('GA2021')
    }
  })

  test('is allowed again at once when it is enabled', async () => {
    const victim = await newVictim()
    await system.admin.apiKeys.disable.mutate(victim)
    for (const core of cores)
      await until('the core refuses the key', async () => (await create(core, victim)) === 'GA2021')
    await system.admin.apiKeys.enable.mutate(victim)
    for (const core of cores) expect(await create(core, victim)).toBe('made')
  })

  test.each<[string, code: string, change: (victim: Victim) => Promise<unknown>, forge: string]>([
    [
      'a disabled key that is enabled',
      'GA2021',
      key => system.admin.apiKeys.disable.mutate(key),
      "update api_key set status = 'ACTIVE', revision = revision + 1 where id = :key",
    ],
    [
      'a key that gets more scopes',
      'GA2021',
      key => system.admin.apiKeys.setScopes.mutate({ ...key, scopes: ['hold:read'] }),
      "update api_key set scopes = '{transfer:create,wallet:read}', revision = revision + 1 where id = :key",
    ],
    [
      'a removed member that is restored',
      'GA2034',
      key => system.admin.members.remove.mutate({ ...key, userId: 'owner' }),
      'update member set removed_at = null, revision = revision + 1 where workspace_id = :workspace',
    ],
  ])("%s with the service's role gives no access: %s", async (_, code, change, forge) => {
    const victim = await newVictim()
    for (const core of cores) expect(await create(core, victim)).toBe('made')
    await change(victim)
    const { key, workspace } = literalsOf(victim)
    await execute(
      system.database.serviceUrl,
      `${forge.replace(':key', key).replace(':workspace', workspace)};
       update access_revision set revision = revision + 1;
       update api_key set access_revision = (select revision from access_revision) where id = ${key}`,
    )
    for (const core of cores) {
      await until('the core has read the forged row', async () => (await create(core, victim)) === code)
      expect(await readBalance(core, victim)).toBe(code)
    }
    expect(await loss(victim)).toBe(2)
  })

  test("a key that was made with the service's role gives no access", async () => {
    const victim = await newVictim()
    const apiKey = mintId('apiKey')
    await execute(
      system.database.serviceUrl,
      `insert into api_key select (jsonb_populate_record(k, jsonb_build_object('id', '${uuidFromId('apiKey', apiKey)}'))).*
       from api_key k where id = ${literalsOf(victim).key}`,
    )
    for (const core of cores) expect(await create(core, { ...victim, apiKey })).toBe('GA2021')
    expect(await create(cores[0]!, { ...victim, apiKey: mintId('apiKey') })).toBe('GA2011')
  })
})

function literalsOf({ apiKey, workspaceId }: Victim) {
  return { key: `'${uuidFromId('apiKey', apiKey)}'`, workspace: `'${uuidFromId('workspace', workspaceId)}'` }
}

const procedures = await findProcedures()
const forKeys = procedures.flatMap(({ path, type, scope }) => (scope ? [{ path, type, scope }] : []))

describe('scopes', () => {
  test('gateways call these procedures for themselves, and all others for an API key', () => {
    const forGateways = procedures.filter(({ roles, scope }) => roles!.includes('gateway') && !scope)
    expect(forGateways.map(({ path }) => path).sort()).toEqual([
      'access.beginNonceGeneration',
      'access.changes',
      'access.latestNonceGenerations',
      'access.lookup',
      'access.markUsed',
      'access.nonceKey',
      'instances.leave',
      'instances.report',
      'receipts.keys',
      'refusals.report',
    ])
    for (const { path, scope } of procedures) expect(scope, path).not.toBeUndefined()
  })

  test('the scope of each procedure is that of the endpoint that calls it, and no other is open to gateways', async () => {
    const called = await Promise.all(endpoints.map(async ({ scope, ...each }) => [await procedureOf(each), scope]))
    expect(Object.fromEntries(called)).toEqual(Object.fromEntries(forKeys.map(({ path, scope }) => [path, scope])))
  })

  test.each(forKeys)('$path needs $scope', async ({ path, type, scope }) => {
    const others = scopes.filter(each => each !== scope)
    const [lacks, has] = await Promise.all([
      createTenant(system, { scopes: others }),
      createTenant(system, { scopes: [scope] }),
    ])
    for (const core of cores) {
      expect(await refusalOf(core, path, type, lacks)).toMatchObject({ code: 'GA2024', details: { scope } })
      expect(await refusalOf(core, path, type, has)).toBeNull()
    }
  })

  test('a draw needs hold:create, and an item that reverses transfer:reverse, whatever the gateway has checked', async () => {
    const victim = await newVictim()
    const hold = { walletId: victim.source, amount: '10.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'booking' }
    const [core] = cores as [CoreClient]
    await core.holds.create.mutate({ ...on(victim), hold })
    const { transferId } = await core.transfers.create.mutate({ ...on(victim), order: orderOf(victim) })
    const weak = { ...victim, ...(await createKey({ ...system, ...victim }, { scopes: ['transfer:create'] })) }
    const draw = { ...orderOf(victim), holdId: 'booking', bizId: 'draw' }
    const reversal = { reversesTransferId: transferId, amount: '1.00', currency: 'USD', bizId: 'reversal' }
    const plain = { ...orderOf(victim), bizId: 'plain' }
    for (const core of cores) {
      const batch = (...transfers: (typeof draw | typeof reversal | typeof plain)[]) =>
        core.transfers.batch.mutate({ ...on(weak), batch: { transfers } })
      const refused = [
        await core.transfers.create.mutate({ ...on(weak), order: draw }).catch(domainErrorOf),
        await batch(plain, draw).catch(domainErrorOf),
        await batch(plain, reversal).catch(domainErrorOf),
      ]
      expect(refused).toEqual([
        expect.objectContaining({ code: 'GA2024', details: { scope: 'hold:create' } }),
        expect.objectContaining({ code: 'GA2024', details: { scope: 'hold:create', index: 1 } }),
        expect.objectContaining({ code: 'GA2024', details: { scope: 'transfer:reverse', index: 1 } }),
      ])
    }
    expect(await loss(victim)).toBe(1)
    expect(
      (await core.transfers.batch.mutate({ ...on(victim), batch: { transfers: [plain, draw, reversal] } })).transfers,
    ).toHaveLength(3)
  })
})

describe('a gateway that has not learned of a change yet', () => {
  test.each<[string, code: string, change: (key: Credentials & Key) => Promise<unknown>]>([
    ['a disabled key', 'GA2021', key => system.admin.apiKeys.disable.mutate(key)],
    ['an expired key', 'GA2021', key => system.admin.apiKeys.setExpiry.mutate({ ...key, expiresAt: new Date(0) })],
    ['a deleted key', 'GA2011', key => system.admin.apiKeys.delete.mutate(key)],
    ['fewer scopes', 'GA2024', key => system.admin.apiKeys.setScopes.mutate({ ...key, scopes: ['hold:read'] })],
    ['a removed member', 'GA2034', key => system.admin.members.remove.mutate({ ...key, userId: 'owner' })],
    ['a deleted workspace', 'GA2032', key => system.admin.workspaces.delete.mutate({ ...key, force: true })],
  ])('answers what core says of %s: %s', async (_, code, change) => {
    const order = { sourceWalletId: 'a', targetWalletId: 'b', amount: '1.00', currency: 'USD' }
    const answers = await sendOutdated(change, key => [
      call(key, 'GET', '/api/v1/wallets'),
      call(key, 'POST', createPath, order),
      call(key, 'POST', '/api/v1/wallet/command/create', { name: 'New', currency: 'USD', bizId: 'new' }),
    ])
    for (const { body, status } of answers)
      expect([body.code, status]).toEqual([code, errorTable[code as ErrorCode].http])
  })

  test('names the item of a batch that needs another scope', async () => {
    const order = { sourceWalletId: 'a', targetWalletId: 'b', amount: '1.00', currency: 'USD' }
    const transfers = [
      { ...order, bizId: 'one' },
      { ...order, bizId: 'two', holdId: 'booking' },
    ]
    const [answer] = await sendOutdated(
      key => system.admin.apiKeys.setScopes.mutate({ ...key, scopes: ['transfer:create'] }),
      key => [call(key, 'POST', batchPath, { transfers })],
    )
    expect([answer!.body.code, answer!.headers.get('x-batch-index')]).toEqual(['GA2024', '1'])
    expect(answer!.body.detail).toMatch(/^transfers\[1\]: .*hold:create/)
  })

  /** The answers to requests of a key that was changed after a gateway had cached it. */
  async function sendOutdated(
    change: (key: Credentials & Key) => Promise<unknown>,
    send: (key: Credentials) => Promise<Answer>[],
  ): Promise<Answer[]> {
    // Its cached keys never become too old to be used.
    const gateway = await startGatewayApp(system, { keyEncryptionKeys, elapsedMs: () => 0 })
    gateway.keys.close()
    try {
      // A poll in progress may still report the change of the first key.
      return await until('the gateway does not know the change', async () => {
        const key = { ...(await createTenant(system)), baseUrl: gateway.baseUrl }
        expect((await call(key, 'GET', '/api/v1/wallets')).status).toBe(200)
        await change(key)
        const answers = await Promise.all(send(key))
        // With a cached key it has not asked core, which would return a promise.
        return !(gateway.keys.find(key.apiKey) instanceof Promise) && answers
      })
    } finally {
      await gateway.close()
    }
  }
})

// The last test: from now on, gateways of this system reject requests for a minute.
test('generations of the nonce store are at least a second apart, so that they do not fill the audit log', async () => {
  const known = randomUUID()
  await until('a generation begins', async () => (await begin(known)) === 'made')
  const codes = await Promise.all(Array.from({ length: 200 }, () => begin(randomUUID())))
  expect(new Set(codes)).toContain('S002')
  expect(await begin(known)).toBe('made')
  await until('another generation begins', async () => (await begin(randomUUID())) === 'made')
  const entries = await query(
    system.database.ownerUrl,
    "select at from audit where action = 'nonces.begin' order by id",
  )
  const times = entries.map(({ at }) => (at as Date).getTime())
  expect(times.length).toBeGreaterThan(1)
  for (const [at, time] of times.entries()) if (at > 0) expect(time - times[at - 1]!).toBeGreaterThanOrEqual(1_000)

  function begin(generationId: string): Promise<string> {
    return codeOf(cores[0]!.access.beginNonceGeneration.mutate({ generationId, partitions: [0] }))
  }
})

/** The procedure that an endpoint calls for the request of its example. */
async function procedureOf({ handle, example }: Pick<Endpoint, 'handle' | 'example'>): Promise<string> {
  const { params = {}, query = '', body } = example
  const called: string[] = []
  const router = (path: string): object =>
    new Proxy(() => {}, {
      get: (_, name) => router(path ? `${path}.${String(name)}` : String(name)),
      apply() {
        called.push(path.replace(/\.(query|mutate)$/, ''))
        throw new Error('this core answers nothing')
      },
    })
  const request = {
    core: router('') as unknown as CoreClient,
    on: { workspaceId: 'w', caller: { apiKey: 'k', requestId: 'r', address: '::1' } },
    requireScope() {},
    params,
    query,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(body ?? null)),
  }
  await expect(handle(request)).rejects.toThrow('this core answers nothing')
  expect(called).toHaveLength(1)
  return called[0]!
}

/**
 * Calls a procedure with nothing but the workspace and the caller. Null if core lets the key make the call, which it answers, or
 * refuses because fields are missing.
 */
async function refusalOf(core: CoreClient, path: string, type: 'query' | 'mutation', key: Key) {
  const [router, name] = path.split('.') as [string, string]
  const procedure = (core as unknown as Record<string, Record<string, Untyped>>)[router]![name]!
  const input = { workspaceId: key.workspaceId, caller: { apiKey: key.apiKey, requestId: 'stolen' } }
  return procedure[type === 'query' ? 'query' : 'mutate'](input).then(
    () => null,
    error => (inputFaultsOf(error) ? null : domainErrorOf(error)),
  )
}
type Key = { workspaceId: string; apiKey: string }
type Untyped = Record<'query' | 'mutate', (input: object) => Promise<unknown>>
