import { createCoreClient } from '@workspace-wallet/core/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** The gateway's second listener: metrics, readiness, and core for internal callers. */

let system: System
let internalUrl: string
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
  internalUrl = system.gateways[0]!.internalUrl
})
afterAll(() => system.stop())

test('metrics count requests by route and code, and refusals by step', async () => {
  await call(system, 'GET', '/api/v1/wallets')
  await call(system, 'GET', '/api/v1/wallets', undefined, { secret: 'wrong' })
  await call(system, 'POST', createPath, {})
  const text = await (await fetch(`${internalUrl}/metrics`)).text()
  const lines = [
    /^gateway_request_duration_seconds_count\{route="\/api\/v1\/wallets",code="2000"\} [1-9]/m,
    /^gateway_request_duration_seconds_count\{route="\/api\/v1\/transfer\/command\/create",code="S012"\} 1$/m,
    /^gateway_refusals_total\{step="signature",code="GA2012",status="401"\} 1$/m,
    /^nodejs_eventloop_lag_p99_seconds /m,
  ]
  for (const line of lines) expect(text).toMatch(line)
  expect(text).not.toContain(system.apiSecret)
})

test('core counts its batches, queues and connections', async () => {
  await call(system, 'POST', createPath, {
    sourceWalletId: system.wallets[0]!.walletId,
    targetWalletId: system.wallets[1]!.walletId,
    amount: '0.01',
    currency: 'USD',
  })
  const texts = await Promise.all(system.cores.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
  for (const text of texts) {
    expect(text).toMatch(/^core_postings\{state="waiting"\} 0$/m)
    expect(text).toMatch(/^core_database_connections\{pool="reads",state="awaited"\} 0$/m)
  }
  expect(texts.some(text => /^core_batch_postings_count [1-9]/m.test(text))).toBe(true)
})

test('readiness, health, and nothing else', async () => {
  expect((await fetch(`${internalUrl}/healthz`)).status).toBe(200)
  expect((await fetch(`${internalUrl}/readyz`)).status).toBe(200)
  expect((await fetch(`${internalUrl}/api/v1/wallets`)).status).toBe(404)
  expect((await fetch(`${internalUrl}/flight`, { method: 'POST', body: '{}' })).status).toBe(401)
})

test('a typed client works through it, with its own token and no other rights, through a lost core', async () => {
  const service = createCoreClient({ url: internalUrl, token: system.serviceToken })
  const caller = { requestId: 'internal' }
  const { workspaceId } = system
  const [source, target] = system.wallets
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '0.10', currency: 'USD' }
  const created = await service.transfers.create.mutate({ workspaceId, caller, order })
  expect(created.createdAt).toBeInstanceOf(Date)
  await expect(service.workspaces.create.mutate({ name: 'x' })).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })

  await system.cores[0]!.kill('SIGKILL')
  const walletId = source!.walletId
  const isServed = async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 8 }, () => service.wallets.balance.query({ workspaceId, caller, walletId })),
    )
    return answers.every(({ status }) => status === 'fulfilled')
  }
  await until('the other core serves', isServed)
  await service.close()
})
