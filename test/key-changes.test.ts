import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Credentials, call, createPath, signedHeaders } from './setup/client.ts'
import { type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * When a change of a key takes effect on two gateways, without and with faults. How long a gateway may use cached keys is
 * tested with a clock of the test: gateway/src/auth/keys/key-cache.test.ts.
 */

let system: System
/** The first gateway connects through these proxies. The second one connects directly, and to another core. */
let toCore: FaultProxy
let toRedis: FaultProxy
let proxied: Program
let direct: Program
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 0 })
  toCore = await startFaultProxy(system.cores[0]!.port)
  const redis = new URL(inject('redisUrl'))
  toRedis = await startFaultProxy(Number(redis.port || 6379))
  proxied = await startProxied()
  direct = await system.startGateway({ CORE_URL: system.cores[1]!.url })
})
afterAll(async () => {
  await system.stop()
  toCore.cut()
  toRedis.cut()
})

/** A test that failed leaves no fault to the next one. */
afterEach(async () => {
  await toCore.restore()
  await toRedis.restore()
})

function startProxied(): Promise<Program> {
  const redis = Object.assign(new URL(inject('redisUrl')), { port: String(toRedis.port) })
  return system.startGateway({ CORE_URL: toCore.url, REDIS_URL: redis.href })
}

type Issued = Credentials & { workspaceId: string }

const newKey = (): Promise<Issued> => createTenant(system, { scopes: ['wallet:read', 'transfer:create'] })

/**
 * The decision of a gateway about a key. A gateway validates the body after all eight steps, and calls core only for a
 * valid body: S012 for an empty body means that the key was accepted.
 */
async function codeAt(gateway: Program, key: Issued): Promise<string> {
  const { code } = (await call({ ...key, baseUrl: gateway.url }, 'POST', createPath, {})).body
  return code === 'S012' ? accepted : code
}
const accepted = 'accepted'

async function untilBoth(key: Issued, code: string): Promise<void> {
  for (const gateway of [proxied, direct])
    await until(`${code} at both gateways`, async () => (await codeAt(gateway, key)) === code)
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
])('%s takes effect on both gateways: %s', async (_action, code, action) => {
  const key = await newKey()
  await untilBoth(key, accepted)
  await action(key)
  await untilBoth(key, code)
})

describe('without its dependencies, no gateway accepts a revoked key', () => {
  type Fault = { begin: () => Promise<unknown> | undefined; end: () => Promise<unknown> }
  const faults: Record<string, Fault> = {
    'disconnected from core': {
      begin: async () => toCore.cut(),
      end: () => toCore.restore(),
    },
    'not answered by core, which receives its calls': {
      begin: async () => toCore.loseAnswers(),
      end: () => toCore.restore(),
    },
    'connected to a frozen core': {
      begin: () => system.cores[0]!.kill('SIGSTOP'),
      end: () => system.cores[0]!.kill('SIGCONT'),
    },
    'connected to a core that was killed': {
      begin: () => system.cores[0]!.kill('SIGKILL'),
      end: async () => {
        system.cores[0] = await system.startCore({ CORE_PORT: String(system.cores[0]!.port) })
      },
    },
  }

  test.each(Object.keys(faults))('a gateway that is %s rejects every request after a while', async fault => {
    const { begin, end } = faults[fault]!
    const key = await newKey()
    await untilBoth(key, accepted)
    // Through the other core: the first one does not answer.
    const admin = createCoreClient({ url: system.cores[1]!.url, token: system.adminToken })
    const codes: string[] = []
    const ask = async () => {
      codes.push(await codeAt(proxied, key))
      return codes.at(-1)!
    }
    await begin()
    try {
      await admin.apiKeys.disable.mutate(key)
      await admin.close()
      await until('the other gateway rejects the key', async () => (await codeAt(direct, key)) === 'GA2021')
      await until('it no longer uses cached keys', async () => (await ask()) === 'S002')
      await ask()
    } finally {
      await end()
    }
    await until('it rejects the key', async () => (await ask()) === 'GA2021')
    // It used cached keys, then none, then those of core: never again those from before.
    const phases = codes.filter((code, at) => code !== codes[at - 1])
    expect(phases).toEqual([accepted, 'S002', 'GA2021'].slice(-phases.length))
    expect(phases.length).toBeGreaterThan(1)
  })

  test('a gateway without Redis rejects every request, and still follows changes of keys', async () => {
    const key = await newKey()
    await untilBoth(key, accepted)
    toRedis.cut()
    await until('requests are rejected', async () => (await codeAt(proxied, key)) === 'S002')
    await system.admin.apiKeys.disable.mutate(key)
    await untilBoth(key, 'GA2021')
    await system.admin.apiKeys.enable.mutate(key)
    await until('enabled', async () => (await codeAt(direct, key)) === accepted)
    await until('requests are rejected without Redis', async () => (await codeAt(proxied, key)) === 'S002')
    await toRedis.restore()
    await untilBoth(key, accepted)
  })

  test('a gateway that starts without core rejects every request', async () => {
    const [active, disabled] = [await newKey(), await newKey()]
    await untilBoth(disabled, accepted)
    await proxied.stop()
    await system.admin.apiKeys.disable.mutate(disabled)
    toCore.cut()
    proxied = await startProxied()
    expect((await fetch(`${proxied.url}/readyz`)).status).toBe(503)
    for (const key of [active, disabled]) expect(await codeAt(proxied, key)).toBe('S002')
    await toCore.restore()
    await untilBoth(active, accepted)
    expect(await codeAt(proxied, disabled)).toBe('GA2021')
  })
})

test('a request whose body arrives after its key was disabled is rejected', async () => {
  const key = await newKey()
  await untilBoth(key, accepted)
  const { workspaceId } = key
  const { admin } = system
  const sourceWalletId = await createWallet({ admin, workspaceId }, { deposits: ['5.00'] })
  const targetWalletId = await createWallet({ admin, workspaceId })
  const text = JSON.stringify({ sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD' })
  const slow = async (whileOpen: () => Promise<unknown>): Promise<{ code: string }> => {
    const credentials = { ...key, baseUrl: proxied.url }
    const request = httpRequest(proxied.url + createPath, {
      method: 'POST',
      headers: {
        ...(await signedHeaders(credentials, 'POST', createPath, text)),
        'Content-Length': text.length,
        Expect: '100-continue',
      },
    })
    const answered = once(request, 'response')
    request.flushHeaders()
    // The gateway sends 100 Continue after it has checked key, status, workspace and timestamp.
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
  const { balance } = await admin.wallets.balance.query({ workspaceId, walletId: sourceWalletId, caller })
  expect(balance.toFixed(2)).toBe('4.00')
})
