import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, query } from '../../../../test/setup/database.ts'
import { signRows } from '../../../../test/setup/sign-rows.ts'
import { until } from '../../../../test/setup/until.ts'

/** Holds, draws on them, and what becomes of their wallets. */
let testCore: TestCore
let workspaceId: string
let a: string
let b: string
const caller = { requestId: 'test' }
const admin = () => testCore.as('admin')
const service = () => testCore.as('service')

beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

beforeEach(async () => {
  workspaceId = (await admin().workspaces.create({ name: 'Test' })).workspaceId
  a = await newWallet()
  b = await newWallet()
})

async function newWallet(): Promise<string> {
  const { walletId } = await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  await admin().wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
  return walletId
}

function hold(bizId: string, amount: string, expiresInSeconds = 3600) {
  const terms = { walletId: a, amount, currency: 'USD', expiresInSeconds, bizId }
  return service().holds.create({ workspaceId, caller, hold: terms })
}

function pay(amount: string, more: { holdId?: string; holdRemainder?: 'KEEP' | 'RELEASE'; bizId?: string } = {}) {
  const order = { sourceWalletId: a, targetWalletId: b, amount, currency: 'USD', ...more }
  return service().transfers.create({ workspaceId, caller, order })
}

async function stored(walletId: string) {
  const [row] = await query(
    testCore.database.ownerUrl,
    'select balance::text, held::text, held_until as "heldUntil" from wallet where id = $1',
    [uuidFromId('wallet', walletId)],
  )
  return row
}

/** As if the time had come when the first hold of a wallet expires. */
async function makeDue(walletId: string): Promise<void> {
  const owner = await connect(testCore.database.ownerUrl)
  const isIt = `id = '${uuidFromId('wallet', walletId)}'`
  await owner.query('begin; set local session_replication_role = replica')
  await owner.query(`update wallet set held_until = now() - interval '1 ms' where ${isIt}`)
  await signRows(owner, testCore.chainKey.export().toString('base64'), 'wallet', isIt)
  await owner.query('commit')
  await owner.end()
}

const code = (code: string, details?: object) =>
  expect.objectContaining({ cause: expect.objectContaining({ code, ...(details && { details }) }) })

describe('a hold', () => {
  test('reserves a part of the balance that no other transfer and no other hold can use', async () => {
    const made = await hold('h', '60.00')
    expect(made).toMatchObject({ bizId: 'h', walletId: a, amount: '60.00', status: 'OPEN' })
    expect(await stored(a)).toEqual({ balance: '100.00', held: '60.00', heldUntil: made.expiresAt })
    await expect(pay('40.01')).rejects.toEqual(code('T002'))
    await expect(hold('i', '40.01')).rejects.toEqual(code('T002'))
    await pay('40.00')
    expect(await stored(a)).toMatchObject({ balance: '60.00', held: '60.00' })
  })

  test('is captured by transfers, in parts, and never for more than remains', async () => {
    const { holdId } = await hold('h', '60.00')
    expect(await pay('10.00', { holdId, holdRemainder: 'KEEP' })).toMatchObject({ holdId })
    expect(await stored(a)).toMatchObject({ balance: '90.00', held: '50.00' })
    await expect(pay('50.01', { holdId: 'h' })).rejects.toEqual(code('H003', { remaining: '50.00' }))
    await pay('20.00', { holdId: 'h' })
    expect(await stored(a)).toEqual({ balance: '70.00', held: '0.00', heldUntil: null })
    await expect(pay('1.00', { holdId })).rejects.toEqual(code('H002', { status: 'CAPTURED' }))
    await expect(service().holds.release({ workspaceId, caller, holdId })).rejects.toEqual(code('H002'))
  })

  test('is released once; releasing it again returns it as it is', async () => {
    await hold('h', '60.00')
    const released = await service().holds.release({ workspaceId, caller, holdId: 'h' })
    expect(released).toMatchObject({ status: 'RELEASED' })
    expect(released.remainingAmount.toFixed(2)).toBe('0.00')
    expect(await service().holds.release({ workspaceId, caller, holdId: released.holdId })).toEqual(released)
    expect(await stored(a)).toEqual({ balance: '100.00', held: '0.00', heldUntil: null })
    await expect(service().holds.release({ workspaceId, caller, holdId: 'nothing' })).rejects.toEqual(code('H001'))
  })

  test('of the same bizId and terms is a replay, and with other terms a conflict', async () => {
    const first = await hold('h', '60.00')
    expect(await hold('h', '60.0')).toEqual(first)
    await expect(hold('h', '61.00')).rejects.toEqual(code('T005'))
    await expect(hold('h', '60.00', 60)).rejects.toEqual(code('T005'))
    expect(await stored(a)).toMatchObject({ held: '60.00' })
  })

  test('expires by itself, and its wallet can spend the money from then on', async () => {
    const made = await hold('h', '60.00', 1)
    await hold('later', '20.00')
    await until('the hold is due', () => Date.now() > made.expiresAt.getTime())
    await pay('80.00')
    const rows = await query(
      testCore.database.ownerUrl,
      'select status, updated_at = expires_at as "isOnTime" from hold where biz_id = $1 and workspace_id = $2',
      ['h', uuidFromId('workspace', workspaceId)],
    )
    expect(rows).toEqual([{ status: 'EXPIRED', isOnTime: true }])
    expect(await stored(a)).toMatchObject({ balance: '20.00', held: '20.00' })
    await expect(pay('1.00', { holdId: 'h' })).rejects.toEqual(code('H002', { status: 'EXPIRED' }))
  })

  test('that ends early leaves its wallet as it was, also after the time at which it would have expired', async () => {
    await hold('first', '10.00', 1800)
    const last = await hold('last', '10.00')
    await pay('10.00', { holdId: 'first' })
    await makeDue(a)
    for (const amount of ['1.00', '2.00', '3.00']) await pay(amount)
    expect(await stored(a)).toEqual({ balance: '84.00', held: '10.00', heldUntil: last.expiresAt })
  })

  test('is expired by a sweep without any request', async () => {
    await hold('h', '60.00', 1)
    await until('the sweep has expired it', async () => (await stored(a))?.heldUntil === null)
    expect(await stored(a)).toEqual({ balance: '100.00', held: '0.00', heldUntil: null })
  })
})

describe('a reversal', () => {
  const reverse = (reversesTransferId: string, amount: string, bizId: string) =>
    service().transfers.reverse({
      workspaceId,
      caller,
      reversal: { reversesTransferId, amount, currency: 'USD', bizId },
    })

  test('moves money back, in parts, and never more than the original', async () => {
    const original = await pay('50.00', { bizId: 'order' })
    const first = await reverse('order', '20.00', 'refund-1')
    expect(first).toMatchObject({ sourceWalletId: b, targetWalletId: a, reversesTransferId: original.transferId })
    await expect(reverse('order', '30.01', 'refund-2')).rejects.toEqual(code('T007', { remaining: '30.00' }))
    await reverse(original.transferId, '30.00', 'refund-2')
    expect(await reverse('order', '20', 'refund-1')).toEqual(first)
    await expect(reverse('order', '21.00', 'refund-1')).rejects.toEqual(code('T005'))
    await expect(reverse('refund-1', '1.00', 'refund-3')).rejects.toEqual(code('T006'))
    await expect(reverse('nothing', '1.00', 'refund-3')).rejects.toEqual(code('T001'))
    const again = await pay('50.00', { bizId: 'order' })
    expect(again.reversedAmount.toFixed(2)).toBe('50.00')
    expect(await stored(a)).toMatchObject({ balance: '100.00' })
  })
})

describe('a batch', () => {
  const item = (sourceWalletId: string, targetWalletId: string, amount: string, bizId: string) => ({
    sourceWalletId,
    targetWalletId,
    amount,
    currency: 'USD',
    bizId,
  })
  const batch = (transfers: object[]) =>
    service().transfers.batch({ workspaceId, caller, batch: { transfers: transfers as never } })

  test('is posted as a whole, in order, and an item may spend what an earlier one brought', async () => {
    const { transfers } = await batch([item(a, b, '100.00', '1'), item(b, a, '200.00', '2')])
    expect(transfers.map(({ batchId }) => batchId)).toEqual([transfers[0]!.transferId, transfers[0]!.transferId])
    expect([await stored(a), await stored(b)]).toMatchObject([{ balance: '200.00' }, { balance: '0.00' }])
    const again = await batch([item(b, a, '200.00', '2'), item(a, b, '100.00', '1')])
    expect(again.transfers).toEqual(transfers.toReversed())
  })

  test('that fails in one item writes nothing, and names the item', async () => {
    const failing = batch([item(a, b, '60.00', '1'), item(a, b, '60.00', '2'), item(a, b, '1.00', '3')])
    await expect(failing).rejects.toEqual(code('T002', { index: 1 }))
    expect(await stored(a)).toMatchObject({ balance: '100.00' })
    await batch([item(a, b, '60.00', '2')])
    await expect(batch([item(a, b, '1.00', '1'), item(a, b, '60.00', '2')])).rejects.toEqual(
      code('T005', { bizId: '2', index: 1 }),
    )
  })

  test('of one transfer is a batch too', async () => {
    await expect(batch([item(a, b, '100.01', '1')])).rejects.toEqual(code('T002', { index: 0 }))
    const { transfers } = await batch([item(a, b, '1.00', '1')])
    expect(transfers[0]!.batchId).toBe(transfers[0]!.transferId)
    await expect(batch([item(a, b, '2.00', '1')])).rejects.toEqual(code('T005', { bizId: '1', index: 0 }))
  })

  test('may reverse an earlier item, and split a hold', async () => {
    await hold('h', '60.00')
    const { transfers } = await batch([
      { ...item(a, b, '25.00', '1'), holdId: 'h', holdRemainder: 'KEEP' },
      { ...item(a, b, '25.00', '2'), holdId: 'h' },
      { reversesTransferId: '1', amount: '5.00', currency: 'USD', bizId: '3' },
    ])
    expect(transfers[2]).toMatchObject({ reversesTransferId: transfers[0]!.transferId })
    expect(transfers[0]!.reversedAmount.toFixed(2)).toBe('5.00')
    expect(await stored(a)).toEqual({ balance: '55.00', held: '0.00', heldUntil: null })
  })
})
