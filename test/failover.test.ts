/**
 * PostgreSQL with a synchronous standby. A success is answered only when the standby has the transfer too, so a failover
 * loses nothing that was answered; and each bizId still makes one transfer.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { pauseAfter } from './setup/load.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from './setup/replicated-postgres.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

let postgres: ReplicatedPostgres
let system: System
beforeAll(async () => {
  postgres = await startReplicatedPostgres()
  system = await startSystem({ database: postgres, cores: 2 })
  // Before its first request, the gateway begins a generation of nonces, which is written too.
  await until('the gateway serves', async () => (await codeOf('GET', '/api/v1/wallets')) === '2000')
})
afterAll(async () => {
  await system?.stop()
  await postgres?.stop()
})

/** A test that failed leaves no fault to the next one. */
afterEach(() => postgres.replication.thaw())

type Order = { bizId: string }

function newOrder(): Order {
  const bizId = `failover-${randomUUID()}`
  return { bizId, ...transferOrder(system) }
}
const codeOf = async (method: 'GET' | 'POST', path: string, body?: object) =>
  (await call(system, method, path, body)).body.code
const pay = (order: Order) => codeOf('POST', createPath, order)
/** Pays again after S002: nothing was done. Returns the code of the answer. */
const payAgain = (order: Order) =>
  until('another answer than S002', async () => {
    const code = await pay(order)
    return code !== 'S002' && code
  })
const find = ({ bizId }: Order) => codeOf('GET', `/api/v1/transfer/query/orders/${bizId}`)
const untilPaid = (order: Order) => until('the transfer succeeds', async () => (await pay(order)) === '2000')

/** The number of transfers, and what they moved, in cents. */
async function moved(): Promise<{ transfers: number; cents: number }> {
  const { walletId } = system.wallets[1]!
  const orders = await call(system, 'GET', '/api/v1/transfer/query/orders?bizIdPrefix=failover-')
  const { body } = await call(system, 'GET', `/api/v1/wallets/${walletId}/balance`)
  return { transfers: orders.body.data.page.totalElements, cents: Math.round(body.data.balance * 100) - 25_000 }
}

test('what the standby has not received is neither confirmed nor shown, and then done once', async () => {
  const order = newOrder()
  postgres.replication.freeze()
  expect(await payAgain(order)).toBe('S003')
  expect(await find(order)).toBe('T001')
  // The first create still holds the lock of the workspace.
  expect(await pay(order)).toBe('S002')
  postgres.replication.thaw()
  await untilPaid(order)
  expect(await moved()).toEqual({ transfers: 1, cents: 1 })
})

test('after a failover under load, everything that was confirmed exists, and everything else can be repeated', async () => {
  const { transfers } = await moved()
  const orders: Order[] = []
  const confirmed: Order[] = []
  let isFinished = false
  const customer = async () => {
    while (!isFinished) {
      const order = newOrder()
      orders.push(order)
      const code = await pay(order)
      if (code === '2000') confirmed.push(order)
      else expect(['S002', 'S003']).toContain(code)
      await pauseAfter(code)
    }
  }
  const customers = Promise.all(Array.from({ length: 16 }, customer))
  await until('some transfers', () => confirmed.length > 100)
  // Some transfers are committed on the primary alone when it dies.
  const unconfirmed = newOrder()
  orders.push(unconfirmed)
  postgres.replication.freeze()
  expect(await pay(unconfirmed)).not.toBe('2000')
  const before = [...confirmed]
  await postgres.failOver()
  await until('further transfers', () => confirmed.length > before.length + 100)
  isFinished = true
  await customers

  for (const order of before) expect(await find(order), order.bizId).toBe('2000')
  for (const order of orders) await untilPaid(order)
  const all = transfers + orders.length
  expect(await moved()).toEqual({ transfers: all, cents: all })
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

test('the former primary, started again by mistake, is neither read nor written', async () => {
  const order = newOrder()
  await postgres.connectToFormerPrimary()
  await untilRefused('timeline')
  expect(await find(order)).toBe('S002')
  expect(await pay(order)).toBe('S002')
  await postgres.connectToStandby()
  await until('core calls the new primary', async () => (await find(order)) === 'T001')
  await untilPaid(order)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

/** Waits until both cores refuse connections for this reason. */
async function untilRefused(reason: string): Promise<void> {
  const series = `core_database_refused_total{reason="${reason}"}`
  const counts = () => Promise.all(system.cores.map(({ url }) => readMetric(url, series)))
  const before = await counts()
  await until(`both cores refuse it: ${reason}`, async () => (await counts()).every((count, at) => count > before[at]!))
}
