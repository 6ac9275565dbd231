import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** A core that does not answer costs its gateways no more than a moment: they leave it until it is there again. */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
})
afterAll(() => system.stop())

async function metric({ internalUrl }: Program, name: string): Promise<number> {
  const text = await (await fetch(`${internalUrl}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

const unhealthyCores = (count: number) =>
  until(
    `${count} cores are unhealthy`,
    async () => (await metric(system.gateways[0]!, 'gateway_unhealthy_cores')) === count,
  )

function pay(bizId: string) {
  const [source, target] = system.wallets
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '0.01', currency: 'USD' }
  return call(system, 'POST', createPath, { ...order, bizId })
}

async function payMany(prefix: string, count = 100): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: count }, (_, number) => pay(`${prefix}-${number}`)))
  return answers.map(({ body }) => body.code)
}

async function countOf(prefix: string): Promise<number> {
  const { body } = await call(system, 'GET', `/api/v1/transfer/query/orders?bizIdPrefix=${prefix}&size=1`)
  return body.data.page.totalElements
}

test('one of two is frozen: what it had goes to the other one, and so does everything else', async () => {
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

test('all are frozen: what comes then is S002 and nothing of it is sent; they are found again by themselves', async () => {
  for (const core of system.cores) await core.kill('SIGSTOP')
  await unhealthyCores(2)
  const prefix = randomUUID()
  expect(new Set(await payMany(prefix, 300))).toEqual(new Set(['S002']))
  expect(await metric(system.gateways[0]!, 'gateway_core_calls\\{state="waiting"\\}')).toBe(0)
  for (const core of system.cores) await core.kill('SIGCONT')
  await unhealthyCores(0)
  await until('the gateway is ready', async () => (await fetch(`${system.baseUrl}/readyz`)).ok)
  expect(await countOf(prefix)).toBe(0)
  expect((await pay(`${prefix}-0`)).body.code).toBe('2000')
})

test('a core that is only slow is waited for', async () => {
  const { workspaceId, admin } = system
  const owner = new pg.Client({ connectionString: system.database.ownerUrl })
  await owner.connect()
  await owner.query('begin; select * from ledger for update')
  // Core waits for the lock for longer than it takes to notice that a core is silent, and has the last word.
  await expect(admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Late' })).rejects.toMatchObject({
    data: { appError: { code: 'S002' } },
  })
  await owner.query('rollback')
  await owner.end()
  expect(await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Late' })).toBeDefined()
})

test('after all of this the verifier finds the ledger sound', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
