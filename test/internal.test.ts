import { readFile } from 'node:fs/promises'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** The internal listener of the gateway: metrics, readiness, and the API of core for internal callers. */

let system: System
let internalUrl: string
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
  internalUrl = system.gateways[0]!.internalUrl
})
afterAll(() => system.stop())

test('metrics count requests by route and code, and rejections by step', async () => {
  await call(system, 'GET', '/api/v1/wallets')
  await call(system, 'GET', '/api/v1/wallets', undefined, { secret: 'wrong' })
  await call(system, 'POST', createPath, {})
  const text = await (await fetch(`${internalUrl}/metrics`)).text()
  const lines = [
    /^gateway_request_duration_seconds_count\{route="\/api\/v1\/wallets",code="2000"\} [1-9]/m,
    /^gateway_request_duration_seconds_count\{route="\/api\/v1\/transfer\/command\/create",code="S012"\} 1$/m,
    /^gateway_rejections_total\{step="signature",code="GA2012",status="401"\} 1$/m,
    /^gateway_nonce_store_duration_seconds_count\{outcome="answered"\} [1-9]/m,
    /^gateway_part_up\{part="nonces"\} 1$/m,
    /^gateway_part_up\{part="core"\} 1$/m,
    /^nodejs_eventloop_lag_p99_seconds /m,
  ]
  for (const line of lines) expect(text).toMatch(line)
  expect(text).not.toContain(system.apiSecret)
})

test('core counts its batches, queues and connections', async () => {
  await call(system, 'POST', createPath, transferOrder(system))
  const texts = await Promise.all(system.cores.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
  for (const text of texts) {
    expect(text).toMatch(/^core_postings\{state="waiting"\} 0$/m)
    expect(text).toMatch(/^core_database_connections\{pool="reads",state="awaited"\} 0$/m)
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m)
  }
  expect(texts.some(text => /^core_batch_postings_count [1-9]/m.test(text))).toBe(true)
})

test('core counts its calls by procedure and code', async () => {
  const { workspaceId } = system
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const walletId = system.wallets[0]!.walletId
  await service.wallets.balance.query({ workspaceId, walletId, caller: { requestId: 'a' } })
  await service.transfers.get.query({ workspaceId, bizId: 'none', caller: { requestId: 'b' } }).catch(() => null)
  await service.workspaces.create.mutate({ name: 'x' }).catch(() => null)
  await service.close()
  const text = await (await fetch(`${system.coreUrl}/metrics`)).text()
  for (const [path, code] of [
    ['wallets.balance', 'ok'],
    ['transfers.get', 'T001'],
    ['workspaces.create', 'FORBIDDEN'],
  ])
    expect(text).toMatch(new RegExp(`^core_call_duration_seconds_count\\{path="${path}",code="${code}"\\} [1-9]`, 'm'))
})

test('every metric that docs/operations.md names exists', async () => {
  const page = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
  const named = new Set([...page.matchAll(/`((?:core|gateway|nodejs)_[a-z0-9_]+)/g)].map(([, name]) => name!))
  const urls = [`${internalUrl}/metrics`, `${system.coreUrl}/metrics`]
  const scraped = (await Promise.all(urls.map(async url => (await fetch(url)).text()))).join('\n')
  expect(named.size).toBeGreaterThan(8)
  for (const name of named) expect(scraped, name).toContain(`# TYPE ${name.replace(/_count$/, '')} `)
})

test('the internal listener serves health, readiness and calls of core, and not the public API', async () => {
  expect((await fetch(`${internalUrl}/healthz`)).status).toBe(200)
  const ready = await until('the gateway is ready', async () => {
    const answer = await fetch(`${internalUrl}/readyz`)
    return answer.ok && answer
  })
  expect(await ready.json()).toEqual({ status: 'ready', parts: { core: { up: true }, nonces: { up: true } } })
  expect((await fetch(`${internalUrl}/api/v1/wallets`)).status).toBe(404)
  expect((await fetch(`${internalUrl}/batch`, { method: 'POST', body: '{}' })).status).toBe(401)
})

test('a typed client has the rights of its own token, and survives the loss of a core', async () => {
  const service = createCoreClient({ url: internalUrl, token: system.serviceToken })
  const caller = { requestId: 'internal' }
  const { workspaceId } = system
  const order = transferOrder(system)
  const created = await service.transfers.create.mutate({ workspaceId, caller, order })
  expect(created.createdAt).toBeInstanceOf(Date)
  await expect(service.workspaces.create.mutate({ name: 'x' })).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })

  await system.cores[0]!.kill('SIGKILL')
  const walletId = order.sourceWalletId
  const isServed = async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 8 }, () => service.wallets.balance.query({ workspaceId, caller, walletId })),
    )
    return answers.every(({ status }) => status === 'fulfilled')
  }
  await until('the other core serves', isServed)
  await service.close()
})
