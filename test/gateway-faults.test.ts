/**
 * Faults between the gateway and core, and between the gateway and Redis. A create whose answer is lost is sent again as
 * the same transfer; without Redis no request is accepted; and the gateway recovers by itself.
 */

import { randomUUID } from 'node:crypto'
import type { Readiness } from '@workspace-wallet/runtime'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { type Fault, type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

let system: System
let toCore: FaultProxy
let toRedis: FaultProxy
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  toCore = await startFaultProxy(system.cores[0]!.port)
  toRedis = await startFaultProxy(Number(new URL(inject('redisUrl')).port || 6379))
  await system.startGateway({
    CORE_URL: toCore.through(system.coreUrl),
    REDIS_URL: toRedis.through(inject('redisUrl')),
  })
})
afterAll(async () => {
  await system.stop()
  toCore.cut()
  toRedis.cut()
})

/** A test that failed leaves no fault to the next one. */
afterEach(async () => {
  for (const proxy of [toCore, toRedis]) {
    proxy.thaw()
    await proxy.restore()
  }
})

const credentials = () => ({ ...system, baseUrl: system.gateways[0]!.url })
const walletsPath = '/api/v1/wallets'

const newOrder = () => {
  const bizId = `fault-${randomUUID()}`
  return { bizId, ...transferOrder(system, { bizId }) }
}
const pay = (order: object) => call(credentials(), 'POST', createPath, order)
const read = (nonce = randomUUID()) => call(credentials(), 'GET', walletsPath, undefined, { nonce })
const isServed = async () => (await read()).body.code === '2000'

/** How many transfers with a bizId exist. */
async function countOf({ bizId }: { bizId: string }): Promise<number> {
  const { body } = await call(credentials(), 'GET', `/api/v1/transfer/query/orders?bizIdPrefix=${bizId}`)
  return body.data.page.totalElements
}

describe('the connection to core', () => {
  const points: [string, Omit<Fault, 'at' | 'by'>][] = [
    ['before a create is sent', { in: 'request', passes: 'none' }],
    ['in the middle of a create', { in: 'request', passes: 'half' }],
    ['after a create was sent', { in: 'request', passes: 'all' }],
    ['before its answer', { in: 'answer', passes: 'none' }],
    ['in the middle of its answer', { in: 'answer', passes: 'half' }],
  ]
  test.each(points)('is lost %s: the create is sent again, and done once', async (_, fault) => {
    const order = newOrder()
    const failed = toCore.fail({ ...fault, at: order.bizId, by: 'reset' })
    const [answer] = await Promise.all([pay(order), failed])
    expect(answer.body.code).toBe('2000')
    expect((await pay(order)).body.data).toEqual(answer.body.data)
    expect(await countOf(order)).toBe(1)
  })

  test('freezes in the middle of an answer: the answer comes on another connection', async () => {
    const order = newOrder()
    const failed = toCore.fail({ in: 'answer', at: order.bizId, passes: 'half', by: 'freeze' })
    const [answer] = await Promise.all([pay(order), failed])
    expect(answer.body.code).toBe('2000')
    toCore.thaw()
    expect(await countOf(order)).toBe(1)
  })

  test('freezes like all others: reads fail with S002, and a create that was sent with S003 and its X-Transfer-Id', async () => {
    const order = newOrder()
    const failed = toCore.fail({ in: 'request', at: order.bizId, passes: 'all', by: 'freeze' })
    const paying = pay(order)
    await failed
    toCore.freeze()
    const [answer, list] = await Promise.all([paying, read()])
    expect(list.body.code).toBe('S002')
    expect(answer.body.code).toBe('S003')
    expect(answer.headers.get('x-transfer-id')).toMatch(/^trf_/)
    // The first create arrives at core only now, together with its retries.
    toCore.thaw()
    await until('the gateway calls core again', isServed)
    const [again, onceMore] = await Promise.all([pay(order), pay(order)])
    expect([again.body.code, onceMore.body.code]).toEqual(['2000', '2000'])
    expect(onceMore.body.data).toEqual(again.body.data)
    expect(await countOf(order)).toBe(1)
  })

  test('is refused: S002, until core is back', async () => {
    toCore.cut()
    const order = newOrder()
    const [answer, list] = [await pay(order), await read()]
    expect([answer.body.code, list.body.code]).toEqual(['S002', 'S002'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    const { internalUrl, output } = system.gateways[0]!
    const readiness = async () => (await fetch(`${internalUrl}/readyz`)).json() as Promise<Readiness>
    // The gateway may still report the fault of an earlier test, until its next poll of core fails.
    const { parts } = await until('the gateway reports that connections are refused', async () => {
      const found = await readiness()
      const { core } = found.parts
      return core && !core.up && core.reason.includes('ECONNREFUSED') && found
    })
    expect(parts).toEqual({
      core: { up: false, reason: expect.stringMatching(/^no core has answered for \d+ s: /) },
      nonces: { up: true },
    })
    await until('the log reports the fault', () => output().includes('core is unavailable'))
    await toCore.restore()
    await until('the gateway calls core again', isServed)
    await until(
      'the log reports that core is back',
      () => output().lastIndexOf('core is available again') > output().lastIndexOf('core is unavailable'),
    )
    expect(await readiness()).toEqual({ status: 'ready', parts: { core: { up: true }, nonces: { up: true } } })
    expect(await countOf(order)).toBe(0)
    expect((await pay(order)).body.code).toBe('2000')
  })
})

describe('the connection to Redis', () => {
  test('freezes: signed requests fail with S002, and requests that fail before the nonce check keep their codes', async () => {
    toRedis.freeze()
    const nonce = randomUUID()
    const order = newOrder()
    const [list, answer, unknownKey, stale] = await Promise.all([
      read(nonce),
      pay(order),
      call({ ...credentials(), apiKey: 'ak_unknown' }, 'GET', walletsPath),
      call(credentials(), 'GET', walletsPath, undefined, { timestamp: '1' }),
    ])
    expect([list.body.code, answer.body.code]).toEqual(['S002', 'S002'])
    expect([unknownKey.body.code, stale.body.code]).toEqual(['GA2011', 'GA2013'])
    toRedis.thaw()
    await until('the gateway calls Redis again', isServed)
    expect(await countOf(order)).toBe(0)
    // Redis may have received the nonce meanwhile: at most one request is accepted.
    const codes = (await Promise.all([read(nonce), read(nonce), read(nonce)])).map(({ body }) => body.code)
    expect(codes.filter(code => code === '2000').length).toBeLessThan(2)
    expect(codes.filter(code => code === 'GA2013').length).toBeGreaterThan(1)
  })

  const points: [string, Omit<Fault, 'at' | 'by'>][] = [
    ['before a nonce is sent', { in: 'request', passes: 'none' }],
    ['in the middle of a nonce', { in: 'request', passes: 'half' }],
    ['after a nonce was sent', { in: 'request', passes: 'all' }],
  ]
  test.each(points)('is lost %s: the request is not accepted', async (_, fault) => {
    const nonce = randomUUID()
    const failed = toRedis.fail({ ...fault, at: nonce, by: 'reset' })
    const [first] = await Promise.all([read(nonce), failed])
    expect(first.body.code).toBe('S002')
    await until('the gateway calls Redis again', isServed)
    const codes = (await Promise.all([read(nonce), read(nonce), read(nonce)])).map(({ body }) => body.code)
    expect(codes.filter(code => code === '2000').length).toBeLessThan(2)
    expect(codes.filter(code => code === 'GA2013').length).toBeGreaterThan(1)
  })

  test('freezes for good: the gateway opens another one', async () => {
    const nonce = randomUUID()
    const failed = toRedis.fail({ in: 'request', at: nonce, passes: 'none', by: 'freeze' })
    const [first] = await Promise.all([read(nonce), failed])
    expect(first.body.code).toBe('S002')
    await until('the gateway calls Redis again', isServed)
  })

  test('is refused: S002, until Redis is back', async () => {
    toRedis.cut()
    expect((await read()).body.code).toBe('S002')
    await toRedis.restore()
    await until('the gateway calls Redis again', isServed)
  })
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
