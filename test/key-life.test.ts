import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, call } from './setup/client.ts'
import { query } from './setup/database.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey, createWorkspace } from './setup/workspaces.ts'

/** The life of a key: signed requests over HTTP while an operator changes the key. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

const list = '/api/v1/wallets'

const newKey = (): Promise<Credentials> => createKey(system, { scopes: ['wallet:read'] })

async function codeOf(credentials: Credentials, target = list): Promise<string> {
  return (await call(credentials, 'GET', target)).body.code
}

/** Waits until a change is in force. */
async function untilCode(credentials: Credentials, code: string, target = list): Promise<void> {
  await until(`${code} for ${target}`, async () => (await codeOf(credentials, target)) === code)
}

/** The row of a key. */
async function rowOf(apiKey: string): Promise<Record<string, unknown>> {
  const sql = 'select * from api_key where id = $1'
  const [row] = await query(system.database.ownerUrl, sql, [uuidFromId('apiKey', apiKey)])
  return row!
}

describe('a rotation', () => {
  test('without a grace period ends the old secret at once', async () => {
    const key = await newKey()
    expect(await codeOf(key)).toBe('2000')
    const rotated = { ...key, ...(await system.admin.apiKeys.rotate.mutate(key)) }
    expect(rotated.apiKey).toBe(key.apiKey)
    await untilCode(rotated, '2000')
    expect(await codeOf(key)).toBe('GA2012')
  })

  test('with a grace period accepts both secrets until the period ends', async () => {
    const key = await newKey()
    const rotated = { ...key, ...(await system.admin.apiKeys.rotate.mutate({ ...key, graceMs: 3600_000 })) }
    await untilCode(rotated, '2000')
    expect(await codeOf(key)).toBe('2000')
    const { oldSecretUntil } = (await system.admin.apiKeys.list.query(key)).keys[0]!
    expect(oldSecretUntil!.getTime()).toBeGreaterThan(Date.now())
    const short = { ...key, ...(await system.admin.apiKeys.rotate.mutate({ ...key, graceMs: 1, force: true })) }
    await untilCode(short, '2000')
    expect([await codeOf(key), await codeOf(rotated)]).toEqual(['GA2012', 'GA2012'])
    expect((await system.admin.apiKeys.list.query(key)).keys[0]!.oldSecretUntil).toBeNull()
  })

  test('is rejected during an earlier grace period, unless it is forced or has no grace period', async () => {
    const key = await newKey()
    const graceMs = 3600_000
    const second = { ...key, ...(await system.admin.apiKeys.rotate.mutate({ ...key, graceMs })) }
    await expect(system.admin.apiKeys.rotate.mutate({ ...key, graceMs })).rejects.toThrow('wait until then')
    await untilCode(second, '2000')
    expect(await codeOf(key)).toBe('2000')
    const third = { ...key, ...(await system.admin.apiKeys.rotate.mutate({ ...key, graceMs, force: true })) }
    await untilCode(third, '2000')
    expect([await codeOf(key), await codeOf(second)]).toEqual(['GA2012', '2000'])
    const last = { ...key, ...(await system.admin.apiKeys.rotate.mutate(key)) }
    await untilCode(last, '2000')
    expect([await codeOf(second), await codeOf(third)]).toEqual(['GA2012', 'GA2012'])
  })

  test('succeeds once when several run at the same time', async () => {
    const key = await newKey()
    const graceMs = 3600_000
    const settled = await Promise.allSettled(
      Array.from({ length: 8 }, () => system.admin.apiKeys.rotate.mutate({ ...key, graceMs })),
    )
    const issued = settled.flatMap(each => (each.status === 'fulfilled' ? { ...key, ...each.value } : []))
    expect(issued).toHaveLength(1)
    await untilCode(issued[0]!, '2000')
    expect(await codeOf(key)).toBe('2000')
  })
})

test('each change of a key takes effect: disable, enable, scopes, IP list, expiry and deletion', async () => {
  const { apiKeys } = system.admin
  const key = await newKey()
  const orders = '/api/v1/transfer/query/orders'
  expect(await codeOf(key)).toBe('2000')
  await apiKeys.disable.mutate(key)
  await untilCode(key, 'GA2021')
  await apiKeys.enable.mutate(key)
  await untilCode(key, '2000')
  await apiKeys.setScopes.mutate({ ...key, scopes: ['transfer:read'] })
  await untilCode(key, 'GA2024')
  expect(await codeOf(key, orders)).toBe('2000')
  await apiKeys.setIps.mutate({ ...key, ipAllowlist: ['203.0.113.7'] })
  await untilCode(key, 'GA2022', orders)
  await apiKeys.setIps.mutate({ ...key, ipAllowlist: [] })
  await untilCode(key, '2000', orders)
  await apiKeys.setExpiry.mutate({ ...key, expiresAt: new Date(0) })
  await untilCode(key, 'GA2021', orders)
  await apiKeys.setExpiry.mutate({ ...key, expiresAt: null })
  await untilCode(key, '2000', orders)
  await apiKeys.delete.mutate(key)
  await untilCode(key, 'GA2011', orders)
  for (const action of [apiKeys.disable, apiKeys.enable, apiKeys.rotate, apiKeys.delete])
    await expect(action.mutate(key)).rejects.toThrow(`There is no key ${key.apiKey}.`)
})

test('the secrets of a deleted key are erased, and gateways do not receive a secret after its grace period', async () => {
  const key = await newKey()
  await system.admin.apiKeys.rotate.mutate({ ...key, graceMs: 3600_000 })
  const before = await rowOf(key.apiKey)
  expect(before).toMatchObject({ secret: expect.stringMatching(/^v1\.k1\./), secret_version: 2 })
  const { id } = before
  const { ownerUrl } = system.database
  await change(id, "previous_secret_until = now() - interval '1 ms'")
  const lookup = () => system.gatewayClient.access.lookup.query({ apiKeys: [key.apiKey] })
  expect((await lookup()).keys[0]!.secrets).toEqual([{ version: 2, ciphertext: before.secret, validUntil: null }])
  await system.admin.apiKeys.delete.mutate(key)
  const [after] = await query(ownerUrl, 'select secret, previous_secret, deleted_at from api_key where id = $1', [id])
  expect(after).toEqual({ secret: '', previous_secret: null, deleted_at: expect.any(Date) })
  expect((await lookup()).keys).toEqual([])
})

/** Changes the row of a key and signs it. Only the encryption of the secret itself can reveal the change. */
async function change(id: unknown, set: string): Promise<void> {
  const { ownerUrl } = system.database
  await query(ownerUrl, `update api_key set ${set}, revision = revision + 1 where id = $1`, [id])
  await signRows(ownerUrl, system.chainKey, 'api_key', `id = '${id}'`)
}

test('a ciphertext that is copied to another key, or back from an earlier version, cannot be decrypted', async () => {
  const [own, foreign] = [await newKey(), await newKey()]
  const { id, secret } = await rowOf(own.apiKey)
  const other = await rowOf(foreign.apiKey)
  // An insider writes the ciphertext of a known secret over that of another key.
  await change(other.id, `secret = '${secret}'`)
  expect(await codeOf({ ...own, apiKey: foreign.apiKey })).toBe('S001')
  expect(await codeOf(own)).toBe('2000')
  await system.admin.apiKeys.rotate.mutate(own)
  await change(id, `secret = '${secret}'`)
  const gateway = await system.startGateway()
  expect(await codeOf({ ...own, baseUrl: gateway.url })).toBe('S001')
})

test('keys are listed in pages, by workspace or by ID, without secrets', async () => {
  const { admin } = system
  const workspaceId = await createWorkspace(system)
  const issued: Credentials[] = []
  for (let count = 0; count < 5; count++) issued.push(await createKey({ ...system, workspaceId }))
  const pages: string[][] = []
  for (let after: string | undefined; ; ) {
    const { keys, next } = await admin.apiKeys.list.query({ workspaceId, limit: 2, after })
    pages.push(keys.map(({ apiKey }) => apiKey))
    for (const { apiSecret } of issued) expect(JSON.stringify(keys)).not.toContain(apiSecret)
    expect(Object.keys(keys[0]!).filter(name => /secret/i.test(name))).toEqual(['oldSecretUntil'])
    if (next === null) break
    after = next
  }
  expect(pages.map(page => page.length)).toEqual([2, 2, 1])
  expect(pages.flat()).toEqual(issued.map(({ apiKey }) => apiKey))
  const { keys } = await admin.apiKeys.list.query({ apiKey: issued[3]!.apiKey })
  expect(keys.map(({ apiKey }) => apiKey)).toEqual([issued[3]!.apiKey])
  for (const apiKey of ['nonsense', 'ak_01h455vb4pex5vsknk084sn02q'])
    expect(await admin.apiKeys.list.query({ apiKey })).toEqual({ keys: [], next: null })
})

test('when several calls add one member at the same time, one succeeds and the others fail with ALREADY_EXISTS', async () => {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Race' })
  for (const userId of ['ada', 'grace']) {
    const adding = Array.from({ length: 4 }, () => admin.members.add.mutate({ workspaceId, userId }))
    const outcomes = await Promise.allSettled(adding)
    const errors = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(errors).toHaveLength(3)
    for (const error of errors)
      expect(error.data.appError).toEqual({
        kind: 'admin',
        code: 'ALREADY_EXISTS',
        sentence: `${userId} is a member of ${workspaceId} already.`,
      })
  }
})
