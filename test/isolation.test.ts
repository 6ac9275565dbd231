import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { type Credentials, call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** A key cannot reach resources of another workspace, nor find out whether they exist. */

type Tenant = {
  credentials: Credentials & { workspaceId: string }
  walletId: string
  emptyId: string
  transferId: string
  bizId: string
  holdId: string
  webhookId: string
  externalId: string
}

let system: System
let ours: Tenant
let theirs: Tenant
beforeAll(async () => {
  system = await startSystem()
  ours = await makeTenant('ours')
  theirs = await makeTenant('theirs')
})
afterAll(() => system.stop())

async function makeTenant(name: string): Promise<Tenant> {
  const { admin } = system
  const credentials = await createTenant(system)
  const { workspaceId } = credentials
  const walletId = await createWallet({ admin, workspaceId }, { name: `${name} 1` })
  const emptyId = await createWallet({ admin, workspaceId }, { name: `${name} 2` })
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '100.00', bizId: `${name}-deposit` })
  const bizId = `${name}-order`
  const created = await call(credentials, 'POST', createPath, {
    sourceWalletId: walletId,
    targetWalletId: emptyId,
    amount: '1.00',
    currency: 'USD',
    bizId,
  })
  const held = await call(credentials, 'POST', '/api/v1/hold/command/create', {
    walletId,
    amount: '1.00',
    currency: 'USD',
    expiresInSeconds: 3600,
    bizId: `${name}-hold`,
  })
  const webhook = { url: 'https://receiver.example/', bizId: `${name}-webhook` }
  const hooked = await call(credentials, 'POST', '/api/v1/webhook/command/create', webhook)
  const newest = "select id from wallet where kind = 'EXTERNAL' order by created_at desc limit 1"
  const [external] = await query(system.database.ownerUrl, newest)
  return {
    credentials,
    walletId,
    emptyId,
    transferId: created.body.data.transferId,
    bizId,
    holdId: held.body.data.holdId,
    webhookId: hooked.body.data.webhookId,
    externalId: idFromUuid('wallet', external!.id as Uuid<'wallet'>),
  }
}

const absentWallet = 'wal_01h455vb4pex5vsknk084sn02q'
const absentHold = 'hld_01h455vb4pex5vsknk084sn02q'
const absentWebhook = 'whk_01h455vb4pex5vsknk084sn02q'
const absentTransfer = 'trf_01h455vb4pex5vsknk084sn02q'

/** Our own ID or bizId for a path, and others that it must not find. */
function idsOf(path: string): string[] {
  if (path.includes(':walletId'))
    return [
      ours.walletId,
      theirs.walletId,
      theirs.emptyId,
      theirs.externalId,
      ours.externalId,
      absentWallet,
      'nonsense',
      ours.transferId,
      'wal_',
      `${ours.walletId}0`,
      ours.walletId.toUpperCase(),
    ]
  if (path.includes('/webhook/'))
    return [
      ours.webhookId,
      theirs.webhookId,
      'ours-webhook',
      'theirs-webhook',
      absentWebhook,
      'nonsense',
      'whk_',
      ours.walletId,
      '%00',
      ours.webhookId.toUpperCase(),
    ]
  if (path.includes('/hold/'))
    return [
      ours.holdId,
      theirs.holdId,
      'theirs-hold',
      absentHold,
      'nonsense',
      ours.transferId,
      ours.bizId,
      '%00',
      ours.holdId.toUpperCase(),
    ]
  return [
    ours.bizId,
    theirs.transferId,
    theirs.bizId,
    'ours-deposit',
    'theirs-deposit',
    absentTransfer,
    'nonsense',
    ours.walletId,
    '%00',
    ours.transferId.toUpperCase(),
  ]
}

test.each(endpoints.filter(({ path }) => /:(walletId|bizId|webhookId)/.test(path)))(
  '$method $path: foreign, absent, malformed and hidden IDs get identical answers',
  async ({ method, path }) => {
    const [own, ...ids] = idsOf(path)
    const past = '2026-01-31'
    const at = (id: string) => path.replace(/:(walletId|bizId|webhookId)/, id).replaceAll(/:(at|from|to)/g, past)
    expect((await call(ours.credentials, method, at(own!))).body.code).toBe('2000')
    const answers = await Promise.all(ids.map(id => call(ours.credentials, method, at(id))))
    const distinct = answers.map(({ status, body: { timestamp: _, ...rest } }) => JSON.stringify({ status, ...rest }))
    expect(new Set(distinct).size, distinct.join('\n')).toBe(1)
    expect(answers[0]!.status).toBe(404)
  },
)

test('a create cannot name a foreign or hidden wallet as source or target', async () => {
  const unreachable = [theirs.walletId, theirs.emptyId, theirs.externalId, ours.externalId, absentWallet, 'nonsense']
  for (const wallet of unreachable)
    for (const [sourceWalletId, targetWalletId] of [
      [wallet, ours.walletId],
      [ours.walletId, wallet],
    ]) {
      const body = { sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD' }
      const answer = await call(ours.credentials, 'POST', createPath, body)
      expect([answer.status, answer.body.code, answer.body.data]).toEqual([404, 'W001', null])
    }
})

test('lists show only resources of the workspace, whatever the filter', async () => {
  const listed = async (path: string) => (await call(ours.credentials, 'GET', path)).body.data
  const wallets = await listed('/api/v1/wallets?size=100')
  expect(wallets.content.map((wallet: { walletId: string }) => wallet.walletId).sort()).toEqual(
    [ours.walletId, ours.emptyId].sort(),
  )
  const orders = await listed('/api/v1/transfer/query/orders')
  expect(orders.content.map((order: { bizId: string }) => order.bizId)).toEqual(['ours-order'])
  expect((await listed('/api/v1/transfer/query/orders?bizIdPrefix=theirs')).page.totalElements).toBe(0)
  expect((await listed(`/api/v1/transfer/query/orders?transferIdPrefix=${theirs.transferId}`)).page.totalElements).toBe(
    0,
  )
  const holds = await listed('/api/v1/hold/query/holds')
  expect(holds.content.map((hold: { bizId: string }) => hold.bizId)).toEqual(['ours-hold'])
  expect((await listed('/api/v1/hold/query/holds?bizIdPrefix=theirs')).page.totalElements).toBe(0)
  expect(
    (await listed(`/api/v1/transfer/query/orders?reversesTransferId=${theirs.transferId}`)).page.totalElements,
  ).toBe(0)
  const webhooks = await listed('/api/v1/webhook/query/webhooks')
  expect(webhooks.content.map((webhook: { bizId: string }) => webhook.bizId)).toEqual(['ours-webhook'])
  const events = await listed('/api/v1/event/query/events/0')
  expect(events.content.length).toBeGreaterThan(4)
  const { workspaceId } = ours.credentials
  for (const event of events.content) expect(event.workspaceId).toBe(workspaceId)
  expect((await listed(`/api/v1/wallets?walletIdPrefix=${theirs.walletId}`)).page.totalElements).toBe(0)
  expect((await listed(`/api/v1/wallets?walletIdPrefix=${ours.externalId}`)).page.totalElements).toBe(0)
})

test('each workspace has its own bizIds', async () => {
  const send = (tenant: Tenant) =>
    call(tenant.credentials, 'POST', createPath, {
      sourceWalletId: tenant.walletId,
      targetWalletId: tenant.emptyId,
      amount: '2.00',
      currency: 'USD',
      bizId: 'shared-name',
    })
  const [first, second] = [await send(ours), await send(theirs)]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(first.body.data.transferId).not.toBe(second.body.data.transferId)
})

test('the database rejects what is not posted, and changes and deletions of entries', async () => {
  const attempts: [string, RegExp][] = [
    ['update transfer set amount = amount + 1', /permission denied/],
    ['delete from transfer', /permission denied/],
    ['truncate transfer', /permission denied/],
    ["update wallet set currency = 'EUR'", /permission denied/],
    ['delete from wallet', /permission denied/],
    ['update ledger set order_count = 0', /permission denied/],
    ['insert into transfer select * from transfer', /permission denied/],
    ['insert into wallet select * from wallet', /permission denied/],
    ['insert into ledger select * from ledger', /permission denied/],
    ['drop table transfer', /must be owner/],
    ["update audit set actor = 'nobody'", /permission denied/],
  ]
  for (const [sql, refusal] of attempts)
    await expect(execute(system.database.serviceUrl, sql), sql).rejects.toThrow(refusal)
  const asOwner: [string, RegExp][] = [
    ['update transfer set amount = amount + 1', /entries are immutable/],
    ['delete from transfer', /entries are immutable/],
    ['truncate transfer cascade', /entries are immutable/],
    ['update transfer set source_balance = 0, target_balance = 0', /entries are immutable/],
    ['delete from audit', /entries are immutable/],
    ['delete from wallet', /entries are immutable/],
    ["update wallet set balance = 'NaN'", /violates check/],
    ["update wallet set balance = 'Infinity'", /violates check/],
    ["update wallet set balance = -1 where kind = 'CUSTOMER'", /its columns contradict each other/],
    ['update wallet set held = balance + 1, held_until = now()', /its columns contradict each other/],
  ]
  for (const [sql, refusal] of asOwner)
    await expect(execute(system.database.ownerUrl, sql), sql).rejects.toThrow(refusal)
})
