import { randomUUID } from 'node:crypto'
import { type AuditEntry, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { query } from './setup/database.ts'
import { findProcedures } from './setup/procedures.ts'
import { type System, startSystem } from './setup/system.ts'

/** Each administrative action writes an audit entry in its transaction. Nobody can change the entry. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

async function entriesOf(filter: { workspaceId?: string; target?: string }): Promise<AuditEntry[]> {
  return (await system.admin.audit.list.query({ ...filter, limit: 500 })).entries
}

test('every administrative action is recorded with actor, target, and the state before and after', async () => {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Audited' })
  await admin.members.add.mutate({ workspaceId, userId: 'ada' })
  const key = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
  await admin.apiKeys.disable.mutate(key)
  await admin.apiKeys.enable.mutate(key)
  const rotated = await admin.apiKeys.rotate.mutate({ ...key, graceMs: 1000 })
  await admin.apiKeys.setScopes.mutate({ ...key, scopes: ['transfer:read'] })
  await admin.apiKeys.setIps.mutate({ ...key, ipAllowlist: ['203.0.113.7'] })
  await admin.apiKeys.setExpiry.mutate({ ...key, expiresAt: new Date('2099-01-01') })
  await admin.apiKeys.delete.mutate(key)
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Main' })
  const wallet = { workspaceId, walletId }
  const deposited = await admin.wallets.deposit.mutate({ ...wallet, amount: '5.00', bizId: 'in' })
  // A replay moves no money, so it has no entry.
  await admin.wallets.deposit.mutate({ ...wallet, amount: '5.00', bizId: 'in' })
  await admin.wallets.withdraw.mutate({ ...wallet, amount: '5.00', bizId: randomUUID() })
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN' })
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'ACTIVE' })
  const limit = { workspaceId, subject: { walletId }, currency: 'USD' }
  await admin.limits.set.mutate({ ...limit, perDay: '9.00' })
  await admin.limits.clear.mutate(limit)
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'CLOSED' })
  for await (const _ of await admin.ledger.checkpoint.query({ workspaceId }));
  await admin.members.remove.mutate({ workspaceId, userId: 'ada' })
  await admin.workspaces.delete.mutate({ workspaceId })

  const entries = (await entriesOf({ workspaceId })).toReversed()
  expect(entries.map(({ action }) => action)).toEqual([
    'workspace.create',
    'member.add',
    'key.create',
    'key.disable',
    'key.enable',
    'key.rotate',
    'key.set-scopes',
    'key.set-ips',
    'key.set-expiry',
    'key.delete',
    'wallet.create',
    'wallet.deposit',
    'wallet.withdraw',
    'wallet.freeze',
    'wallet.unfreeze',
    'limit.set',
    'limit.clear',
    'wallet.close',
    'ledger.checkpoint',
    'member.remove',
    'workspace.delete',
  ])
  const of = (action: string) => entries.find(each => each.action === action)!
  expect(of('key.disable')).toMatchObject({
    actor: 'admin:a',
    workspaceId,
    target: key.apiKey,
    at: expect.any(Date),
    before: { status: 'ACTIVE' },
    after: { status: 'DISABLED' },
  })
  expect(of('wallet.deposit')).toMatchObject({
    target: walletId,
    after: { transferId: deposited.transferId, bizId: 'in', amount: '5.00', currency: 'USD' },
  })
  const bounds = { currency: 'USD', perTransfer: null, perDay: '9.00' }
  expect(of('limit.set')).toMatchObject({ target: walletId, after: bounds })
  expect(of('limit.clear')).toMatchObject({ target: walletId, before: bounds, after: { ...bounds, perDay: null } })
  const text = JSON.stringify(entries)
  for (const secret of [key.apiSecret, rotated.apiSecret, 'v1.k1.', system.adminToken])
    expect(text).not.toContain(secret)
})

test('every procedure that changes something is tested here or named as an exception', async () => {
  const mutations = (await findProcedures()).filter(({ type }) => type === 'mutation').map(({ path }) => path)
  // Not administrative: uploads for a verification, which removes them; transfers and holds of clients, whose rows and
  // events name the actor; what gateways and couriers report. Tested in moves.test.ts, with two places: moves.
  const others = [
    'ledger.uploadCheckpoint',
    'transfers.create',
    'transfers.batch',
    'holds.create',
    'access.markUsed',
    'courier.lease',
    'courier.report',
    'access.beginNonceGeneration',
    'instances.leave',
    'instances.report',
    'refusals.report',
    'moves.begin',
    'moves.stop',
    'moves.arrive',
    'moves.cancel',
  ]
  expect(mutations.filter(path => !others.includes(path)).sort()).toEqual([
    'apiKeys.create',
    'apiKeys.delete',
    'apiKeys.disable',
    'apiKeys.enable',
    'apiKeys.rotate',
    'apiKeys.setExpiry',
    'apiKeys.setIps',
    'apiKeys.setScopes',
    'holds.release',
    // Tested in test/kek.test.ts.
    'keks.rewrap',
    'ledger.reopen',
    // Tested in services/core/src/integrity/repair/repair.test.ts.
    'ledger.repair',
    'limits.clear',
    'limits.set',
    'members.add',
    'members.remove',
    // Tested in test/operators.test.ts.
    'operators.create',
    'operators.disable',
    'operators.rotate',
    // Tested in test/system-status.test.ts.
    'system.recordBackup',
    'transfers.reverse',
    'wallets.changeStatus',
    'wallets.create',
    'wallets.deposit',
    'wallets.withdraw',
    // Tested in test/webhooks.test.ts.
    'webhooks.create',
    'webhooks.delete',
    'webhooks.rotate',
    'webhooks.seek',
    'webhooks.update',
    'workspaces.create',
    'workspaces.delete',
  ])
})

test('what operators reverse and release is recorded once, with its reason; what a service does is not', async () => {
  const { admin } = system
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Reversed' })
  const [from, to] = await Promise.all(
    ['From', 'To'].map(name => admin.wallets.create.mutate({ workspaceId, currency: 'USD', name })),
  )
  const walletId = from!.walletId
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '9.00', bizId: 'in' })
  const call = { workspaceId, caller: { requestId: 'test' } }
  const money = { amount: '4.00', currency: 'USD' }
  const order = { sourceWalletId: walletId, targetWalletId: to!.walletId, ...money, bizId: 'order' }
  const { transferId } = await service.transfers.create.mutate({ ...call, order })
  const held = (bizId: string) =>
    service.holds.create.mutate({ ...call, hold: { walletId, ...money, amount: '1.50', bizId, expiresInSeconds: 600 } })
  const { holdId } = await held('hold')
  const others = await held('service-hold')
  const reversal = (bizId: string, amount: string) => ({
    reversesTransferId: transferId,
    currency: 'USD',
    bizId,
    amount,
  })
  await service.transfers.reverse.mutate({ ...call, reversal: reversal('by-the-service', '1.00'), reason: 'ignored' })
  await service.holds.release.mutate({ ...call, holdId: others.holdId, reason: 'ignored' })
  const byOperator = { ...call, reversal: reversal('by-an-operator', '2.00'), reason: 'damaged goods' }
  const made = await admin.transfers.reverse.mutate(byOperator)
  // A replay moves nothing, so it has no entry.
  await admin.transfers.reverse.mutate(byOperator)
  await admin.holds.release.mutate({ ...call, holdId, reason: 'the guest left' })
  await admin.holds.release.mutate({ ...call, holdId, reason: 'the guest left' })
  await service.close()

  const entries = (await entriesOf({ workspaceId })).toReversed()
  expect(entries.slice(-2)).toMatchObject([
    {
      action: 'transfer.reverse',
      actor: 'admin:a',
      target: transferId,
      reason: 'damaged goods',
      after: { transferId: made.transferId, bizId: 'by-an-operator', amount: '2.00', currency: 'USD' },
    },
    {
      action: 'hold.release',
      actor: 'admin:a',
      target: holdId,
      reason: 'the guest left',
      after: { walletId, bizId: 'hold', released: '1.5', currency: 'USD' },
    },
  ])
  const actions = entries.map(({ action }) => action)
  expect(actions.filter(action => /reverse|release/.test(action))).toHaveLength(2)
  expect((await verifyLedger(admin, { workspaceId })).ok).toBe(true)
})

test('reasons and request IDs are recorded, and entries are found by request ID', async () => {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Explained' })
  const because = (what: string) => ({ reason: `because of ${what} – “案件 4711”` })
  const ada = { workspaceId, userId: 'ada' }
  await admin.members.add.mutate({ ...ada, ...because('a member') })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Main' })
  const owned = { workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] as ['wallet:read'] }
  const { apiKey } = await admin.apiKeys.create.mutate({ ...owned, ...because('a key') })
  const wallet = { workspaceId, walletId }
  const limit = { workspaceId, subject: { walletId }, currency: 'USD' }
  const requestId = `req_${randomUUID()}`
  const caller = { requestId }
  await admin.apiKeys.disable.mutate({ apiKey, ...because('a leak') })
  await admin.apiKeys.enable.mutate({ apiKey, ...because('no leak') })
  await admin.apiKeys.rotate.mutate({ apiKey, ...because('a rotation') })
  await admin.apiKeys.setScopes.mutate({ apiKey, scopes: ['transfer:read'], ...because('other scopes') })
  await admin.apiKeys.setIps.mutate({ apiKey, ipAllowlist: ['203.0.113.7'], ...because('a network') })
  await admin.apiKeys.setExpiry.mutate({ apiKey, expiresAt: new Date('2099-01-01'), ...because('a contract') })
  await admin.wallets.deposit.mutate({ ...wallet, amount: '5.00', bizId: 'in', caller, ...because('a deposit') })
  // A replay is no action: its reason is not recorded.
  await admin.wallets.deposit.mutate({ ...wallet, amount: '5.00', bizId: 'in', ...because('a replay') })
  await admin.wallets.withdraw.mutate({ ...wallet, amount: '5.00', bizId: 'out', ...because('a withdrawal') })
  await admin.limits.set.mutate({ ...limit, perDay: '9.00', ...because('a limit') })
  await admin.limits.clear.mutate({ ...limit, ...because('no limit') })
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'FROZEN', ...because('a freeze') })
  await admin.wallets.changeStatus.mutate({ ...wallet, status: 'CLOSED', ...because('a closing') })
  await admin.apiKeys.delete.mutate({ apiKey, ...because('a deletion') })
  await admin.members.remove.mutate({ ...ada, ...because('a departure') })
  await admin.workspaces.delete.mutate({ workspaceId, ...because('the end') })
  const entries = (await entriesOf({ workspaceId })).toReversed()
  const reasons = entries.flatMap(({ action, reason }) => (reason === null ? [] : [[action, reason]]))
  expect(reasons).toEqual(
    [
      ['member.add', 'a member'],
      ['key.create', 'a key'],
      ['key.disable', 'a leak'],
      ['key.enable', 'no leak'],
      ['key.rotate', 'a rotation'],
      ['key.set-scopes', 'other scopes'],
      ['key.set-ips', 'a network'],
      ['key.set-expiry', 'a contract'],
      ['wallet.deposit', 'a deposit'],
      ['wallet.withdraw', 'a withdrawal'],
      ['limit.set', 'a limit'],
      ['limit.clear', 'no limit'],
      ['wallet.freeze', 'a freeze'],
      ['wallet.close', 'a closing'],
      ['key.delete', 'a deletion'],
      ['member.remove', 'a departure'],
      ['workspace.delete', 'the end'],
    ].map(([action, what]) => [action, because(what!).reason]),
  )
  // Each call of an operator has a request ID of its own.
  expect(new Set(entries.map(entry => entry.requestId)).size).toBe(entries.length)
  for (const entry of entries) expect(entry.requestId).toMatch(/^req_[0-9a-f-]{36}$/)
  const [found, ...others] = (await admin.audit.list.query({ requestId })).entries
  expect(found).toMatchObject({ action: 'wallet.deposit', requestId })
  expect(others).toEqual([])
  // The transfer has the same request ID.
  const { transfers } = await admin.transfers.search.query({ workspaceId, requestId })
  expect(transfers).toMatchObject([{ type: 'DEPOSIT', bizId: 'in' }])
})

test.each([
  { reason: '' },
  { reason: ' ' },
  { reason: 'two\nlines' },
  { reason: 'x'.repeat(257) },
  { bizId: undefined },
])('a deposit with %j is refused', async change => {
  const { workspaceId, wallets } = system
  const input = { workspaceId, walletId: wallets[0]!.walletId, amount: '1.00', bizId: 'refused', ...change }
  await expect(system.admin.wallets.deposit.mutate(input as never)).rejects.toMatchObject({
    data: { code: 'BAD_REQUEST', inputFaults: [expect.objectContaining({ path: Object.keys(change)[0] })] },
  })
})

test('a reason or request ID that was changed in the database is reported', async () => {
  const { admin, database } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Changed' })
  await admin.members.add.mutate({ workspaceId, userId: 'ada' })
  for (const change of [`reason = 'none'`, `request_id = 'another'`]) {
    const before = await query(
      database.ownerUrl,
      `select * from audit where action = 'member.add' order by id desc limit 1`,
    )
    const isRow = `id = ${before[0]!.id}`
    const asOwner = (sql: string) => query(database.ownerUrl, `set session_replication_role = replica; ${sql}`)
    await asOwner(`update audit set ${change} where ${isRow}`)
    const { violations } = await verifyLedger(admin, { workspaceId })
    expect(violations).toMatchObject([
      { rule: 'audit-chain', ids: { action: 'member.add' } },
      // What a modified entry says does not count.
      { rule: 'member-audit', ids: { userId: 'ada' } },
    ])
    await asOwner(`update audit set reason = null, request_id = '${before[0]!.request_id}' where ${isRow}`)
  }
})

test('a rejected action writes no entry and notifies no gateway', async () => {
  const revision = async () =>
    (await query(system.database.ownerUrl, 'select revision from access_revision'))[0]!.revision
  const newest = async () => (await system.admin.audit.list.query({ limit: 1 })).entries[0]!
  const graced = { apiKey: system.apiKey, graceMs: 3600_000 }
  await system.admin.apiKeys.rotate.mutate(graced)
  const before = [await revision(), await newest()]
  await expect(system.admin.apiKeys.rotate.mutate(graced)).rejects.toThrow('wait until then')
  await expect(system.admin.apiKeys.disable.mutate({ apiKey: 'ak_01h455vb4pex5vsknk084sn02q' })).rejects.toThrow(
    'There is no key',
  )
  expect([await revision(), await newest()]).toEqual(before)
})

test('a deposit by a funding service is recorded with the name of the service', async () => {
  const service = createCoreClient({ url: system.coreUrl, token: system.fundingToken })
  const { workspaceId, wallets } = system
  const { walletId } = wallets[0]!
  await service.wallets.deposit.mutate({
    workspaceId,
    walletId,
    amount: '1.00',
    caller: { requestId: 'r' },
    bizId: randomUUID(),
  })
  await service.close()
  expect((await entriesOf({ target: walletId }))[0]).toMatchObject({ actor: 'funding:f', action: 'wallet.deposit' })
})

test('the list filters by workspace, actor, action, target and time, and its pages neither skip nor repeat entries', async () => {
  const { admin, workspaceId } = system
  const all = await entriesOf({ workspaceId })
  expect(all.length).toBeGreaterThan(8)
  expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => b - a))
  const paged: AuditEntry[] = []
  for (let before: string | undefined; ; ) {
    const page = await admin.audit.list.query({ workspaceId, limit: 3, before })
    paged.push(...page.entries)
    if (page.next === null) break
    before = page.next
  }
  expect(paged).toEqual(all)
  const middle = all[4]!
  const { at, action, actor, target } = middle
  const filtered = await admin.audit.list.query({ workspaceId, action, actor, target, from: at })
  expect(filtered.entries).toContainEqual(middle)
  for (const entry of filtered.entries) expect(entry).toMatchObject({ workspaceId, action, actor, target })
  for (const filter of [
    { action, actor },
    { action, target },
    { action, actor, target },
    { action, actor, target, from: at },
  ]) {
    const everything = (await admin.audit.list.query({ workspaceId, ...filter })).entries
    const newest = await admin.audit.list.query({ workspaceId, ...filter, limit: 1 })
    expect(newest.entries).toEqual(everything.slice(0, 1))
    const rest = await admin.audit.list.query({ workspaceId, ...filter, before: String(everything[0]!.id) })
    expect(rest.entries).toEqual(everything.slice(1))
  }
  const earlier = await admin.audit.list.query({ workspaceId, to: at, limit: 500 })
  expect(earlier.entries).toEqual(all.filter(entry => entry.at < at))
  for (const none of [{ actor: 'admin:none' }, { workspaceId: 'nonsense' }, { target: "' or true --" }])
    expect(await admin.audit.list.query(none)).toEqual({ entries: [], next: null })
})

describe('the audit is append-only', () => {
  const changes = [
    "update audit set actor = 'nobody'",
    'delete from audit',
    'truncate audit',
    "insert into audit (id, actor, action, target) overriding system value values (1, 'a', 'b', 'c')",
    "insert into audit (at, actor, action, target) values ('2020-01-01', 'a', 'b', 'c')",
  ]

  test.each(changes)('the service role may not: %s', async sql => {
    await expect(query(system.database.serviceUrl, sql)).rejects.toMatchObject({
      code: sql.includes('2020') ? '23001' : '42501',
    })
  })

  test.each(changes.slice(0, 3))('the owner of the schema cannot: %s', async sql => {
    await expect(query(system.database.ownerUrl, sql)).rejects.toMatchObject({ code: '23001' })
  })

  test('the service role can append', async () => {
    const sql = `
      insert into audit (at, actor, action, workspace_id, target, position, mac)
      select now, 'test', 'test', workspace_id, 't', position + 1, '' from lock_audit(array[$1::uuid])`
    await query(system.database.serviceUrl, sql, [uuidFromId('workspace', system.workspaceId)])
    expect((await entriesOf({ target: 't' })).map(({ actor }) => actor)).toEqual(['test'])
  })
})
