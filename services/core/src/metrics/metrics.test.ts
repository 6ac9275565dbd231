import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, execute } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const caller = { requestId: 'test' }

async function newWallets() {
  const { workspaceId } = await testCore.as('admin').workspaces.create({ name: 'Test' })
  const create = () => testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  const [source, target] = [await create(), await create()]
  await testCore
    .as('admin')
    .wallets.deposit({ workspaceId, walletId: source.walletId, amount: '100', bizId: randomUUID() })
  return { workspaceId, source: source.walletId, target: target.walletId }
}

function reserve({ workspaceId, source }: { workspaceId: string; source: string }, bizId: string, seconds: number) {
  const hold = { walletId: source, amount: '10', currency: 'USD', expiresInSeconds: seconds, bizId }
  return testCore.as('service').holds.create({ workspaceId, caller, hold })
}

/** The value of a series at /metrics. */
async function read(series: string): Promise<number> {
  const lines = (await testCore.core.metrics.registry.metrics()).split('\n')
  return Number(lines.find(line => line.startsWith(`${series} `))?.slice(series.length + 1))
}

/** Waits, because a scrape has no such figure if it cannot read the database within a second. */
async function untilRead(figures: Record<string, number>): Promise<void> {
  for (const [series, value] of Object.entries(figures))
    await until(`${series} is ${value}`, async () => (await read(series)) === value)
}

test('events are counted by type once they are written, and open holds', async () => {
  await untilRead({ core_open_holds: 0 })
  expect(await read('core_events_total{type="hold.expired"}')).toBe(0)
  const wallets = await newWallets()
  const { workspaceId, source, target } = wallets
  await reserve(wallets, 'kept', 3600)
  await reserve(wallets, 'released', 3600)
  await reserve(wallets, 'captured', 3600)
  await untilRead({ core_open_holds: 3 })
  await testCore.as('service').holds.release({ workspaceId, caller, holdId: 'released' })
  const order = { sourceWalletId: source, targetWalletId: target, amount: '1', currency: 'USD', bizId: 'order' }
  for (let attempt = 1; attempt <= 2; attempt++)
    await testCore.as('service').transfers.create({ workspaceId, caller, order: { ...order, holdId: 'captured' } })
  await untilRead({ core_open_holds: 1 })
  const counted = ['wallet.deposited', 'hold.created', 'hold.released', 'transfer.completed', 'wallet.withdrawn']
  const counts = await Promise.all(counted.map(type => read(`core_events_total{type="${type}"}`)))
  expect(counts).toEqual([1, 3, 1, 1, 0])

  await reserve(wallets, 'expiring', 1)
  await until('the expiry is counted', async () => (await read('core_events_total{type="hold.expired"}')) === 1)
  await untilRead({ core_open_holds: 1 })
})

test('the delay of expiries is that of the oldest due hold of an open workspace', async () => {
  const wallets = await newWallets()
  await reserve(wallets, 'overdue', 3600)
  expect(await read('core_hold_expiry_delay_seconds')).toBe(0)
  // The row of the wallet still says that nothing is due, so that the sweeper leaves the hold open.
  const workspace = uuidFromId('workspace', wallets.workspaceId)
  await execute(
    testCore.database.ownerUrl,
    `set session_replication_role = replica;
     update hold set created_at = now() - interval '1 hour', expires_at = now() - interval '5 minutes'
     where workspace_id = '${workspace}'`,
  )
  await until('the delay is that of the hold', async () => (await read('core_hold_expiry_delay_seconds')) >= 300)
  await testCore.as('admin').workspaces.delete({ workspaceId: wallets.workspaceId, force: true })
  await untilRead({ core_hold_expiry_delay_seconds: 0 })
})

test('the lag of webhooks is that of those that do not fail; failing and paused ones are counted', async () => {
  const figures = (lag: number, failing: number, paused: number) =>
    untilRead({ core_webhook_lag_events: lag, core_webhooks_failing: failing, core_webhooks_paused: paused })
  await figures(0, 0, 0)
  const { workspaceId, source: walletId } = await newWallets()
  const service = testCore.as('service')
  const subscription = { workspaceId, caller, url: 'https://receiver.example/', bizId: 'hook' }
  const { webhookId } = await service.webhooks.create(subscription)
  for (let at = 0; at < 2; at++)
    await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '1', bizId: randomUUID() })
  await figures(2, 0, 0)
  await until('the events have an age', async () => (await read('core_webhook_lag_seconds')) > 0)

  // On a busy machine, the events may not be read within a second.
  const { generation } = await until('the webhook is leased', async () => {
    const { webhooks } = await testCore.as('courier').courier.lease({ size: 1 })
    return webhooks[0]
  })
  const failed = {
    webhookId,
    generation,
    delivered: 4,
    lastStatus: 500,
    lastError: null,
    failure: { retryAfterSeconds: null },
  }
  await testCore.as('courier').courier.report(failed)
  await figures(0, 1, 0)
  await untilRead({ core_webhook_lag_seconds: 0 })
  await service.webhooks.update({ workspaceId, caller, webhookId, status: 'PAUSED' })
  await figures(0, 0, 1)
  await service.webhooks.delete({ workspaceId, caller, webhookId })
  await figures(0, 0, 0)
})

test('a figure that cannot be read has no value, instead of the one before, and is named', async () => {
  const unreadable = (name: string) => read(`core_figure_unreadable{name="${name}"}`)
  await untilRead({ core_webhook_lag_seconds: 0, 'core_figure_unreadable{name="core_webhook_lag_seconds"}': 0 })
  const locker = await connect(testCore.database.ownerUrl)
  try {
    await locker.query('begin; lock table webhook in access exclusive mode')
    expect(await read('core_webhook_lag_seconds')).toBeNaN()
    expect(await unreadable('core_webhook_lag_seconds')).toBe(1)
    expect(await unreadable('core_webhooks_failing')).toBe(1)
    // What can be read has a value.
    await untilRead({ core_halted_workspaces: 0, 'core_figure_unreadable{name="core_halted_workspaces"}': 0 })
  } finally {
    await locker.end()
  }
  await untilRead({ core_webhook_lag_seconds: 0, 'core_figure_unreadable{name="core_webhook_lag_seconds"}': 0 })
})
