import { randomUUID } from 'node:crypto'
import { idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { query } from '../../../../test/setup/database.ts'

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

const nilUuid = '00000000-0000-0000-0000-000000000000'
const rejected = { code: 'BAD_REQUEST', message: expect.stringContaining('must be a new ID') }

describe.each<[string, () => Promise<string> | string]>([
  ['of an earlier event', async () => (await journalIds())[0]!],
  ['of an earlier transfer, with its last bit flipped', async () => flipLastBit((await transferIds())[0]!)],
  ['nil, which core looks for if an ID is malformed', () => nilUuid],
  ['of another version', () => randomUUID().replace(/.$/, '0')],
])('a transferId with the UUID %s is rejected', (_, uuidOf) => {
  const newTransferId = async () => idFromUuid('transfer', (await uuidOf()) as Uuid<'transfer'>)

  test('for a transfer', async () => {
    await expect(create(await newTransferId(), randomUUID())).rejects.toMatchObject(rejected)
  })

  test('for an item of a batch', async () => {
    const ids = [mintId('transfer'), await newTransferId()]
    const transfers = ids.map(() => orderOf(randomUUID()))
    const input = { workspaceId, caller, transferIds: ids, batch: { transfers } }
    await expect(service().transfers.batch(input)).rejects.toMatchObject(rejected)
  })

  test('for a reversal', async () => {
    const { transferId: reversesTransferId } = await create(mintId('transfer'), randomUUID())
    const reversal = { reversesTransferId, ...money, bizId: randomUUID() }
    const input = { workspaceId, caller, transferId: await newTransferId(), reversal }
    await expect(service().transfers.reverse(input)).rejects.toMatchObject(rejected)
  })
})

test.each([
  ['nil', nilUuid],
  ['of another version', randomUUID()],
])('a hold with a UUID that is %s is rejected', async (_, uuid) => {
  const hold = { walletId: wallets[0]!, ...money, expiresInSeconds: 60, bizId: randomUUID() }
  const holdId = idFromUuid('hold', uuid as Uuid<'hold'>)
  await expect(service().holds.create({ workspaceId, caller, holdId, hold })).rejects.toMatchObject(rejected)
})

test('all events of a workspace have different IDs, and all its flows', async () => {
  await Promise.all(Array.from({ length: 50 }, () => create(mintId('transfer'))))
  await Promise.all(Array.from({ length: 10 }, () => service().wallets.create({ workspaceId, caller, ...usd })))
  const events = [...(await journalIds()), ...(await transferIds())]
  expect(events.length).toBeGreaterThan(60)
  expect(new Set(events).size).toBe(events.length)
  const flows = (await transferIds()).flatMap(id => [id, flipLastBit(id)])
  expect(new Set(flows).size).toBe(flows.length)
  // Not by chance: the last bit says what the UUID is of.
  for (const id of await transferIds()) expect(lastDigitOf(id) % 2).toBe(0)
  for (const id of await journalIds()) expect(lastDigitOf(id) % 2).toBe(1)
})

const usd = { currency: 'USD', name: 'More' }
const journalIds = () => idsIn('journal')
const transferIds = () => idsIn('transfer')

async function idsIn(table: string): Promise<string[]> {
  const ofWorkspace = [uuidFromId('workspace', workspaceId)]
  const rows = await query(testCore.database.ownerUrl, `select id from ${table} where workspace_id = $1`, ofWorkspace)
  return rows.map(({ id }) => id as string)
}

const lastDigitOf = (uuid: string) => Number.parseInt(uuid.at(-1)!, 16)
const flipLastBit = (uuid: string) => uuid.slice(0, -1) + (lastDigitOf(uuid) ^ 1).toString(16)
