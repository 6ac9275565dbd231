import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { call, createPath } from './setup/client.ts'
import { pauseAfter } from './setup/load.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** A rolling restart under load: two gateways and two cores are stopped and started again one after the other. */

const stopDelayMs = 500

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 2, gatewayEnvironment: { STOP_DELAY_MS: String(stopDelayMs) } })
})
afterAll(() => system.stop())

/** Checks the readiness of the gateways, as a load balancer does. `ready` has those that get requests. */
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
      // The gateway may have been replaced meanwhile.
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

test('every transfer succeeds at its first attempt, and every program stops in order', async () => {
  const gateways = [...system.gateways]
  const balancer = balance(gateways)
  /** When each gateway was told to stop. It serves for another `stopDelayMs`. */
  const stoppedAtMs = new Map<Program, number>()
  let isOver = false
  let sent = 0
  const codes: string[] = []
  async function codeOf(number: number): Promise<string> {
    const order = transferOrder(system, { bizId: `rolling-${number}` })
    for (;;) {
      const gateway = await until('a gateway is ready', () => [...balancer.ready][number % balancer.ready.size])
      try {
        return (await call({ ...system, baseUrl: gateway.url }, 'POST', createPath, order)).body.code
      } catch (error) {
        // A balancer that stalls for longer than the delay sends to a gateway that has stopped.
        const isLate = performance.now() - (stoppedAtMs.get(gateway) ?? Number.POSITIVE_INFINITY) > stopDelayMs
        if (!isLate) return String(error)
      }
    }
  }
  const clients = Array.from({ length: 12 }, async () => {
    while (!isOver) {
      const code = await codeOf(++sent)
      codes.push(code)
      await pauseAfter(code)
    }
  })
  const moreTransfers = async () => {
    const before = codes.length
    await until('transfers succeed', () => codes.length > before + 100)
  }
  await moreTransfers()
  for (const [at, gateway] of system.gateways.entries()) {
    stoppedAtMs.set(gateway, performance.now())
    expect(await gateway.stop()).toBe(0)
    await moreTransfers()
    const { port, internalPort } = { port: gateway.port, internalPort: new URL(gateway.internalUrl).port }
    gateways[at] = await system.startGateway({ GATEWAY_PORT: String(port), INTERNAL_PORT: internalPort })
    await until('the new gateway is ready', () => balancer.ready.has(gateways[at]!))
    await moreTransfers()
    if (at === 1) break
  }
  for (const core of system.cores.slice(0, 2)) {
    expect(await core.stop()).toBe(0)
    await moreTransfers()
    await system.startCore({ CORE_PORT: String(core.port) })
    await moreTransfers()
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
