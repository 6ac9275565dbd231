import { randomUUID } from 'node:crypto'
import { idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Answer, type Credentials, call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { createKey, createTenant } from './setup/workspaces.ts'

/** Clients create, freeze, unfreeze and close wallets. Two gateways, each with a core of its own. */

const createWalletPath = '/api/v1/wallet/command/create'
const changeStatusPath = '/api/v1/wallet/command/change-status'
const scopes = ['wallet:manage', 'wallet:read', 'transfer:read', 'transfer:create'] as const

let system: System
let ours: Tenant
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 2, oneCorePerGateway: true })
})
afterAll(() => system.stop())
beforeEach(async () => {
  ours = await newTenant()
})

type Tenant = Credentials & { workspaceId: string }
const newTenant = (): Promise<Tenant> => createTenant(system, { scopes: [...scopes] })

/** The same key at the gateway with this number. */
const at = (tenant: Tenant, gateway: number): Tenant => ({ ...tenant, baseUrl: system.gateways[gateway % 2]!.url })
/** With a `detail` that names the fault. */
const post = (tenant: Tenant, path: string, body: object) =>
  call(tenant, 'POST', path, body, { headers: { 'X-Locale': 'en-US' } })
const create = (tenant: Tenant, body: object = {}) =>
  post(tenant, createWalletPath, { name: 'Main', currency: 'USD', bizId: 'main', ...body })
const change = (tenant: Tenant, walletId: string, status: string) =>
  post(tenant, changeStatusPath, { walletId, status })
const newWallet = async (tenant: Tenant, bizId = 'main'): Promise<string> =>
  (await create(tenant, { bizId })).body.data.walletId
const deposit = ({ workspaceId }: Tenant, walletId: string, amount: string) =>
  system.admin.wallets.deposit.mutate({ workspaceId, walletId, amount, bizId: randomUUID() })
const pay = (tenant: Tenant, sourceWalletId: string, targetWalletId: string) =>
  post(tenant, createPath, { sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD' })
const outcome = ({ status, body }: Answer) => [status, body.code]

/** Type, wallet, actor and position of each event of the journal; checks that positions have no gaps. */
async function eventsOf({ workspaceId }: Tenant) {
  const workspace = uuidFromId('workspace', workspaceId)
  const events = await query(
    system.database.ownerUrl,
    `select position::int, type, wallet_id, actor, request_id, client_address from journal where workspace_id = $1
     union all select position::int, 'transfer', null, actor, request_id, client_address from transfer where workspace_id = $1
     order by position`,
    [workspace],
  )
  expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1))
  const [ledger] = await query(system.database.ownerUrl, 'select position::int from ledger where workspace_id = $1', [
    workspace,
  ])
  expect(ledger!.position).toBe(events.length)
  return events.filter(({ type }) => type !== 'transfer')
}
const typesOf = async (tenant: Tenant) => (await eventsOf(tenant)).map(({ type }) => type)

const expectSound = async ({ workspaceId }: Tenant) =>
  expect(await verifyLedger(system.admin, { workspaceId })).toMatchObject({ ok: true, violations: [] })

test('a wallet can be created, used, frozen, unfrozen and closed', async () => {
  const created = await create(ours)
  expect(created.status).toBe(200)
  const wallet = created.body.data
  const { walletId } = wallet
  expect(wallet).toEqual({
    walletId: expect.stringMatching(/^wal_/),
    bizId: 'main',
    name: 'Main',
    currency: 'USD',
    status: 'ACTIVE',
    balance: '0.00',
    createdAt: expect.any(String),
    updatedAt: wallet.createdAt,
  })
  expect((await call(ours, 'GET', `/api/v1/wallets/${walletId}`)).body.data).toEqual(wallet)
  const other = await newWallet(ours, 'other')
  await deposit(ours, walletId, '1.00')

  expect((await change(ours, walletId, 'FROZEN')).body.data).toMatchObject({ walletId, status: 'FROZEN' })
  expect(outcome(await pay(ours, walletId, other))).toEqual([409, 'W002'])
  expect((await change(ours, walletId, 'ACTIVE')).body.data).toMatchObject({ walletId, status: 'ACTIVE' })
  expect(outcome(await pay(ours, walletId, other))).toEqual([200, '2000'])
  expect((await change(ours, walletId, 'CLOSED')).body.data).toMatchObject({ status: 'CLOSED', balance: '0.00' })

  const events = await eventsOf(ours)
  expect(events.map(({ type, wallet_id }) => [type, idFromUuid('wallet', wallet_id as Uuid<'wallet'>)])).toEqual([
    ['wallet.created', walletId],
    ['wallet.created', other],
    ['wallet.frozen', walletId],
    ['wallet.unfrozen', walletId],
    ['wallet.closed', walletId],
  ])
  for (const event of events) expect(event).toMatchObject({ actor: `key:${ours.apiKey}`, client_address: '127.0.0.1' })
  expect(events[0]!.request_id).toBe(created.headers.get('x-request-id'))
  const { entries } = await system.admin.audit.list.query({ target: walletId, actor: `key:${ours.apiKey}` })
  expect(entries.map(({ action, after }) => [action, after]).toReversed()).toEqual([
    ['wallet.create', { currency: 'USD', name: 'Main', bizId: 'main' }],
    ['wallet.freeze', { status: 'FROZEN', frozenBy: 'WORKSPACE' }],
    ['wallet.unfreeze', { status: 'ACTIVE', frozenBy: null }],
    ['wallet.close', { status: 'CLOSED', frozenBy: null }],
  ])
  await expectSound(ours)
})

test('both commands need the scope wallet:manage', async () => {
  const walletId = await newWallet(ours)
  const reader = await createKey({ ...system, ...ours }, { scopes: ['wallet:read', 'transfer:create'] })
  for (const refused of [await create(reader), await change(reader, walletId, 'FROZEN')])
    expect(outcome(refused)).toEqual([403, 'GA2024'])
  expect(await typesOf(ours)).toEqual(['wallet.created'])
})

test.each<[string, object]>([
  ['bizId', { bizId: undefined }],
  ['bizId', { bizId: null }],
  ['bizId', { bizId: 'wal_1' }],
  ['bizId', { bizId: 'x'.repeat(65) }],
  ['name', { name: undefined }],
  ['name', { name: '' }],
  ['name', { name: 'x'.repeat(129) }],
  ['name', { name: 'a\nb' }],
  ['currency', { currency: 'XXX' }],
  ['status', { status: 'ACTIVE' }],
])('a create with a faulty %s (%o) is S012, even if it repeats another', async (field, given) => {
  await newWallet(ours)
  const { status, body } = await create(ours, given)
  expect([status, body.code]).toEqual([400, 'S012'])
  expect(body.detail).toContain(field)
  expect(await typesOf(ours)).toEqual(['wallet.created'])
})

test.each<[string, object]>([
  ['no walletId', { walletId: undefined }],
  ['a walletId that is no text', { walletId: 1 }],
  ['an unknown status', { status: 'OPEN' }],
  ['no status', { status: null }],
  ['an unknown field', { force: true }],
])('a change of status with %s is S012, before the wallet is looked up', async (_, given) => {
  const body = { walletId: 'absent', status: 'FROZEN', ...given }
  expect(outcome(await post(ours, changeStatusPath, body))).toEqual([400, 'S012'])
})

test('a repeated key is S012', async () => {
  const body = '{"name":"Main","currency":"USD","bizId":"a","bizId":"b"}'
  expect(outcome(await call(ours, 'POST', createWalletPath, body))).toEqual([400, 'S012'])
  expect(await typesOf(ours)).toEqual([])
})

test('a replay answers the wallet as it is now; another name or currency is T005', async () => {
  const walletId = await newWallet(ours)
  await deposit(ours, walletId, '5.00')
  await change(ours, walletId, 'FROZEN')
  const replayed = await create(at(ours, 1))
  expect(outcome(replayed)).toEqual([200, '2000'])
  expect(replayed.body.data).toMatchObject({ walletId, status: 'FROZEN', balance: '5.00' })
  expect(outcome(await create(ours, { name: 'Other' }))).toEqual([409, 'T005'])
  const conflict = await create(ours, { currency: 'EUR' })
  expect(outcome(conflict)).toEqual([409, 'T005'])
  expect(conflict.body.detail).toContain('main')
  expect(await typesOf(ours)).toEqual(['wallet.created', 'wallet.frozen'])
})

test('creates of one bizId at both cores at once make one wallet', async () => {
  const same = await Promise.all(Array.from({ length: 10 }, (_, index) => create(at(ours, index))))
  expect(same.map(outcome)).toEqual(same.map(() => [200, '2000']))
  expect(new Set(same.map(({ body }) => body.data.walletId)).size).toBe(1)
  const raced = await Promise.all(
    Array.from({ length: 6 }, (_, index) => create(at(ours, index), { bizId: 'raced', name: `Name ${index}` })),
  )
  expect(raced.map(({ body }) => body.code).sort()).toEqual(['2000', 'T005', 'T005', 'T005', 'T005', 'T005'])
  expect(await typesOf(ours)).toEqual(['wallet.created', 'wallet.created'])
  await expectSound(ours)
})

test('refusals come in the order W001, W002, W004, W003, and a status that the wallet has is none', async () => {
  const { admin } = system
  const walletId = await newWallet(ours)
  const wallet = { workspaceId: ours.workspaceId, walletId }
  const codes = async () => {
    const answers = []
    for (const status of ['ACTIVE', 'FROZEN', 'CLOSED']) answers.push((await change(ours, walletId, status)).body.code)
    return answers
  }
  expect(outcome(await change(ours, 'absent', 'CLOSED'))).toEqual([404, 'W001'])
  expect(outcome(await change(ours, '', 'CLOSED'))).toEqual([404, 'W001'])

  await deposit(ours, walletId, '1.00')
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN' })
  expect(await codes()).toEqual(['W004', '2000', 'W004'])
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'ACTIVE' })
  expect(outcome(await change(ours, walletId, 'CLOSED'))).toEqual([409, 'W003'])
  await admin.wallets.withdraw.mutate({ ...wallet, amount: '1.00', bizId: randomUUID() })
  expect(await codes()).toEqual(['2000', '2000', '2000'])
  expect(await codes()).toEqual(['W002', 'W002', '2000'])
  expect(outcome(await change(ours, walletId, 'ACTIVE'))).toEqual([409, 'W002'])
  await expectSound(ours)
})

test("an operator who freezes over the client's freeze takes it over, with an event of its own", async () => {
  const { admin } = system
  const walletId = await newWallet(ours)
  const wallet = { workspaceId: ours.workspaceId, walletId }
  await change(ours, walletId, 'FROZEN')
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN' })
  // Nothing changes, so there is no event.
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN' })
  expect(outcome(await change(ours, walletId, 'FROZEN'))).toEqual([200, '2000'])
  expect(outcome(await change(ours, walletId, 'ACTIVE'))).toEqual([409, 'W004'])
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'ACTIVE' })
  // Operators unfreeze what a client froze, too.
  await change(ours, walletId, 'FROZEN')
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'ACTIVE' })
  const [key, operator] = [`key:${ours.apiKey}`, 'admin:a']
  expect((await eventsOf(ours)).map(({ type, actor }) => [type, actor])).toEqual([
    ['wallet.created', key],
    ['wallet.frozen', key],
    ['wallet.frozen', operator],
    ['wallet.unfrozen', operator],
    ['wallet.frozen', key],
    ['wallet.unfrozen', operator],
  ])
  await expectSound(ours)
})

test('a key reaches no wallet of another workspace, and bizIds do not collide', async () => {
  const theirs = await newTenant()
  const [own, foreign] = [await newWallet(ours), await newWallet(theirs)]
  expect(own).not.toBe(foreign)
  const [hidden] = await query(
    system.database.ownerUrl,
    "select id from wallet where kind = 'EXTERNAL' and workspace_id = $1",
    [uuidFromId('workspace', ours.workspaceId)],
  )
  const hiddenId = idFromUuid('wallet', hidden!.id as Uuid<'wallet'>)
  const absent = 'wal_01h455vb4pex5vsknk084sn02q'
  const answers: string[] = []
  for (const walletId of [foreign, hiddenId, absent, 'nonsense', '', own.toUpperCase(), '\u0000']) {
    const { status, body } = await change(ours, walletId, 'CLOSED')
    answers.push(JSON.stringify({ status, ...body, timestamp: 0 }))
  }
  expect(new Set(answers).size, answers.join('\n')).toBe(1)
  expect(answers[0]).toContain('W001')
  expect(await typesOf(theirs)).toEqual(['wallet.created'])

  // A gateway cannot act on a workspace that is not that of the key.
  const caller = { apiKey: ours.apiKey, requestId: 'test' }
  const { workspaceId } = theirs
  const status = 'CLOSED'
  const forbidden = { data: { code: 'FORBIDDEN' } }
  await expect(
    system.gatewayClient.wallets.changeStatus.mutate({ workspaceId, walletId: foreign, status, caller }),
  ).rejects.toMatchObject(forbidden)
  const wallet = { workspaceId, name: 'Main', currency: 'USD', bizId: 'another' }
  await expect(system.gatewayClient.wallets.create.mutate({ ...wallet, caller })).rejects.toMatchObject(forbidden)
  expect(await typesOf(theirs)).toEqual(['wallet.created'])
})

test('creates, changes and transfers at both cores at once leave a sound ledger', async () => {
  const [from, to] = [await newWallet(ours, 'from'), await newWallet(ours, 'to')]
  await deposit(ours, from, '100.00')
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) => {
      const tenant = at(ours, index)
      if (index % 3 === 0) return change(tenant, to, index % 2 === 0 ? 'FROZEN' : 'ACTIVE')
      if (index % 3 === 1)
        return create(tenant, { bizId: `new-${index % 4}`, currency: index % 4 === 0 ? 'EUR' : 'USD' })
      return pay(tenant, from, to)
    }),
  )
  for (const { body } of answers) expect(['2000', 'W002']).toContain(body.code)
  const created = (await typesOf(ours)).filter(type => type === 'wallet.created')
  expect(created).toHaveLength(6)
  expect((await call(ours, 'GET', '/api/v1/wallets')).body.data.page.totalElements).toBe(6)
  await expectSound(ours)
})

test('while its workspace is halted, a client gets S002 and can retry; replays are answered', async () => {
  const walletId = await newWallet(ours)
  const { serviceUrl } = system.database
  const workspace = uuidFromId('workspace', ours.workspaceId)
  const [ledger] = await query(serviceUrl, 'select mac from ledger where workspace_id = $1', [workspace])
  await query(serviceUrl, `select change_ledger_status($1, 'HALTED', 'test', $2)`, [workspace, ledger!.mac])
  for (const answer of [await create(ours, { bizId: 'new' }), await change(ours, walletId, 'FROZEN')]) {
    expect(outcome(answer)).toEqual([503, 'S002'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await create(ours)).body.data.walletId).toBe(walletId)
  expect(outcome(await change(ours, walletId, 'ACTIVE'))).toEqual([200, '2000'])
})

test('the verifier compares bizId and the side that froze a wallet with the audit', async () => {
  const walletId = await newWallet(ours)
  const wallet = { workspaceId: ours.workspaceId, walletId }
  const isWallet = `id = '${uuidFromId('wallet', walletId)}'`
  const asOwner = (sql: string) => execute(system.database.ownerUrl, `set session_replication_role = replica; ${sql}`)
  await change(ours, walletId, 'FROZEN')
  await asOwner(`create schema kept; create table kept.by_client as select * from wallet where ${isWallet}`)
  await system.admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN' })
  await asOwner(`create table kept.by_operator as select * from wallet where ${isWallet}`)
  const restore = (table: string) =>
    asOwner(`delete from wallet where ${isWallet}; insert into wallet select * from kept.${table}`)
  const messages = async () => {
    const { violations } = await verifyLedger(system.admin, { workspaceId: ours.workspaceId })
    return violations.filter(({ rule }) => rule === 'wallet-audit').map(({ message }) => message)
  }
  // A genuine earlier row: the client could unfreeze what the operator froze.
  await restore('by_client')
  expect(await messages()).toEqual(['its frozenBy is "WORKSPACE", and "OPERATOR" in the audit'])
  await restore('by_operator')
  await asOwner(`update wallet set biz_id = 'other' where ${isWallet}`)
  expect(await messages()).toEqual(['its bizId is "other", and "main" in the audit'])
  await restore('by_operator')
  await asOwner('drop schema kept cascade')
  await expectSound(ours)
})
