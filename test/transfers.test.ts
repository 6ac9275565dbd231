import { randomUUID } from 'node:crypto'
import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { verifyLedger } from './setup/verify.ts'
import { createWallet } from './setup/workspaces.ts'

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 2, oneCorePerGateway: true })
})
afterAll(() => system.stop())

/** Sends requests to both gateways in turn, and so to both cores. */
let turn = 0
function send(method: string, path: string, body?: unknown, overrides = {}) {
  const { url } = system.gateways[turn++ % system.gateways.length]!
  return call({ ...system, baseUrl: url }, method, path, body, overrides)
}

const newWallet = (amount?: string, currency = 'USD') =>
  createWallet(system, { currency, deposits: amount ? [amount] : [] })

function order(sourceWalletId: string, targetWalletId: string, amount: string, more: object = {}) {
  return { sourceWalletId, targetWalletId, amount, currency: 'USD', ...more }
}

async function balanceOf(walletId: string): Promise<string> {
  return (await send('GET', `/api/v1/wallets/${walletId}/balance`)).body.data.balance
}

describe('creating a transfer', () => {
  test('moves money and returns the order, which can be read by its bizId and its transferId', async () => {
    const [source, target] = [await newWallet('1000.00'), await newWallet()]
    const bizId = `order-${randomUUID()}`
    const { status, body, headers } = await send(
      'POST',
      createPath,
      order(source, target, '100.50', { bizId, remark: 'März "rent" \\ 房租' }),
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({ version: '1.3.0', success: true, code: '2000', message: 'SUCCESS' })
    expect(body.data).toEqual({
      transferId: expect.stringMatching(/^trf_[0-9a-z]{26}$/),
      bizId,
      status: 'COMPLETED',
      amount: '100.50',
      currency: 'USD',
      sourceWalletId: source,
      targetWalletId: target,
      remark: 'März "rent" \\ 房租',
      reference: null,
      holdId: null,
      batchId: null,
      reversesTransferId: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: body.data.createdAt,
      completedAt: body.data.createdAt,
      reversedAmount: '0.00',
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-request-id')).toMatch(/^req_/)
    expect([await balanceOf(source), await balanceOf(target)]).toEqual(['899.50', '100.50'])
    for (const name of [bizId, body.data.transferId]) {
      const found = await send('GET', `/api/v1/transfer/query/orders/${name}`)
      expect(found.body.data).toEqual(body.data)
    }
  })

  test('is rejected by the first rule that it breaks, and moves nothing', async () => {
    const [source, target, euro] = [await newWallet('10.00'), await newWallet(), await newWallet(undefined, 'EUR')]
    const frozen = await newWallet('5.00')
    const { workspaceId, admin } = system
    await admin.wallets.changeStatus.mutate({ workspaceId, walletId: frozen, status: 'FROZEN' })
    const absent = idFromUuid('wallet', '01890a5d-ac96-774b-bcce-b302099a8057' as Uuid<'wallet'>)
    const rejections: [object, number, string][] = [
      [order(source, source, '1.00'), 422, 'T004'],
      [order('nonsense', 'nonsense', '1.00'), 422, 'T004'],
      [order(absent, target, '1.00'), 404, 'W001'],
      [order(source, absent, '1.00'), 404, 'W001'],
      [order(source, 'nonsense', '1.00'), 404, 'W001'],
      [order(source, '', '1.00'), 404, 'W001'],
      [order(source, frozen, '1.00'), 409, 'W002'],
      [order(frozen, target, '1.00'), 409, 'W002'],
      [order(source, euro, '1.00'), 422, 'T003'],
      [order(source, target, '1.00', { currency: 'EUR' }), 422, 'T003'],
      [order(source, target, '10.01'), 422, 'T002'],
      [order(source, target, '0'), 400, 'S012'],
      [order(source, target, '1.001'), 400, 'S012'],
      [order(source, target, '-1'), 400, 'S012'],
      [order(source, target, '1', { more: 1 }), 400, 'S012'],
    ]
    for (const [body, status, code] of rejections) {
      const answer = await send('POST', createPath, body)
      expect([answer.status, answer.body.code, answer.body.data], JSON.stringify(body)).toEqual([status, code, null])
    }
    expect([await balanceOf(source), await balanceOf(target)]).toEqual(['10.00', '0.00'])
  })
})

describe('bizId', () => {
  test('concurrent duplicates through two gateways and two cores make one transfer, and each gets 200', async () => {
    const [source, target] = [await newWallet('100.00'), await newWallet()]
    const body = order(source, target, '3.00', { bizId: `race-${randomUUID()}` })
    const answers = await Promise.all(Array.from({ length: 64 }, () => send('POST', createPath, body)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(answer => answer.body.data.transferId)).size).toBe(1)
    expect([await balanceOf(source), await balanceOf(target)]).toEqual(['97.00', '3.00'])
  })

  test('a replay returns the first order, also after its wallet was emptied and frozen, and with another remark', async () => {
    const [source, target] = [await newWallet('5.00'), await newWallet()]
    const body = order(source, target, '5.00', { bizId: `empty-${randomUUID()}`, remark: 'first' })
    const first = await send('POST', createPath, body)
    await system.admin.wallets.changeStatus.mutate({
      workspaceId: system.workspaceId,
      walletId: source,
      status: 'FROZEN',
    })
    const again = await send('POST', createPath, { ...body, amount: '5', remark: 'second' })
    expect([again.status, again.body.data]).toEqual([200, first.body.data])
    expect(await balanceOf(source)).toBe('0.00')
  })

  test('another transfer with the same bizId is T005', async () => {
    const [source, target] = [await newWallet('5.00'), await newWallet()]
    const body = order(source, target, '1.00', { bizId: `conflict-${randomUUID()}` })
    await send('POST', createPath, body)
    for (const change of [
      { amount: '2.00' },
      { sourceWalletId: target, targetWalletId: source },
      { currency: 'EUR' },
    ]) {
      const answer = await send('POST', createPath, { ...body, ...change })
      expect([answer.status, answer.body.code]).toEqual([409, 'T005'])
    }
  })

  test('a rejected transfer does not use up its bizId', async () => {
    const [source, target] = [await newWallet(), await newWallet()]
    const body = order(source, target, '1.00', { bizId: `refused-${randomUUID()}` })
    expect((await send('POST', createPath, body)).body.code).toBe('T002')
    await system.admin.wallets.deposit.mutate({
      workspaceId: system.workspaceId,
      walletId: source,
      amount: '1.00',
      bizId: randomUUID(),
    })
    expect((await send('POST', createPath, body)).status).toBe(200)
  })
})

describe('concurrency', () => {
  test('of 64 requests with one nonce, one succeeds and 63 get GA2013', async () => {
    const nonce = randomUUID()
    const path = `/api/v1/wallets/${system.wallets[0]!.walletId}`
    const answers = await Promise.all(Array.from({ length: 64 }, () => send('GET', path, undefined, { nonce })))
    const codes = answers.map(({ body }) => body.code).sort()
    expect(codes).toEqual(['2000', ...Array.from({ length: 63 }, () => 'GA2013')])
  })

  test('concurrent transfers cannot overdraw a wallet', async () => {
    const [source, target] = [await newWallet('50.00'), await newWallet()]
    const answers = await Promise.all(
      Array.from({ length: 120 }, () => send('POST', createPath, order(source, target, '1.00'))),
    )
    const codes = answers.map(({ body }) => body.code)
    expect(codes.filter(code => code === '2000')).toHaveLength(50)
    expect(codes.filter(code => code === 'T002')).toHaveLength(70)
    expect([await balanceOf(source), await balanceOf(target)]).toEqual(['0.00', '50.00'])
  })

  test('concurrent transfers in a circle keep the sum of all balances', async () => {
    const ring = await Promise.all(Array.from({ length: 6 }, () => newWallet('10.00')))
    const answers = await Promise.all(
      Array.from({ length: 240 }, (_, at) =>
        send('POST', createPath, order(ring[at % 6]!, ring[(at * 5 + 1) % 6]!, `${(at % 7) + 1}.25`)),
      ),
    )
    expect(answers.every(({ body }) => ['2000', 'T002', 'T004'].includes(body.code))).toBe(true)
    const balances = await Promise.all(ring.map(balanceOf))
    const cents = balances.map(balance => BigInt(balance.replace('.', '')))
    expect(cents.reduce((sum, balance) => sum + balance, 0n)).toBe(6000n)
    expect(cents.every(balance => balance >= 0n)).toBe(true)
  })
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
