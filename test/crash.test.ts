import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { call, createPath, type Envelope } from './setup/client.ts'
import { pauseAfter } from './setup/load.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

type Sent = { bizId: string; amount: string; code: string }

/** The answer to a request, which is sent again after S002. */
function ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Envelope> {
  return until('another answer than S002', async () => {
    const answer = (await call(system, method, path, body)).body
    return answer.code !== 'S002' && answer
  })
}

test('after kill -9 of core under load, every answer is still true and the ledger is sound', async () => {
  const target = system.wallets[1]
  const sent: Sent[] = []

  let isLoading = true
  const workers = Array.from({ length: 16 }, async (_, worker) => {
    for (let turn = 0; isLoading; turn++) {
      const entry: Sent = { bizId: `crash-${worker}-${turn}-${randomUUID()}`, amount: `0.0${(turn % 9) + 1}`, code: '' }
      sent.push(entry)
      entry.code = (
        await call(system, 'POST', createPath, transferOrder(system, { bizId: entry.bizId, amount: entry.amount }))
      ).body.code
      await pauseAfter(entry.code)
    }
  })
  const acknowledged = () => sent.filter(({ code }) => code === '2000').length
  for (let crash = 0; crash < 4; crash++) {
    const before = acknowledged()
    await until('transfers succeed', () => acknowledged() > before + 50)
    const core = system.cores.at(-1)!
    await core.kill('SIGKILL')
    await system.startCore({ CORE_PORT: String(core.port) })
  }
  const before = acknowledged()
  await until('transfers succeed again', () => acknowledged() > before + 50)
  isLoading = false
  await Promise.all(workers)

  // While core is down, a transfer is done, certainly not done, or its outcome is unknown.
  expect([...new Set(sent.map(({ code }) => code))].filter(code => !['2000', 'S002', 'S003'].includes(code))).toEqual(
    [],
  )
  const found = async ({ bizId }: Sent) => (await ask('GET', `/api/v1/transfer/query/orders/${bizId}`)).code
  const done: Sent[] = []
  await inParallel(16, sent, async entry => {
    const code = await found(entry)
    if (entry.code === '2000') expect(code, entry.bizId).toBe('2000')
    if (entry.code === 'S002') expect(code, entry.bizId).toBe('T001')
    if (code === '2000') done.push(entry)
  })
  const moved = done.reduce((cents, { amount }) => cents + BigInt(amount.replace('.', '')), 0n)
  const balance = await ask('GET', `/api/v1/wallets/${target!.walletId}/balance`)
  expect(BigInt(balance.data.balance.replace('.', ''))).toBe(25_000n + moved)
  expect(acknowledged()).toBeGreaterThan(200)

  // A retry with the same bizId makes the transfer once.
  const unanswered = sent.filter(({ code }) => code !== '2000')
  await inParallel(16, unanswered, async ({ bizId, amount }) => {
    const again = await ask('POST', createPath, transferOrder(system, { bizId, amount }))
    expect(again.code).toBe('2000')
  })
  const total = sent.reduce((cents, { amount }) => cents + BigInt(amount.replace('.', '')), 0n)
  const after = await ask('GET', `/api/v1/wallets/${target!.walletId}/balance`)
  expect(BigInt(after.data.balance.replace('.', ''))).toBe(25_000n + total)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
