import { randomUUID } from 'node:crypto'
import { Decimal, idFromUuid, mintId, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, createPath, type Envelope } from './setup/client.ts'
import { execute } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** Operators find workspaces, members, wallets, transfers and whatever an ID names, over all workspaces. */

let system: System
beforeAll(async () => {
  system = await startSystem()
  tenants = [await newTenant(), await newTenant()]
})
afterAll(() => system.stop())

type Tenant = Awaited<ReturnType<typeof newTenant>>
let tenants: [Tenant, Tenant]
const transferBody = '/api/v1/transfer/command'

/** A workspace whose wallet `main` has 1000.00, and `savings` nothing. */
async function newTenant() {
  const tenant = await createTenant(system)
  const { workspaceId } = tenant
  const owner = { admin: system.admin, workspaceId }
  const main = await createWallet(owner, { name: 'Main 100%', deposits: ['1000.00'] })
  const savings = await createWallet(owner, { name: "Savings_of O'Hara \\ ?", currency: 'USD' })
  return { ...tenant, main, savings }
}

type Made = { requestId: string; data: Envelope['data'] }

async function post({ baseUrl, apiKey, apiSecret }: Tenant, path: string, body: unknown): Promise<Made> {
  const answer = await call({ baseUrl, apiKey, apiSecret }, 'POST', path, body)
  expect(answer.body).toMatchObject({ code: '2000' })
  return { requestId: answer.headers.get('x-request-id')!, data: answer.body.data }
}

function pay(tenant: Tenant, amount: string, extra: Record<string, unknown> = {}): Promise<Made> {
  const { main: sourceWalletId, savings: targetWalletId } = tenant
  return post(tenant, createPath, { sourceWalletId, targetWalletId, amount, currency: 'USD', ...extra })
}

type TransferSearch = Parameters<System['admin']['transfers']['search']['query']>[0]
async function idsOf(search: TransferSearch): Promise<string[]> {
  const { transfers } = await system.admin.transfers.search.query(search)
  return transfers.map(({ transferId }) => transferId)
}

describe('transfers.search', () => {
  test('finds a transfer by each of its names, in all workspaces or in one', async () => {
    const [tenant, other] = tenants
    const bizId = `biz-${randomUUID()}`
    const reference = `ref-${randomUUID()}`
    const made = await pay(tenant, '1.25', { bizId, reference, remark: 'Rent 100%_of July' })
    const twin = await pay(other, '1.25', { bizId, reference })
    const { transferId } = made.data
    expect(await idsOf({ transferId })).toEqual([transferId])
    expect(await idsOf({ bizId })).toEqual([twin.data.transferId, transferId])
    expect(await idsOf({ reference })).toEqual([twin.data.transferId, transferId])
    expect(await idsOf({ requestId: made.requestId })).toEqual([transferId])
    const { workspaceId } = tenant
    for (const search of [
      { bizId },
      { reference },
      { transferId },
      { requestId: made.requestId },
      { remarkPrefix: 'Rent 100%_' },
      { actor: `key:${tenant.apiKey}`, amountFrom: new Decimal('1.25'), amountTo: new Decimal('1.25') },
    ])
      expect(await idsOf({ workspaceId, ...search }), JSON.stringify(search)).toEqual([transferId])
    expect(await idsOf({ actor: `key:${tenant.apiKey}`, reference })).toEqual([transferId])
    // A prefix is taken literally, and an exact name in full.
    for (const search of [{ remarkPrefix: 'Rent 100__' }, { bizId: bizId.slice(0, -1) }, { reference: '%' }])
      expect(await idsOf({ workspaceId, ...search })).toEqual([])
    const { transfers } = await system.admin.transfers.search.query({ transferId })
    expect(transfers).toEqual([
      {
        workspaceId,
        transferId,
        type: 'TRANSFER',
        bizId,
        reference,
        remark: 'Rent 100%_of July',
        amount: new Decimal('1.25'),
        currency: 'USD',
        sourceWalletId: tenant.main,
        targetWalletId: tenant.savings,
        holdId: null,
        reversesTransferId: null,
        batchId: null,
        actor: `key:${tenant.apiKey}`,
        requestId: made.requestId,
        clientAddress: '127.0.0.1',
        position: expect.any(Number),
        createdAt: new Date(made.data.createdAt),
      },
    ])
  })

  test('pages neither skip nor repeat transfers, of a wallet, of a workspace and of all', async () => {
    const tenant = await newTenant()
    const start = new Date()
    const made = []
    for (const amount of ['1.00', '2.00', '3.00', '4.00', '5.00'])
      made.push((await pay(tenant, amount)).data.transferId)
    // The other way around: the wallet pays and receives.
    const { main, savings } = tenant
    const back = { sourceWalletId: savings, targetWalletId: main, amount: '6.00', currency: 'USD' }
    made.push((await post(tenant, createPath, back)).data.transferId)
    for (const search of [
      { workspaceId: tenant.workspaceId },
      { walletId: main },
      { walletId: savings },
      { workspaceId: tenant.workspaceId, walletId: main },
      { from: new Date(start.getTime() - 5000), currency: 'USD', reference: undefined },
    ]) {
      const paged = []
      for (let after: string | undefined; ; ) {
        const page = await system.admin.transfers.search.query({ ...search, type: 'TRANSFER', limit: 2, after })
        paged.push(...page.transfers.filter(each => each.workspaceId === tenant.workspaceId))
        if (page.next === null) break
        after = page.next
      }
      expect(paged.map(({ transferId }) => transferId)).toEqual(made.toReversed())
    }
  })

  test('a range of time or amount has the ends that it says', async () => {
    const tenant = await newTenant()
    const { workspaceId } = tenant
    const { transferId, createdAt } = (await pay(tenant, '77.07')).data
    const at = new Date(createdAt)
    const amount = new Decimal('77.07')
    const next = new Date(at.getTime() + 1)
    expect(await idsOf({ workspaceId, from: at, to: next })).toContain(transferId)
    expect(await idsOf({ workspaceId, to: at })).not.toContain(transferId)
    expect(await idsOf({ workspaceId, from: next })).not.toContain(transferId)
    expect(await idsOf({ workspaceId, amountFrom: amount, type: 'TRANSFER' })).toEqual([transferId])
    expect(await idsOf({ workspaceId, amountFrom: amount, amountTo: amount })).toEqual([transferId])
    expect(await idsOf({ workspaceId, amountFrom: amount.plus('0.01'), type: 'TRANSFER' })).toEqual([])
  })

  test('a search that takes too long fails with S012, and does not answer a part of it', async () => {
    const [tenant] = tenants
    const lock = execute(
      system.database.ownerUrl,
      'begin; lock table transfer in access exclusive mode; select pg_sleep(3); commit',
    )
    await expect
      .poll(
        () =>
          idsOf({ workspaceId: tenant.workspaceId }).then(
            () => null,
            error => error.data?.appError,
          ),
        {
          timeout: 20_000,
        },
      )
      .toMatchObject({ code: 'S012', details: { field: 'from', reason: 'TOO_EXPENSIVE', limit: 2 } })
    await lock
  })

  test.each([
    [{ after: 'nonsense' }, 'after'],
    [{ after: `t${'9'.repeat(15)}.trf_01h455vb4pex5vsknk084sn02q` }, 'after'],
    [{ walletId: 'wal_01h455vb4pex5vsknk084sn02q' }, 'walletId'],
  ])('%j is refused with the name of the field', async (search, field) => {
    await expect(idsOf(search)).rejects.toMatchObject({ data: { appError: { details: { field } } } })
  })

  test.each(['-271821-04-20', '0000-01-01', '+010000-01-01', '+275760-09-13'])(
    'a time that PostgreSQL cannot store is refused: %s',
    async text => {
      const time = new Date(`${text}T00:00:00.000Z`)
      for (const range of [{ from: time }, { to: time }]) {
        const refused = { data: { code: 'BAD_REQUEST' } }
        await expect(idsOf(range)).rejects.toMatchObject(refused)
        await expect(system.admin.fundings.list.query(range)).rejects.toMatchObject(refused)
      }
    },
  )

  test('unknown and malformed names find nothing', async () => {
    for (const search of [
      { transferId: 'nonsense' },
      { workspaceId: 'nonsense' },
      { bizId: "' or true --" },
      { actor: 'key:nonsense' },
      { requestId: '?' },
    ])
      expect(await idsOf(search)).toEqual([])
  })
})

describe('transfers.trace', () => {
  test('shows both flows with their MACs, reversals, hold, batch and receipt', async () => {
    const [tenant] = tenants
    const { workspaceId, main, savings } = tenant
    const { admin } = system
    const hold = { walletId: main, amount: '20.00', currency: 'USD', expiresInSeconds: 3600, bizId: randomUUID() }
    const { holdId } = (await post(tenant, '/api/v1/hold/command/create', hold)).data
    const { transferId } = (await pay(tenant, '12.00', { holdId, bizId: randomUUID() })).data
    const original = { reversesTransferId: transferId, currency: 'USD' }
    const [first, second] = [
      (await post(tenant, `${transferBody}/reverse`, { ...original, amount: '1.00', bizId: randomUUID() })).data,
      (await post(tenant, `${transferBody}/reverse`, { ...original, amount: '2.50', bizId: randomUUID() })).data,
    ]
    const traced = await admin.transfers.trace.query({ name: transferId })
    expect(traced).toMatchObject({
      transfer: { transferId, actor: `key:${tenant.apiKey}`, clientAddress: '127.0.0.1', holdId },
      source: { walletId: main, walletName: 'Main 100%', isGenuine: true, sequence: expect.any(Number) },
      target: { walletId: savings, isGenuine: true, balanceAfter: expect.any(Decimal) },
      reversals: [{ transferId: first.transferId }, { transferId: second.transferId }],
      reversedAmount: new Decimal('3.50'),
      reverses: null,
      hold: { holdId, status: 'CAPTURED' },
      batch: [],
    })
    const { verdict } = await admin.receipts.check.query({ receipt: traced.receipt! })
    expect(verdict).toBe('CONFIRMED')
    expect(await admin.transfers.trace.query({ name: second.bizId, workspaceId })).toMatchObject({
      transfer: { transferId: second.transferId, reversesTransferId: transferId },
      reverses: { transferId },
    })
  })

  test('shows all transfers of a batch in order', async () => {
    const [tenant] = tenants
    const { main: sourceWalletId, savings: targetWalletId } = tenant
    const item = () => ({ sourceWalletId, targetWalletId, amount: '0.10', currency: 'USD', bizId: randomUUID() })
    const { transfers } = (await post(tenant, `${transferBody}/batch`, { transfers: [item(), item(), item()] })).data
    const ids = transfers.map(({ transferId }: { transferId: string }) => transferId)
    const { batch } = await system.admin.transfers.trace.query({ name: ids[1] })
    expect(batch.map(({ transferId }) => transferId)).toEqual(ids)
  })

  test('says which flow was modified outside the service, and gives no receipt for it', async () => {
    const tenant = await newTenant()
    const { transferId } = (await pay(tenant, '5.00')).data
    await execute(
      system.database.ownerUrl,
      `set session_replication_role = replica;
       update transfer set target_balance = 500 where id = '${uuidFromId('transfer', transferId)}'`,
    )
    expect(await system.admin.transfers.trace.query({ name: transferId })).toMatchObject({
      source: { isGenuine: true },
      target: { isGenuine: false, balanceAfter: new Decimal(500) },
      receipt: null,
    })
  })

  test('needs the workspace for a bizId, which several workspaces may use', async () => {
    const { trace } = system.admin.transfers
    await expect(trace.query({ name: 'rent' })).rejects.toMatchObject({
      data: { appError: { code: 'S012', details: { field: 'workspaceId', reason: 'REQUIRED' } } },
    })
    for (const name of [
      { name: 'trf_01h455vb4pex5vsknk084sn02q' },
      { name: 'none', workspaceId: tenants[0].workspaceId },
    ])
      await expect(trace.query(name)).rejects.toMatchObject({ data: { appError: { code: 'T001' } } })
  })
})

test('a transferId that two workspaces use needs the workspace, as a bizId does', async () => {
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const transferId = mintId('transfer')
  const twins = [await newTenant(), await newTenant()]
  for (const { workspaceId, main: sourceWalletId, savings: targetWalletId } of twins) {
    const order = { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' }
    await service.transfers.create.mutate({ workspaceId, caller: { requestId: 'test' }, transferId, order })
  }
  await service.close()
  const { trace } = system.admin.transfers
  for (const read of [trace, system.admin.fundings.get])
    await expect(read.query({ name: transferId })).rejects.toMatchObject({
      data: { appError: { code: 'S012', details: { field: 'workspaceId', reason: 'REQUIRED' } } },
    })
  for (const { workspaceId } of twins)
    expect(await trace.query({ name: transferId, workspaceId })).toMatchObject({
      transfer: { workspaceId, transferId },
    })
})

describe('fundings', () => {
  test('lists deposits and withdrawals, newest first, and gets one by its transferId or bizId', async () => {
    const { admin } = system
    const { workspaceId, main: walletId } = await newTenant()
    const withdrawn = await admin.wallets.withdraw.mutate({ workspaceId, walletId, amount: '3.00', bizId: 'out-1' })
    const { transfers } = await admin.fundings.list.query({ workspaceId })
    expect(transfers).toMatchObject([
      { type: 'WITHDRAWAL', sourceWalletId: walletId, targetWalletId: null, bizId: 'out-1', actor: 'admin:a' },
      { type: 'DEPOSIT', sourceWalletId: null, targetWalletId: walletId },
    ])
    expect((await admin.fundings.list.query({ walletId, type: 'WITHDRAWAL' })).transfers).toHaveLength(1)
    const { transferId } = withdrawn
    expect(transfers[0]).toMatchObject({ transferId })
    for (const name of [{ name: transferId }, { name: 'out-1', workspaceId }])
      expect(await admin.fundings.get.query(name)).toEqual(transfers[0])
    const order = (await pay(tenants[0], '1.00')).data
    await expect(admin.fundings.get.query({ name: order.transferId })).rejects.toMatchObject({
      data: { appError: { code: 'T001' } },
    })
  })
})

describe('wallets.search', () => {
  test('finds wallets by ID, bizId, name, currency, status and balance, in all workspaces or in one', async () => {
    const { admin } = system
    const { workspaceId, main, savings } = await newTenant()
    const named = await admin.wallets.create.mutate({ workspaceId, currency: 'JPY', name: 'Yen', bizId: randomUUID() })
    await admin.wallets.changeStatus.mutate({ workspaceId, walletId: savings, status: 'FROZEN' })
    const search = async (filter: Parameters<typeof admin.wallets.search.query>[0]) =>
      (await admin.wallets.search.query(filter)).wallets.map(({ walletId }) => walletId)
    expect(await search({ walletId: main })).toEqual([main])
    expect(await search({ bizId: named.bizId! })).toEqual([named.walletId])
    expect(await search({ workspaceId })).toEqual([named.walletId, savings, main])
    expect(await search({ workspaceId, namePrefix: "Savings_of O'Hara \\ ?" })).toEqual([savings])
    expect(await search({ workspaceId, namePrefix: 'Savings%' })).toEqual([])
    expect(await search({ workspaceId, namePrefix: 'Main 1_' })).toEqual([])
    expect(await search({ workspaceId, currency: 'JPY' })).toEqual([named.walletId])
    expect(await search({ workspaceId, status: 'FROZEN' })).toEqual([savings])
    expect(await search({ workspaceId, balanceFrom: new Decimal('0.01') })).toEqual([main])
    expect(await search({ workspaceId, balanceTo: new Decimal(0) })).toEqual([named.walletId, savings])
    expect((await search({ namePrefix: 'Main' })).length).toBeGreaterThan(2)
    const first = await admin.wallets.search.query({ workspaceId, limit: 2 })
    expect(first.next).toBe(savings)
    expect(await search({ workspaceId, after: first.next! })).toEqual([main])
    // The hidden wallet of the outside is no customer's.
    expect(await search({ workspaceId, namePrefix: 'E' })).toEqual([])
  })

  test('shows a wallet that was modified outside the service as modified', async () => {
    const { main: walletId } = await newTenant()
    await execute(
      system.database.ownerUrl,
      `update wallet set name = 'Mine' where id = '${uuidFromId('wallet', walletId)}'`,
    )
    expect((await system.admin.wallets.search.query({ walletId })).wallets).toMatchObject([{ isModified: true }])
  })
})

describe('workspaces and members', () => {
  test('workspaces are listed newest first, and shown with what they hold', async () => {
    const { admin } = system
    const { workspaceId } = await newTenant()
    const { workspaces } = await admin.workspaces.list.query({ limit: 2 })
    expect(workspaces[0]).toMatchObject({ workspaceId, ledger: 'OPEN', wallets: 2, isModified: false, deletedAt: null })
    expect(await admin.workspaces.get.query({ workspaceId })).toMatchObject({
      ...workspaces[0],
      members: 1,
      apiKeys: 1,
      funds: [{ currency: 'USD', balance: new Decimal('1000') }],
    })
    const empty = await admin.workspaces.create.mutate({ name: 'Gone 50%' })
    await admin.workspaces.delete.mutate(empty)
    const listed = async (options: { deleted?: boolean; namePrefix?: string }) =>
      (await admin.workspaces.list.query({ limit: 500, ...options })).workspaces.map(each => each.workspaceId)
    expect(await listed({})).not.toContain(empty.workspaceId)
    expect(await listed({ deleted: true, namePrefix: 'Gone 50%' })).toEqual([empty.workspaceId])
    const all = await listed({ deleted: true })
    const paged = []
    for (let after: string | undefined; ; ) {
      const page = await admin.workspaces.list.query({ deleted: true, limit: 2, after })
      paged.push(...page.workspaces.map(each => each.workspaceId))
      if (page.next === null) break
      after = page.next
    }
    expect(paged).toEqual(all)
    await expect(admin.workspaces.get.query({ workspaceId: 'nonsense' })).rejects.toThrow('There is no workspace')
  })

  test('members are listed by their user IDs, with removed ones if asked for', async () => {
    const { admin } = system
    const { workspaceId } = await newTenant()
    for (const userId of ['ada', 'bob']) await admin.members.add.mutate({ workspaceId, userId })
    await admin.members.remove.mutate({ workspaceId, userId: 'ada' })
    const listed = async (options: object) =>
      (await admin.members.list.query({ workspaceId, ...options })).members.map(({ userId }) => userId)
    expect(await listed({})).toEqual(['bob', 'owner'])
    expect(await listed({ removed: true })).toEqual(['ada', 'bob', 'owner'])
    expect(await listed({ removed: true, after: 'ada', limit: 1 })).toEqual(['bob'])
    await expect(listed({ workspaceId: 'nonsense' })).rejects.toThrow('There is no workspace')
  })
})

describe('search.find', () => {
  const find = async (text: string) => (await system.admin.search.find.query({ text })).found

  test('finds what an ID of any kind names', async () => {
    const [tenant] = tenants
    const { workspaceId, apiKey, main: walletId } = tenant
    const hold = { walletId, amount: '1.00', currency: 'USD', expiresInSeconds: 3600, bizId: randomUUID() }
    const { holdId } = (await post(tenant, '/api/v1/hold/command/create', hold)).data
    const webhook = { url: 'https://example.com/', bizId: randomUUID() }
    const { webhookId } = (await post(tenant, '/api/v1/webhook/command/create', webhook)).data
    const { transferId } = (await pay(tenant, '1.00')).data
    const uuid = uuidFromId('transfer', transferId)!
    for (const [text, kind, id] of [
      [workspaceId, 'workspace', workspaceId],
      [apiKey, 'apiKey', apiKey],
      [walletId, 'wallet', walletId],
      [holdId, 'hold', holdId],
      [webhookId, 'webhook', webhookId],
      [transferId, 'transfer', transferId],
      [idFromUuid('event', uuid), 'transfer', transferId],
      [idFromUuid('flow', uuid), 'transfer', transferId],
    ] as const)
      expect(await find(text), text).toMatchObject([{ kind, id, workspaceId }])
    const { data } = await call(tenant, 'GET', '/api/v1/event/query/events/0').then(({ body }) => body)
    const { eventId } = data.content.find(({ type }: { type: string }) => type === 'hold.created')
    expect(await find(eventId)).toMatchObject([{ kind: 'event', id: eventId, summary: 'hold.created' }])
    const flows = await call(tenant, 'GET', `/api/v1/wallets/${walletId}/flows`)
    for (const { flowId, transferId } of flows.body.data.content)
      expect(await find(flowId)).toMatchObject([{ id: transferId }])
  })

  test('finds what the UUID of an ID names, as PostgreSQL shows it', async () => {
    const [{ workspaceId, main: walletId }] = tenants
    const { transferId } = (await pay(tenants[0], '1.00')).data
    expect(await find(uuidFromId('workspace', workspaceId)!)).toMatchObject([{ kind: 'workspace', id: workspaceId }])
    expect(await find(uuidFromId('wallet', walletId)!)).toMatchObject([{ kind: 'wallet', id: walletId }])
    expect(await find(uuidFromId('transfer', transferId)!)).toMatchObject([{ kind: 'transfer', id: transferId }])
  })

  test('finds what a bizId, a reference, a request ID, a user ID or a name names, wherever it is', async () => {
    const [tenant, other] = tenants
    const text = `name-${randomUUID()}`
    const { workspaceId, main: walletId } = tenant
    const { requestId, data } = await pay(tenant, '1.00', { bizId: text })
    await pay(other, '1.00', { reference: text })
    const hold = { walletId, amount: '1.00', currency: 'USD', expiresInSeconds: 3600, bizId: text }
    const held = await post(tenant, '/api/v1/hold/command/create', hold)
    await system.admin.wallets.create.mutate({ workspaceId, currency: 'EUR', name: 'Any', bizId: text })
    await post(tenant, '/api/v1/webhook/command/create', { url: 'https://example.com/', bizId: text })
    await system.admin.members.add.mutate({ workspaceId, userId: text })
    await system.admin.operators.create.mutate({ name: text, role: 'viewer' })
    const { found, searched } = await system.admin.search.find.query({ text })
    expect(found.map(({ kind, by }) => `${kind} by ${by}`)).toEqual([
      'transfer by bizId',
      'transfer by reference',
      'hold by bizId',
      'wallet by bizId',
      'webhook by bizId',
      'member by userId',
      'operator by name',
    ])
    expect(searched.length).toBeGreaterThan(found.length)
    expect(searched.every(({ isComplete }) => isComplete)).toBe(true)
    expect(await find(requestId)).toMatchObject([{ kind: 'transfer', by: 'requestId', id: data.transferId }])
    expect(await find(held.requestId)).toMatchObject([{ kind: 'event', by: 'requestId', workspaceId }])
    expect(await find(text.slice(0, -1))).toEqual([])
  })

  test('says that a list is not complete if there are more than it shows', async () => {
    const [tenant] = tenants
    const reference = randomUUID()
    for (let count = 0; count < 21; count++) await pay(tenant, '0.01', { reference })
    const { found, searched } = await system.admin.search.find.query({ text: reference })
    expect(found).toHaveLength(20)
    expect(searched.filter(({ isComplete }) => !isComplete)).toEqual([
      { kind: 'transfer', by: 'reference', isComplete: false },
    ])
  })
})
