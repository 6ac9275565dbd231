import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** A deployment under load: two gateways and two cores are stopped and started again, one after the other. */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 2, gatewayEnvironment: { STOP_DELAY_MS: '500' } })
})
afterAll(() => system.stop())

/** As a balancer does: asks each gateway for its readiness, and sends nothing to one that says no. */
function balance(gateways: Program[]) {
  let isOver = false
  const ready = new Set(gateways)
  const watches = gateways.map(async (_, at) => {
    while (!isOver) {
      const gateway = gateways[at]!
      const isReady = await fetch(`${gateway.internalUrl}/readyz`).then(
        response => response.ok,
        () => false,
      )
      // Another program may stand in its place by now.
      if (isReady && gateway === gateways[at]) ready.add(gateway)
      else ready.delete(gateway)
      await sleep(10)
    }
  })
  return {
    ready,
    async stop() {
      isOver = true
      await Promise.all(watches)
    },
  }
}

test('every transfer is answered with success at its first attempt, and every program ends in order', async () => {
  const [first, second] = system.wallets
  const order = { sourceWalletId: first!.walletId, targetWalletId: second!.walletId, amount: '0.01', currency: 'USD' }
  const gateways = [...system.gateways]
  const balancer = balance(gateways)
  let isOver = false
  let sent = 0
  const codes: string[] = []
  const clients = Array.from({ length: 12 }, async () => {
    while (!isOver) {
      const at = [...balancer.ready][sent++ % balancer.ready.size]!
      const bizId = `rolling-${sent}`
      const answer = await call({ ...system, baseUrl: at.url }, 'POST', createPath, { ...order, bizId }).catch(String)
      codes.push(typeof answer === 'string' ? answer : answer.body.code)
    }
  })
  const flowing = async () => {
    const before = codes.length
    await until('transfers flow', () => codes.length > before + 100)
  }
  await flowing()
  for (const [at, gateway] of system.gateways.entries()) {
    expect(await gateway.stop()).toBe(0)
    await flowing()
    const { port, internalPort } = { port: gateway.port, internalPort: new URL(gateway.internalUrl).port }
    gateways[at] = await system.startGateway({ GATEWAY_PORT: String(port), INTERNAL_PORT: internalPort })
    await until('both are ready', () => balancer.ready.has(gateways[at]!))
    await flowing()
    if (at === 1) break
  }
  for (const core of system.cores.slice(0, 2)) {
    expect(await core.stop()).toBe(0)
    await flowing()
    await system.startCore({ CORE_PORT: String(core.port) })
    await flowing()
  }
  isOver = true
  await Promise.all(clients)
  await balancer.stop()
  expect([...new Set(codes)]).toEqual(['2000'])
  const at = { ...system, baseUrl: gateways[0]!.url }
  const { body } = await call(at, 'GET', '/api/v1/transfer/query/orders?bizIdPrefix=rolling-&size=1')
  expect(body.data.page.totalElements).toBe(sent)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
