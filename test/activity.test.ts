import { uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminJson, runAdmin } from './setup/admin-command.ts'
import { execute } from './setup/database.ts'
import { hourMs } from './setup/past.ts'
import { type System, startSystem } from './setup/system.ts'
import { createWallet, createWorkspace } from './setup/workspaces.ts'

/** `system.activity`: how many transfers there were in each of the last hours, and how much they moved. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

const hourOf = (time: Date) => Math.floor(time.getTime() / hourMs) * hourMs

test('counts transfers, captures, reversals and items of batches of all workspaces, by hour and currency', async () => {
  const { admin, database } = system
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const made: { hour: number; currency: string; amount: number }[] = []
  /** Moves a transfer into the past, as if it had been posted then. */
  async function movedBy(ms: number, { transferId, createdAt, currency, amount }: Moved) {
    await execute(
      database.ownerUrl,
      `set session_replication_role = replica;
       update transfer set created_at = created_at - interval '${ms} ms' where id = '${uuidFromId('transfer', transferId)}'`,
    )
    made.push({ hour: hourOf(new Date(createdAt.getTime() - ms)), currency, amount: Number(amount) })
  }
  type Moved = { transferId: string; createdAt: Date; currency: string; amount: string }

  for (const currency of ['EUR', 'JPY']) {
    const workspaceId = await createWorkspace({ admin })
    const of = { admin, workspaceId }
    const sourceWalletId = await createWallet(of, { currency, deposits: ['1000'] })
    const order = { sourceWalletId, targetWalletId: await createWallet(of, { currency }), currency }
    const call = { workspaceId, caller: { requestId: 'test' } }
    const create = (bizId: string, amount: string, more = {}) =>
      service.transfers.create.mutate({ ...call, order: { ...order, amount, bizId, ...more } })
    const now = await create('now', '1')
    await movedBy(0, now)
    await movedBy(2 * hourMs, await create('earlier', '20'))
    await movedBy(2 * hourMs, await create('earlier-too', '300'))
    await movedBy(22 * hourMs, await create('yesterday', '40'))
    await movedBy(25 * hourMs, await create('too-long-ago', '5'))
    const hold = { walletId: sourceWalletId, amount: '7', currency, bizId: 'hold', expiresInSeconds: 600 }
    await service.holds.create.mutate({ ...call, hold })
    await movedBy(0, await create('capture', '7', { holdId: 'hold' }))
    const reversal = { reversesTransferId: now.transferId, amount: '1', currency, bizId: 'back' }
    await movedBy(0, await service.transfers.reverse.mutate({ ...call, reversal }))
    const transfers = ['2', '3'].map(amount => ({ ...order, amount, bizId: `item-${amount}` }))
    for (const item of (await service.transfers.batch.mutate({ ...call, batch: { transfers } })).transfers)
      await movedBy(hourMs, item)
  }
  await service.close()

  const { from, now, totals } = await admin.system.activity.query({})
  expect(from.getTime()).toBe(hourOf(now) - 23 * hourMs)
  const counted = made.filter(({ hour }) => hour >= from.getTime())
  expect(counted.length).toBe(made.length - 2)
  const expected = Map.groupBy(counted, ({ hour, currency }) => `${new Date(hour).toISOString()} ${currency}`)
  expect(
    totals.map(each => [`${each.hour.toISOString()} ${each.currency}`, each.transfers, each.volume.toNumber()]),
  ).toEqual(
    [...expected]
      .map(([of, each]) => [of, each.length, each.reduce((sum, { amount }) => sum + amount, 0)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )

  const { totals: shown } = await adminJson<{ totals: object[] }>(system, 'system activity --hours 1')
  expect(shown).toEqual(
    totals
      .filter(each => each.hour.getTime() === hourOf(now))
      .map(each => ({
        ...each,
        hour: each.hour.toISOString(),
        volume: each.volume.toFixed(each.currency === 'EUR' ? 2 : 0),
      })),
  )
  expect((await runAdmin(system, 'system activity')).stdout).toMatch(
    /^HOUR +CURRENCY +TRANSFERS +VOLUME\n\S+:00:00.000Z +EUR +1 +40.00\n/,
  )
})

test.each([0, 25, 1.5])('%s hours are refused', async hours => {
  await expect(system.admin.system.activity.query({ hours })).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
})
