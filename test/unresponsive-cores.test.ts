import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** Gateways remove a core that does not answer from rotation, and return to it when it answers again. */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
})
afterAll(() => system.stop())
/** A test that failed leaves no core frozen. */
afterEach(async () => {
  for (const core of system.cores) await core.kill('SIGCONT')
  await unhealthyCores(0)
  await until('the gateway is ready', async () => (await fetch(`${system.baseUrl}/readyz`)).ok)
})

const metric = (series: string) => readMetric(system.gateways[0]!.internalUrl, series)

const unhealthyCores = (count: number) =>
  until(`${count} cores are unhealthy`, async () => (await metric('gateway_unhealthy_cores')) === count)

const pay = (bizId: string) => call(system, 'POST', createPath, transferOrder(system, { bizId }))

async function payMany(prefix: string, count = 100): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: count }, (_, number) => pay(`${prefix}-${number}`)))
  return answers.map(({ body }) => body.code)
}

async function countOf(prefix: string): Promise<number> {
  const { body } = await call(system, 'GET', `/api/v1/transfer/query/orders?bizIdPrefix=${prefix}&size=1`)
  return body.data.page.totalElements
}

test('while one of two cores is frozen, the other one carries out every call, including those sent to the frozen one', async () => {
  const frozen = system.cores[0]!
  await frozen.kill('SIGSTOP')
  const prefix = randomUUID()
  const first = payMany(prefix)
  await unhealthyCores(1)
  expect(new Set(await first)).toEqual(new Set(['2000']))
  for (let turn = 0; turn < 10; turn++) expect((await pay(`${prefix}-more-${turn}`)).body.code).toBe('2000')
  await frozen.kill('SIGCONT')
  await unhealthyCores(0)
  expect(await countOf(prefix)).toBe(110)
})

test('while all cores are frozen, new requests fail with S002 and are not carried out; the gateway recovers by itself', async () => {
  for (const core of system.cores) await core.kill('SIGSTOP')
  await unhealthyCores(2)
  const prefix = randomUUID()
  expect(new Set(await payMany(prefix, 300))).toEqual(new Set(['S002']))
  expect(await metric('gateway_core_calls{state="waiting"}')).toBe(0)
  for (const core of system.cores) await core.kill('SIGCONT')
  await unhealthyCores(0)
  await until('the gateway is ready', async () => (await fetch(`${system.baseUrl}/readyz`)).ok)
  expect(await countOf(prefix)).toBe(0)
  expect((await pay(`${prefix}-0`)).body.code).toBe('2000')
})

test('clients wait for a slow core', async () => {
  const { workspaceId, admin } = system
  const owner = await connect(system.database.ownerUrl)
  try {
    await owner.query('begin; select * from ledger for update')
    // Core waits for the lock longer than clients wait for a sign of life of a core. Its own answer arrives, which names who blocks it.
    await expect(admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Late' })).rejects.toMatchObject({
      data: { appError: { code: 'BLOCKED' } },
    })
  } finally {
    // Ends the transaction.
    await owner.end()
  }
  expect(await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Late' })).toBeDefined()
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
