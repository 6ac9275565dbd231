import { randomUUID } from 'node:crypto'
import { mintId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'

/** Callers of core may generate the IDs of what they create, so that they can send a command again without a bizId. */

let testCore: TestCore
let workspaceId: string
let wallets: string[]
const caller = { requestId: 'test' }
const service = () => testCore.as('service')

beforeAll(async () => {
  testCore = await openTestCore()
  const admin = testCore.as('admin')
  workspaceId = (await admin.workspaces.create({ name: 'Test' })).workspaceId
  wallets = await Promise.all(
    ['A', 'B'].map(async name => (await admin.wallets.create({ workspaceId, currency: 'USD', name })).walletId),
  )
  await admin.wallets.deposit({ workspaceId, walletId: wallets[0]!, amount: '100.00', bizId: randomUUID() })
})
afterAll(() => testCore.close())

const money = { amount: '1.00', currency: 'USD' }
const orderOf = (bizId?: string) => ({
  sourceWalletId: wallets[0]!,
  targetWalletId: wallets[1]!,
  ...money,
  ...(bizId && { bizId }),
})
const create = (transferId: string, bizId?: string) =>
  service().transfers.create({ workspaceId, caller, transferId, order: orderOf(bizId) })
const conflict = { cause: { code: 'T005' } }

test('a create with an ID that exists under another bizId is no replay: T005, also at the same time', async () => {
  const transferId = mintId('transfer')
  expect(await create(transferId, 'first')).toMatchObject({ transferId, bizId: 'first' })
  await expect(create(transferId, 'second')).rejects.toMatchObject(conflict)
  await expect(create(transferId)).rejects.toMatchObject(conflict)
  expect(await create(transferId, 'first')).toMatchObject({ transferId, bizId: 'first' })

  const other = mintId('transfer')
  const settled = await Promise.allSettled(['third', 'fourth', 'fifth'].map(bizId => create(other, bizId)))
  const [made, ...more] = settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  expect(made).toMatchObject({ transferId: other })
  expect(more).toEqual([])
  for (const each of settled) if (each.status === 'rejected') expect(each.reason).toMatchObject(conflict)
})

test('a hold with an ID that exists under another bizId is no replay: T005', async () => {
  const holdId = mintId('hold')
  const terms = (bizId: string) => ({ walletId: wallets[0]!, ...money, expiresInSeconds: 60, bizId })
  const hold = (bizId: string) => service().holds.create({ workspaceId, caller, holdId, hold: terms(bizId) })
  expect(await hold('booking')).toMatchObject({ holdId, bizId: 'booking' })
  await expect(hold('other')).rejects.toMatchObject(conflict)
  expect(await hold('booking')).toMatchObject({ holdId, bizId: 'booking' })
})

test('the items of a batch have different IDs', async () => {
  const same = mintId('transfer')
  const batch = {
    transfers: [
      { ...orderOf(), bizId: 'one' },
      { ...orderOf(), bizId: 'two' },
    ],
  }
  const send = (transferIds: string[]) => service().transfers.batch({ workspaceId, caller, transferIds, batch })
  await expect(send([same, same])).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    message: expect.stringContaining('REPEATED'),
  })
  const { transfers } = await send([same, mintId('transfer')])
  expect(transfers.map(({ bizId }) => bizId)).toEqual(['one', 'two'])
})
