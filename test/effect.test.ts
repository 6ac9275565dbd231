import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { type Credentials, call, createPath, signedHeaders } from './setup/client.ts'
import { openPath, type Path } from './setup/path.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/**
 * A change of what a key may do, as clients of two gateways meet it, in health and under each fault. How long a gateway
 * may believe what it has is asserted by its own clock: gateway/src/auth/keys/key-cache.test.ts.
 */

let system: System
/** The ways of the first gateway. The second one has another core, and Redis without a detour. */
let toCore: Path
let toRedis: Path
let near: Program
let far: Program
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 0 })
  toCore = await openPath(system.cores[0]!.port)
  const redis = new URL(inject('redisUrl'))
  toRedis = await openPath(Number(redis.port || 6379))
  near = await startNear()
  far = await system.startGateway({ CORE_URL: system.cores[1]!.url })
})
afterAll(async () => {
  await system.stop()
  toCore.cut()
  toRedis.cut()
})

function startNear(): Promise<Program> {
  const redis = Object.assign(new URL(inject('redisUrl')), { port: String(toRedis.port) })
  return system.startGateway({ CORE_URL: toCore.url, REDIS_URL: redis.href })
}

type Issued = Credentials & { workspaceId: string }

/** A key in a workspace of its own. */
async function newKey(): Promise<Issued> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Effect' })
  await admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const scopes = ['wallet:read' as const, 'transfer:create' as const]
  const issued = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes })
  return { baseUrl: '', workspaceId, ...issued }
}

/**
 * What a gateway itself says of a key. It looks at a body after all eight steps, and asks core for nothing when the body
 * is wrong: so S012 means that the key was accepted.
 */
async function codeAt(gateway: Program, key: Issued): Promise<string> {
  const { code } = (await call({ ...key, baseUrl: gateway.url }, 'POST', createPath, {})).body
  return code === 'S012' ? accepted : code
}
const accepted = 'accepted'

async function untilBoth(key: Issued, code: string): Promise<void> {
  for (const gateway of [near, far]) await until(`${code} at both`, async () => (await codeAt(gateway, key)) === code)
}

test.each<[action: string, code: string, action: (key: Issued) => Promise<unknown>]>([
  ['disable', 'GA2021', key => system.admin.apiKeys.disable.mutate(key)],
  ['delete', 'GA2011', key => system.admin.apiKeys.delete.mutate(key)],
  ['set-expiry', 'GA2021', key => system.admin.apiKeys.setExpiry.mutate({ ...key, expiresAt: new Date(0) })],
  ['set-scopes', 'GA2024', key => system.admin.apiKeys.setScopes.mutate({ ...key, scopes: ['transfer:read'] })],
  ['set-ips', 'GA2022', key => system.admin.apiKeys.setIps.mutate({ ...key, ipAllowlist: ['203.0.113.7'] })],
  ['rotate', 'GA2012', key => system.admin.apiKeys.rotate.mutate(key)],
  ['member remove', 'GA2034', key => system.admin.members.remove.mutate({ ...key, userId: 'owner' })],
  ['workspace delete', 'GA2032', key => system.admin.workspaces.delete.mutate(key)],
])('%s is in force on both gateways: %s', async (_action, code, action) => {
  const key = await newKey()
  await untilBoth(key, accepted)
  await action(key)
  await untilBoth(key, code)
})

describe('fails closed', () => {
  type Fault = { begin: () => Promise<unknown> | undefined; end: () => Promise<unknown> }
  const faults: Record<string, Fault> = {
    'cut off from core': {
      begin: async () => toCore.cut(),
      end: () => toCore.mend(),
    },
    'not answered by core, which hears it': {
      begin: async () => toCore.loseAnswers(),
      end: () => toCore.mend(),
    },
    'left with a frozen core': {
      begin: () => system.cores[0]!.kill('SIGSTOP'),
      end: () => system.cores[0]!.kill('SIGCONT'),
    },
    'left with a core that was killed': {
      begin: () => system.cores[0]!.kill('SIGKILL'),
      end: async () => {
        system.cores[0] = await system.startCore({ CORE_PORT: String(system.cores[0]!.port) })
      },
    },
  }

  test.each(Object.keys(faults))('a gateway that is %s', async fault => {
    const { begin, end } = faults[fault]!
    const key = await newKey()
    await untilBoth(key, accepted)
    // Through the other core: the first one is not there.
    const admin = createCoreClient({ url: system.cores[1]!.url, token: system.adminToken })
    await begin()
    await admin.apiKeys.disable.mutate(key)
    await admin.close()
    await until('the other gateway knows', async () => (await codeAt(far, key)) === 'GA2021')
    const codes: string[] = []
    const ask = async () => {
      codes.push(await codeAt(near, key))
      return codes.at(-1)!
    }
    await until('it does not believe what it has any more', async () => (await ask()) === 'S002')
    await ask()
    await end()
    await until('it knows', async () => (await ask()) === 'GA2021')
    // It believed what it had, then nothing, then core: never again what it had.
    const phases = codes.filter((code, at) => code !== codes[at - 1])
    expect(phases).toEqual([accepted, 'S002', 'GA2021'].slice(-phases.length))
    expect(phases.length).toBeGreaterThan(1)
  })

  test('a gateway that is cut off from Redis: it serves nobody, and still learns what changes', async () => {
    const key = await newKey()
    await untilBoth(key, accepted)
    toRedis.cut()
    await until('nobody is served', async () => (await codeAt(near, key)) === 'S002')
    await system.admin.apiKeys.disable.mutate(key)
    await untilBoth(key, 'GA2021')
    await system.admin.apiKeys.enable.mutate(key)
    await until('enabled', async () => (await codeAt(far, key)) === accepted)
    await until('not without Redis', async () => (await codeAt(near, key)) === 'S002')
    await toRedis.mend()
    await untilBoth(key, accepted)
  })

  test('a gateway that is restarted without core', async () => {
    const [active, disabled] = [await newKey(), await newKey()]
    await untilBoth(disabled, accepted)
    await near.stop()
    await system.admin.apiKeys.disable.mutate(disabled)
    toCore.cut()
    near = await startNear()
    expect((await fetch(`${near.url}/readyz`)).status).toBe(503)
    for (const key of [active, disabled]) expect(await codeAt(near, key)).toBe('S002')
    await toCore.mend()
    await untilBoth(active, accepted)
    expect(await codeAt(near, disabled)).toBe('GA2021')
  })
})

test('a request that was begun before its key was disabled, and whose body came after, is refused', async () => {
  const key = await newKey()
  await untilBoth(key, accepted)
  const { workspaceId, admin } = { workspaceId: key.workspaceId, admin: system.admin }
  const wallets: string[] = []
  for (const name of ['A', 'B'])
    wallets.push((await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name })).walletId)
  const [sourceWalletId, targetWalletId] = wallets
  await admin.wallets.deposit.mutate({ workspaceId, walletId: sourceWalletId!, amount: '5.00' })
  const text = JSON.stringify({ sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD' })
  const slow = async (whileOpen: () => Promise<unknown>): Promise<{ code: string }> => {
    const credentials = { ...key, baseUrl: near.url }
    const request = httpRequest(near.url + createPath, {
      method: 'POST',
      headers: {
        ...signedHeaders(credentials, 'POST', createPath, text),
        'Content-Length': text.length,
        Expect: '100-continue',
      },
    })
    const answered = once(request, 'response')
    request.flushHeaders()
    // The gateway invites a body once key, status, workspace and timestamp have passed.
    await once(request, 'continue')
    await whileOpen()
    request.end(text)
    const [response] = (await answered) as [IncomingMessage]
    return JSON.parse(Buffer.concat(await response.toArray()).toString('utf8'))
  }
  expect(await slow(async () => {})).toMatchObject({ code: '2000' })
  const late = await slow(async () => {
    await admin.apiKeys.disable.mutate(key)
    await untilBoth(key, 'GA2021')
  })
  expect(late).toMatchObject({ code: 'GA2021' })
  const caller = { requestId: 'test' }
  const { balance } = await admin.wallets.balance.query({ workspaceId, walletId: sourceWalletId!, caller })
  expect(balance.toFixed(2)).toBe('4.00')
})
