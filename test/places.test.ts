import { randomUUID } from 'node:crypto'
import { idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { checkpointLines, createCoreClient, readKekStatus, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, call, createPath } from './setup/client.ts'
import { createTestDatabase, execute, query, type TestDatabase } from './setup/database.ts'
import { startFaultProxy } from './setup/fault-proxy.ts'
import { startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey, createWallet } from './setup/workspaces.ts'

/** A core with two places, each a database of its own, and workspaces in both. */

type Tenant = Credentials & { workspaceId: string; place: number; a: string; b: string }

let system: System
let second: TestDatabase
let service: ReturnType<typeof createCoreClient>
/** Two in each place. */
const tenants: Tenant[] = []

beforeAll(async () => {
  second = await createTestDatabase()
  system = await startSystem({ coreEnvironment: { DATABASE_URLS: second.serviceUrl } })
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  for (const place of [0, 1, 0, 1]) tenants.push(await newTenant(place))
})
afterAll(async () => {
  await service.close()
  await system.stop()
  await second.drop()
})

const urls = () => [system.database.ownerUrl, second.ownerUrl]

/** The number of the place that has a workspace. It is in no other one. */
async function placeOf(workspaceId: string): Promise<number> {
  const has = async (url: string) =>
    (await query(url, 'select from workspace where id = $1', [uuidFromId('workspace', workspaceId)])).length
  const found = await Promise.all(urls().map(has))
  expect(found.toSorted()).toEqual([0, 1])
  return found.indexOf(1)
}

/** A workspace of two wallets, with a deposit and a transfer. */
async function newTenant(place: number): Promise<Tenant> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test', place })
  expect(await placeOf(workspaceId)).toBe(place)
  await admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const credentials = await createKey({ ...system, workspaceId })
  const a = await createWallet({ admin, workspaceId }, { name: 'A', deposits: ['100.00'] })
  const b = await createWallet({ admin, workspaceId }, { name: 'B' })
  const made = { ...credentials, place, a, b }
  await pay(made)
  return made
}

const pay = ({ a, b, ...credentials }: Tenant, bizId = randomUUID()) =>
  call(credentials, 'POST', createPath, {
    bizId,
    sourceWalletId: a,
    targetWalletId: b,
    amount: '1.00',
    currency: 'USD',
  })

/** Every page of a list. */
async function allOf<Item>(read: (after: string | undefined) => Promise<{ items: Item[]; next: string | null }>) {
  const found: Item[] = []
  for (let after: string | undefined; ; ) {
    const { items, next } = await read(after)
    found.push(...items)
    if (next === null) return found
    after = next
  }
}

test('signed requests reach the workspace of their key, wherever it is', async () => {
  for (const tenant of tenants) {
    expect(await pay(tenant)).toMatchObject({ status: 200 })
    const { body } = await call(tenant, 'GET', `/api/v1/wallets/${tenant.b}`)
    expect(body.data.balance).toBe('2.00')
  }
})

test('a key does nothing in a workspace of another place', async () => {
  const [own, other] = tenants as [Tenant, Tenant]
  const { status, body } = await call(own, 'GET', `/api/v1/wallets/${other.a}`)
  expect([status, body.code]).toEqual([404, 'W001'])
})

test('what changes a key is in force in both places', async () => {
  for (const place of [0, 1]) {
    const tenant = await newTenant(place)
    await system.admin.apiKeys.disable.mutate({ apiKey: tenant.apiKey })
    expect((await pay(tenant)).body.code).toBe('GA2021')
    await system.admin.apiKeys.enable.mutate({ apiKey: tenant.apiKey })
    expect((await pay(tenant)).status).toBe(200)
    await system.admin.workspaces.delete.mutate({ workspaceId: tenant.workspaceId, force: true })
    expect((await pay(tenant)).body.code).toBe('GA2032')
  }
})

test('a key that no place has does not exist', async () => {
  const [tenant] = tenants as [Tenant]
  const { body } = await pay({ ...tenant, apiKey: 'ak_01m7x9yvs9fedtk1y22q471ss8' })
  expect(body.code).toBe('GA2011')
})

const newestFirst = <Item>(items: readonly Item[], keyOf: (item: Item) => string | number) =>
  expect(items.map(keyOf)).toEqual(items.map(keyOf).sort().toReversed())

describe('lists of operators have what is in all places', () => {
  test('workspaces, newest first', async () => {
    const found = await allOf(async after => {
      const { workspaces, next } = await system.admin.workspaces.list.query({ limit: 2, after, deleted: true })
      return { items: workspaces, next }
    })
    newestFirst(found, ({ workspaceId }) => workspaceId)
    const ids = found.map(({ workspaceId }) => workspaceId)
    expect(ids).toEqual([...new Set(ids)])
    expect(ids).toEqual(expect.arrayContaining(tenants.map(({ workspaceId }) => workspaceId)))
  })

  test('wallets, newest first', async () => {
    const found = await allOf(async after => {
      const { wallets, next } = await system.admin.wallets.search.query({ namePrefix: 'B', limit: 3, after })
      return { items: wallets, next }
    })
    newestFirst(found, ({ walletId }) => walletId)
    expect(found.map(({ walletId }) => walletId)).toEqual(expect.arrayContaining(tenants.map(({ b }) => b)))
  })

  test('transfers and deposits, newest first', async () => {
    const transfers = await allOf(async after => {
      const page = await system.admin.transfers.search.query({ limit: 3, after })
      return { items: page.transfers, next: page.next }
    })
    newestFirst(transfers, ({ createdAt }) => createdAt.getTime())
    expect(new Set(transfers.map(({ transferId }) => transferId)).size).toBe(transfers.length)
    const deposits = await system.admin.fundings.list.query({ type: 'DEPOSIT', limit: 500 })
    const bySearch = transfers.filter(({ type }) => type === 'DEPOSIT')
    expect(deposits.transfers).toEqual(bySearch)
    for (const { a } of tenants) expect(bySearch.map(({ targetWalletId }) => targetWalletId)).toContain(a)
  })

  test('a transfer is found by its ID alone, a wallet and a key in a search', async () => {
    for (const { workspaceId, a, b, apiKey } of tenants) {
      const ofWallet = await system.admin.transfers.search.query({ walletId: b, limit: 10 })
      expect(ofWallet.transfers.length).toBeGreaterThan(0)
      const byKey = await system.admin.transfers.search.query({ actor: `key:${apiKey}`, limit: 10 })
      expect(byKey.transfers).toEqual(ofWallet.transfers)
      const { transferId } = ofWallet.transfers[0]!
      const traced = await system.admin.transfers.trace.query({ name: transferId })
      expect(traced).toMatchObject({ transfer: { workspaceId }, source: { walletId: a, isGenuine: true } })
      const { verdict } = await system.admin.receipts.check.query({ receipt: traced.receipt! })
      expect(verdict).toBe('CONFIRMED')
      const { found } = await system.admin.search.find.query({ text: transferId })
      expect(found).toMatchObject([{ kind: 'transfer', workspaceId }])
    }
    const { found, searched } = await system.admin.search.find.query({ text: 'owner' })
    expect(found.map(({ workspaceId }) => workspaceId)).toEqual(
      expect.arrayContaining(tenants.map(({ workspaceId }) => workspaceId)),
    )
    expect(searched.every(({ isComplete }) => isComplete)).toBe(true)
  })

  test('a transferId that two places have needs the workspace, also if one of them was asked for before', async () => {
    const transferId = mintId('transfer')
    const { trace } = system.admin.transfers
    const [first, other] = tenants as [Tenant, Tenant]
    for (const { workspaceId, a: sourceWalletId, b: targetWalletId } of [first, other]) {
      const order = { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' }
      await service.transfers.create.mutate({ workspaceId, caller: { requestId: 'test' }, transferId, order })
      const own = { transfer: { workspaceId, transferId } }
      expect(await trace.query({ name: transferId, workspaceId })).toMatchObject(own)
      if (workspaceId === first.workspaceId) expect(await trace.query({ name: transferId })).toMatchObject(own)
    }
    await expect(trace.query({ name: transferId })).rejects.toMatchObject({
      data: { appError: { code: 'S012', details: { field: 'workspaceId', reason: 'REQUIRED' } } },
    })
  })

  test('the audit, newest first, and in each place in its order', async () => {
    const found = await allOf(async before => {
      const { entries, next } = await system.admin.audit.list.query({ limit: 7, before })
      return { items: entries, next }
    })
    newestFirst(found, ({ at }) => at.getTime())
    const created = found.filter(({ action }) => action === 'workspace.create').map(({ workspaceId }) => workspaceId)
    expect(created).toEqual(expect.arrayContaining(tenants.map(({ workspaceId }) => workspaceId)))
    const count = async (url: string) => Number((await query(url, 'select count(*) from audit'))[0]!.count)
    const counts = await Promise.all(urls().map(count))
    expect(found.length).toBe(counts[0]! + counts[1]!)
    const { workspaceId } = tenants[1]!
    const ofOne = await system.admin.audit.list.query({ workspaceId, limit: 500 })
    expect(ofOne.entries).toEqual(found.filter(entry => entry.workspaceId === workspaceId))
    await expect(system.admin.audit.list.query({ before: '7' })).rejects.toMatchObject({
      data: { appError: { details: { field: 'before' } } },
    })
  })

  test('activity, key-encryption keys and status count both', async () => {
    const { totals } = await system.admin.system.activity.query({})
    const [sum] = totals.filter(({ currency }) => currency === 'USD')
    const { transfers } = await system.admin.transfers.search.query({ type: 'TRANSFER', limit: 500 })
    expect(sum!.transfers).toBe(transfers.length)
    const { keks } = await readKekStatus(system.admin)
    expect(keks).toMatchObject([{ kek: 'k1', onRing: true }])
    expect(keks[0]!.secrets).toBeGreaterThanOrEqual(tenants.length)
    expect(await system.admin.system.status.query()).toMatchObject({ halted: [], credentials: { expiringKeys: [] } })
  })
})

test('webhooks of both places are delivered', async () => {
  const receiver = await startReceiver()
  const courier = await system.startCourier()
  try {
    for (const { workspaceId } of tenants) {
      const webhook = { workspaceId, caller: { requestId: 'test' }, url: receiver.url, bizId: 'hook', types: [] }
      receiver.secrets.push((await service.webhooks.create.mutate(webhook)).secret!)
    }
    const paid = tenants.map(() => randomUUID())
    await Promise.all(tenants.map((tenant, index) => pay(tenant, paid[index])))
    await until('all transfers are delivered', () => {
      const delivered = receiver.received.map(({ event }) => event.data.transfer?.bizId)
      return paid.every(bizId => delivered.includes(bizId))
    })
    expect(receiver.forged).toEqual([])
  } finally {
    await courier.stop()
    await receiver.stop()
  }
})

/** As the check of a backup does, with a core that has the second place alone. */
async function verifyAlone(checkpoint: string[]): Promise<void> {
  const environment = { DATABASE_URL: second.serviceUrl, DATABASE_URLS: undefined, DATABASE_PLACE: '1' }
  const core = await system.startCore(environment)
  const client = createCoreClient({ url: core.url, token: system.adminToken })
  const { workspaces, wallets, checkpoint: compared, ok } = await verifyLedger(client, { checkpoint })
  const [{ id, count }] = (await query(
    second.ownerUrl,
    'select min(id::text) as id, count(*)::int from workspace',
  )) as [{ id: Uuid<'workspace'>; count: number }]
  expect({ ok, workspaces }).toEqual({ ok: true, workspaces: count })
  expect(compared).toMatchObject({ fault: null, wallets })
  const moves = client.moves.find.query({ workspaceId: idFromUuid('workspace', id) })
  await expect(moves).rejects.toThrow('call a core that has all of them')
  await client.close()
  await core.stop()
}

describe('verification and checkpoints', () => {
  const takeCheckpoint = async (workspaceId?: string) => {
    const lines = []
    for await (const { line } of checkpointLines(system.admin, { workspaceId })) lines.push(line)
    return lines
  }

  test('a verification reads all places, and a checkpoint has all of them', async () => {
    const lines = await takeCheckpoint()
    expect(
      lines.map(line => JSON.parse(line)).map(({ place, lastOfPlace, last }) => [place, lastOfPlace, last]),
    ).toEqual([
      [0, true, false],
      [1, true, true],
    ])
    const { workspaces } = await system.admin.workspaces.list.query({ limit: 500, deleted: true })
    const report = await verifyLedger(system.admin, { checkpoint: lines })
    expect(report).toMatchObject({
      ok: true,
      violations: [],
      workspaces: workspaces.length,
      checkpoint: { fault: null },
    })
    expect(report.checkpoint!.wallets).toBe(report.wallets)
    for (const { workspaceId } of tenants) {
      const ofOne = await verifyLedger(system.admin, { workspaceId, checkpoint: await takeCheckpoint(workspaceId) })
      expect(ofOne).toMatchObject({ ok: true, workspaces: 1, checkpoint: { workspaceId, wallets: 3, fault: null } })
    }
    const { verifications } = await system.admin.ledger.verifications.query({ limit: 500 })
    expect(verifications.length).toBe(2 + tenants.length)
    await verifyAlone(lines)
    const incomplete = await verifyLedger(system.admin, { checkpoint: lines.slice(0, 1) })
    expect(incomplete.checkpoint!.fault).toContain('incomplete')
    const reordered = await verifyLedger(system.admin, { checkpoint: lines.toReversed() })
    expect(reordered.checkpoint!.fault).toContain('place 0 is missing before place 1')
  })

  test('what was changed in either place is found, and only a checkpoint reveals what was removed from its end', async () => {
    const lines = await takeCheckpoint()
    for (const [index, url] of urls().entries()) {
      const tenant = tenants.find(({ place }) => place === index)!
      const inWorkspace = `workspace_id = '${uuidFromId('workspace', tenant.workspaceId)}'`
      await execute(
        url,
        `set session_replication_role = replica; update wallet set balance = balance + 1 where ${inWorkspace} and name = 'A'`,
      )
      const report = await verifyLedger(system.admin)
      expect(report.ok).toBe(false)
      expect(report.brokenRules.map(({ rule }) => rule)).toEqual(
        expect.arrayContaining(['wallet-balance', 'wallet-mac']),
      )
      for (const { ids } of report.violations) expect(ids.workspaceId).toBe(tenant.workspaceId)
      await execute(
        url,
        `set session_replication_role = replica; update wallet set balance = balance - 1 where ${inWorkspace} and name = 'A'`,
      )
    }
    expect(await verifyLedger(system.admin, { checkpoint: lines })).toMatchObject({ ok: true })
  })
})

test('a backup says which places it contains, and the status shows the place whose backup is oldest', async () => {
  const { system: calls } = system.admin
  const record = (name: string, places?: number[]) => calls.recordBackup.mutate({ name, bytes: 1, places })
  const lastBackup = async () => (await calls.status.query()).lastBackup?.name
  for (const places of [undefined, [2]])
    await expect(record('of-unknown.tar', places)).rejects.toMatchObject({
      data: { appError: { code: 'S012', details: { field: 'places' } } },
    })
  await record('of-1.tar', [1])
  expect(await lastBackup()).toBeUndefined()
  await record('of-0.tar', [0])
  expect(await lastBackup()).toBe('of-1.tar')
  await record('of-both.tar', [0, 1])
  expect(await lastBackup()).toBe('of-both.tar')
  const text = await (await fetch(`${system.coreUrl}/metrics`)).text()
  const times = Array.from(text.matchAll(/^core_last_backup_timestamp_seconds\{.*\} (.*)$/gm), ([, time]) =>
    Number(time),
  )
  expect(times).toHaveLength(2)
  for (const time of times) expect(time).toBeGreaterThan(0)
})

test('a secret of either place is encrypted under a new key-encryption key', async () => {
  const { keks } = await readKekStatus(system.admin)
  let after: string | undefined
  const steps = []
  do {
    const step = await system.admin.keks.rewrap.mutate({ to: 'k1', after, limit: 1 })
    steps.push(step)
    after = step.next ?? undefined
  } while (after !== undefined)
  // Nothing was under another key. The steps went through both kinds of secrets of both places.
  expect(steps.length).toBe(4)
  expect((await readKekStatus(system.admin)).keks).toEqual(keks)
})

test('metrics have the name of their place', async () => {
  const text = await (await fetch(`${system.coreUrl}/metrics`)).text()
  const names = urls().map(url => `${new URL(url).host}${new URL(url).pathname}`)
  for (const name of names) expect(text).toContain(`core_postings{place="${name}",state="waiting"} 0`)
  expect(text.match(/^# TYPE core_postings gauge$/gm)).toHaveLength(1)
  expect(text.match(/^process_cpu_seconds_total\{/gm)).toHaveLength(1)
  const openMetrics = await fetch(`${system.coreUrl}/metrics`, { headers: { accept: 'application/openmetrics-text' } })
  expect(await openMetrics.text()).toContain(`core_events_total{place="${names[1]}",type="transfer.completed"}`)
})

test('a copy of a workspace in another place is not used there, and a verification names it', async () => {
  const tenant = await newTenant(0)
  const isWorkspace = `id = '${uuidFromId('workspace', tenant.workspaceId)}'`
  const [row] = await query(urls()[0]!, `select to_jsonb(workspace)::text as text from workspace where ${isWorkspace}`)
  await execute(
    urls()[1]!,
    `set session_replication_role = replica;
     insert into workspace select * from jsonb_populate_record(null::workspace, '${String(row!.text).replaceAll("'", "''")}')`,
  )
  const other = await system.startCore()
  const client = createCoreClient({ url: other.url, token: system.adminToken })
  const { workspaceId } = tenant
  expect(await client.workspaces.get.query({ workspaceId })).toMatchObject({ workspaceId })
  const { ok, violations } = await verifyLedger(client)
  expect(ok).toBe(false)
  expect(violations).toContainEqual(
    expect.objectContaining({ rule: 'workspace-place', ids: expect.objectContaining({ workspaceId }) }),
  )
  await client.close()
  await other.stop()
  await execute(urls()[1]!, `set session_replication_role = replica; delete from workspace where ${isWorkspace}`)
})

test('a workspace gets the emptiest place, or the one that is asked for', async () => {
  const sizes = urls().map(async url =>
    Number(
      (await query(url, "select pg_total_relation_size('transfer') + pg_total_relation_size('wallet') as size"))[0]!
        .size,
    ),
  )
  const [home, other] = (await Promise.all(sizes)) as [number, number]
  const { workspaceId } = await system.admin.workspaces.create.mutate({ name: 'Anywhere' })
  if (home !== other) expect(await placeOf(workspaceId)).toBe(home < other ? 0 : 1)
  await expect(system.admin.workspaces.create.mutate({ name: 'Nowhere', place: 2 })).rejects.toMatchObject({
    data: { appError: { details: { field: 'place' } } },
  })
})

test('the same place twice, and a pooler, are refused', async () => {
  const sameTwice = system.startCore({ DATABASE_URLS: system.database.serviceUrl })
  await expect(sameTwice).rejects.toThrow('is a place already')
  const pooled = system.startCore({ DATABASE_POOLER_URL: 'postgres://x:y@127.0.0.1:1/wallet' })
  await expect(pooled).rejects.toThrow('DATABASE_POOLER_URL: it leads to one place')
})

test('while a place does not answer, the workspaces of the others are served, and a key is not said to be unknown', async () => {
  const proxy = await startFaultProxy(Number(new URL(second.serviceUrl).port))
  const core = await system.startCore({ DATABASE_URLS: proxy.through(second.serviceUrl) })
  const gateway = await system.startGateway({ CORE_URL: core.url })
  const at = (tenant: Tenant) => ({ ...tenant, baseUrl: gateway.url })
  const [inFirst, inSecond] = tenants as [Tenant, Tenant]
  for (const tenant of [inFirst, inSecond])
    await until('its place is served', async () => (await pay(at(tenant))).status === 200)
  const fresh = await newTenant(0)
  proxy.cut()
  await until('the key of the other place is not used any more', async () => (await pay(at(inSecond))).status === 503)
  expect((await pay(at(inFirst))).status).toBe(200)
  expect((await pay(at(fresh))).status).toBe(200)
  const unknown = await pay(at({ ...fresh, apiKey: tenants[3]!.apiKey, apiSecret: tenants[3]!.apiSecret }))
  expect(unknown.body.code).toBe('S002')
  await proxy.restore()
  await until('the other place is served again', async () => (await pay(at(inSecond))).status === 200)
})
