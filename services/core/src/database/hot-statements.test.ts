import { randomUUID } from 'node:crypto'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { blocksOf, explainStatements, type PlanNode, readPlans } from '../../../../test/setup/plans.ts'
import { until } from '../../../../test/setup/until.ts'
import { findLastBackup } from '../integrity/records.ts'
import { KnownWorkspaces } from '../ledger/posting/known-workspaces.ts'
import { findOperatorByToken } from '../operators/access.ts'
import { findPlaced, findPlacedTransfers, type PlacedKind } from '../places/queries.ts'
import { statements } from './statement.ts'

/**
 * What a statement reads must not depend on the statistics of PostgreSQL: a plan that was made while the tables were empty is
 * used until they are analyzed, which can take minutes or, if autovacuum is off, for ever.
 *
 * A core makes its plans on empty tables, or when they have some rows. Then they are filled, without any ANALYZE, and the same sessions
 * run the same statements again. The module auto_explain of PostgreSQL sends the plan of each statement, also of those in functions and triggers, with
 * the number of rows and blocks that it has read.
 */

type Read = { rows: number; blocks: number; plan: string }

/** The worst execution of each statement, by its text. */
let reads = new Map<string, Read>()

readPlans(record)

function record({ 'Query Text': text, Plan }: { 'Query Text': string; Plan: PlanNode }): void {
  const number = (node: PlanNode, field: string) => Number(node[field] ?? 0)
  const rowsOf = (node: PlanNode): number => {
    const relation = node['Relation Name']
    const isScan =
      / Scan$/.test(String(node['Node Type'])) && relation !== undefined && !isReadForEachSession(String(relation))
    const read =
      number(node, 'Actual Rows') +
      number(node, 'Rows Removed by Filter') +
      number(node, 'Rows Removed by Index Recheck')
    const own = isScan ? read * number(node, 'Actual Loops') : 0
    return own + (node.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), 0)
  }
  const rows = rowsOf(Plan)
  const blocks = blocksOf(Plan)
  const before = reads.get(text)
  reads.set(text, {
    rows: Math.max(rows, before?.rows ?? 0),
    blocks: Math.max(blocks, before?.blocks ?? 0),
    plan: before && before.rows > rows ? before.plan : JSON.stringify(Plan, null, 1),
  })
}

const caller = { requestId: 'test' }
/** `pg_stat_activity` looks these up for each session of the server, which all tests share. */
const isReadForEachSession = (relation: string) => relation === 'pg_database' || relation === 'pg_authid'
/** How many rows are added to each table. */
const filled = 2_000
/** How many rows a statement may read. A page has up to 20. */
const mostRows = 100

class Ledger {
  readonly #core: TestCore
  workspaceId = ''
  main = ''
  savings = ''
  apiKey = ''
  operatorToken = ''
  /** A workspace without limits, whose transfers core posts from memory. */
  #unlimited = { workspaceId: '', order: { sourceWalletId: '', targetWalletId: '', amount: '0.01', currency: 'USD' } }
  #names = 0
  #filled = 0

  constructor(core: TestCore) {
    this.#core = core
  }

  async open(): Promise<void> {
    const admin = this.#core.as('admin')
    this.workspaceId = (await admin.workspaces.create({ name: 'Test' })).workspaceId
    const { workspaceId } = this
    const newWallet = async (of = workspaceId) =>
      (await admin.wallets.create({ workspaceId: of, currency: 'USD', name: 'Wallet' })).walletId
    this.main = await newWallet()
    this.savings = await newWallet()
    await admin.members.add({ workspaceId, userId: 'ada' })
    const scopes = ['wallet:read', 'transfer:create', 'hold:create'] as const
    this.apiKey = (await admin.apiKeys.create({ workspaceId, ownerUserId: 'ada', scopes: [...scopes] })).apiKey
    this.operatorToken = (await admin.operators.create({ name: 'ada', role: 'viewer' })).token
    const unlimited = (await admin.workspaces.create({ name: 'Test' })).workspaceId
    const [sourceWalletId, targetWalletId] = [await newWallet(unlimited), await newWallet(unlimited)]
    await admin.wallets.deposit({
      workspaceId: unlimited,
      walletId: sourceWalletId,
      amount: '1000.00',
      bizId: randomUUID(),
    })
    this.#unlimited = {
      workspaceId: unlimited,
      order: { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' },
    }
    await admin.limits.set({ workspaceId, subject: { apiKey: this.apiKey }, currency: 'USD', perDay: '1000000' })
  }

  /** Everything that clients, couriers, gateways and the service's own timers do. */
  async useAll(): Promise<void> {
    await this.#post()
    await this.#hold()
    await this.#read()
    await this.#deliver()
    await this.#authenticate()
    await this.#core.core.metrics.registry.metrics()
  }

  async #post(): Promise<void> {
    const { workspaceId, main, savings } = this
    const [service, funding, gateway] = [this.#core.as('service'), this.#core.as('funding'), this.#core.as('gateway')]
    const bizId = this.#name()
    const order = { sourceWalletId: main, targetWalletId: savings, amount: '1.00', currency: 'USD' }
    const { walletId } = await service.wallets.create({ workspaceId, currency: 'USD', name: 'New', bizId, caller })
    await service.wallets.changeStatus({ workspaceId, walletId, status: 'FROZEN', caller })
    await funding.wallets.deposit({ workspaceId, walletId: main, amount: '1000.00', bizId, caller })
    await funding.wallets.deposit({ workspaceId, walletId: main, amount: '1000.00', bizId, caller })
    await funding.wallets.withdraw({ workspaceId, walletId: main, amount: '1.00', caller, bizId: randomUUID() })
    await service.transfers.create({ workspaceId, caller, order })
    const transferId = mintId('transfer')
    for (const resend of [false, true])
      await service.transfers.create({ workspaceId, caller, resend, transferId, order })
    // The second is a replay, and the third a conflict.
    for (const amount of ['1.00', '1.00', '2.00'])
      await service.transfers
        .create({ workspaceId, caller, order: { ...order, bizId: `${bizId}x`, amount } })
        .catch(isDomainError)
    await gateway.transfers.create({ workspaceId, caller: { ...caller, apiKey: this.apiKey }, order })
    await service.transfers.reverse({
      workspaceId,
      caller,
      reversal: { reversesTransferId: transferId, amount: '0.50', currency: 'USD', bizId: this.#name() },
    })
    const fromMemory = () => service.transfers.create({ ...this.#unlimited, caller })
    await fromMemory()
    await fromMemory()
    await times(10, fromMemory)
    const items = [this.#name(), this.#name()].map(name => ({ ...order, bizId: name }))
    for (const _ of ['first', 'replay'])
      await service.transfers.batch({ workspaceId, caller, batch: { transfers: items } })
  }

  async #hold(): Promise<void> {
    const { workspaceId, main, savings } = this
    const service = this.#core.as('service')
    const create = (expiresInSeconds: number) =>
      service.holds.create({
        workspaceId,
        caller,
        hold: { walletId: main, amount: '2.00', currency: 'USD', bizId: this.#name(), expiresInSeconds },
      })
    const [drawn, released, expiring] = [await create(3600), await create(3600), await create(1)]
    const order = { sourceWalletId: main, targetWalletId: savings, amount: '1.00', currency: 'USD' }
    await service.transfers.create({
      workspaceId,
      caller,
      order: { ...order, holdId: drawn.holdId, holdRemainder: 'KEEP' },
    })
    await service.transfers.create({
      workspaceId,
      caller,
      order: { ...order, holdId: drawn.bizId, holdRemainder: 'KEEP' },
    })
    await service.holds.release({ workspaceId, caller, holdId: released.holdId })
    const statusOf = async (bizId: string) => (await service.holds.get({ workspaceId, caller, bizId })).status
    await until('the hold expires', async () => (await statusOf(expiring.bizId)) === 'EXPIRED')
    await service.wallets.balance({ workspaceId, caller, walletId: main })
    await service.transfers.create({ workspaceId, caller, order })
    // Due holds are looked for from the expiry of a hold on, also if it was released, as long as another one is open: core may have
    // written the expiry of the hold above before the balance was read.
    await create(3600)
    await service.holds.release({ workspaceId, caller, holdId: (await create(1)).holdId })
    const { text } = statements.get('find-wallets-and-few-due-holds')!
    await until('due holds are looked for', async () => {
      await service.wallets.balance({ workspaceId, caller, walletId: main })
      return reads.has(text)
    })
  }

  async #read(): Promise<void> {
    const { workspaceId, main } = this
    const service = this.#core.as('service')
    const call = { workspaceId, caller }
    const ago = (seconds: number) => new Date(Date.now() - seconds * 1000)
    await service.wallets.get({ ...call, walletId: main })
    await service.wallets.balanceAt({ ...call, walletId: main, at: ago(60) })
    await service.wallets.statement({ ...call, walletId: main, from: ago(90), to: ago(60) })
    await service.wallets.flowsAfter({ ...call, walletId: main, after: 0, upTo: 10 })
    const page = { ...call, page: 0, size: 20, sort: [] }
    const { content } = await service.transfers.list(page)
    await service.transfers.list({ ...page, walletId: main })
    await service.wallets.list(page)
    await service.wallets.flows({ ...page, walletId: main })
    await service.holds.list(page)
    await service.holds.list({ ...page, walletId: main })
    for (const bizId of [content[0]!.transferId, content[0]!.bizId]) await service.transfers.get({ ...call, bizId })
    await service.receipts.get({ ...call, bizId: content[0]!.transferId })
    const { last } = await service.events.read({ ...call, after: 'head', size: 20, types: [] })
    await service.events.read({ ...call, after: Math.max(0, last - 20), size: 20, types: [] })
  }

  async #deliver(): Promise<void> {
    const { workspaceId, main, savings } = this
    const [service, courier] = [this.#core.as('service'), this.#core.as('courier')]
    const bizId = this.#name()
    const { webhookId } = await service.webhooks.create({
      workspaceId,
      caller,
      url: 'https://receiver.example/',
      bizId,
    })
    const order = { sourceWalletId: main, targetWalletId: savings, amount: '1.00', currency: 'USD' }
    await service.transfers.create({ workspaceId, caller, order })
    const { webhooks } = await courier.courier.lease({ size: 4, held: [] })
    const [leased] = webhooks
    expect(leased).toMatchObject({ webhookId })
    const { generation, deliveries } = leased!
    await courier.courier.lease({ size: 0, held: [{ webhookId, generation }] })
    const delivered = deliveries.at(-1)!.position
    await courier.courier.report({ webhookId, generation, delivered, lastStatus: 200, lastError: null, failure: null })
    await service.webhooks.list({ workspaceId, caller, page: 0, size: 10, sort: [] })
    await service.webhooks.delete({ workspaceId, caller, webhookId })
  }

  async #authenticate(): Promise<void> {
    await this.#core.as('admin').ledger.halted()
    const gateway = this.#core.as('gateway')
    await findOperatorByToken(this.#core.core, this.operatorToken)
    await gateway.access.lookup({ apiKeys: [this.apiKey] })
    await gateway.access.changes({ since: [] })
    await gateway.access.markUsed({ uses: [{ apiKey: this.apiKey, usedAt: new Date() }] })
    const at = new Date()
    const call = { at, method: 'GET', route: '/', code: 'GA2012', step: 'signature', detail: '', apiKey: this.apiKey }
    const refused = { ...call, address: '127.0.0.1', requestId: 'r', isSigned: false }
    await gateway.refusals.report({ refusals: [refused], dropped: 0 })
    const instance = { instanceId: randomUUID(), host: 'h', version: '1', uptimeMs: 1, fault: null, waiting: 0 }
    await gateway.instances.report({ ...instance, unhealthyCores: 0 })
    await this.#core.core.instances.write()
    await gateway.instances.leave(instance)
    await this.#core.core.instances.write()
    const viewer = this.#core.as('viewer')
    await viewer.ledger.verifications({ limit: 1 })
    await viewer.ledger.checkpoints({ limit: 1 })
    await findLastBackup(this.#core.core)
    await this.#findPlaces()
  }

  /** What a core with several places asks each of them, and what it asks before the first posting to a workspace. */
  async #findPlaces(): Promise<void> {
    const { reads } = this.#core.core
    const { transfers } = await this.#core.as('admin').transfers.search({ workspaceId: this.workspaceId, limit: 1 })
    const ids = { workspace: this.workspaceId, apiKey: this.apiKey, wallet: this.main, webhook: mintId('webhook') }
    for (const [kind, id] of Object.entries(ids))
      await findPlaced[kind as PlacedKind](this.#core.core, [uuidFromId(kind as PlacedKind, id)!])
    await findPlacedTransfers(reads, [uuidFromId('transfer', transfers[0]!.transferId)!], [])
    await new KnownWorkspaces(reads).require(uuidFromId('workspace', this.workspaceId)!)
  }

  /** Adds rows to all tables: those of the ledger through core, and of the others copies, which have no valid MACs. */
  async fill(owner: pg.Client, count: number): Promise<void> {
    const { workspaceId, main, savings } = this
    const service = this.#core.as('service')
    const order = { sourceWalletId: main, targetWalletId: savings, amount: '0.01', currency: 'USD' }
    const hold = { walletId: main, amount: '0.01', currency: 'USD', expiresInSeconds: 3600 }
    const first = this.#filled + 1
    this.#filled += count
    const last = this.#filled
    await times(count, () => service.transfers.create({ workspaceId, caller, order }))
    await times(count, () => service.transfers.create({ ...this.#unlimited, caller }))
    const holds = await times(count, () =>
      service.holds.create({ workspaceId, caller, hold: { ...hold, bizId: this.#name() } }),
    )
    // Half of them remain open.
    await Promise.all(
      holds.slice(count / 2).map(({ holdId }) => service.holds.release({ workspaceId, caller, holdId })),
    )
    const ofWorkspace = `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
    /** Copies a row. The columns are SQL expressions of the copy's number `n`. */
    const copy = (table: string, where: string, columns: Record<string, string>) =>
      owner.query(`
        insert into ${table} overriding system value
        select (jsonb_populate_record(r, jsonb_build_object(${Object.entries(columns)
          .map(([column, value]) => `'${column}', ${value}`)
          .join(', ')}))).*
        from (select t from ${table} t where ${where} limit 1) s (r), generate_series(${first}, ${last}) n`)
    const newId = 'gen_random_uuid()'
    await owner.query('set session_replication_role = replica')
    await copy('wallet', `${ofWorkspace} and number = 1`, { id: newId, number: 'n + 100000', biz_id: `'copy' || n` })
    await copy('workspace', `id = '${uuidFromId('workspace', workspaceId)}'`, { id: newId })
    await copy('ledger', ofWorkspace, { workspace_id: newId })
    await copy('spending_limit', ofWorkspace, { subject: `'wallet:' || ${newId}`, per_day: 'null' })
    await copy('member', ofWorkspace, { user_id: `'copy' || n` })
    await copy('api_key', ofWorkspace, { id: newId, access_revision: '0' })
    await copy('operator', 'true', { name: `'copy' || n`, token_hash: String.raw`'\x' || repeat(md5(n::text), 2)` })
    await copy('webhook', 'true', { id: newId, biz_id_mac: String.raw`'\x' || repeat(md5(n::text), 2)` })
    await copy('instance', 'true', { id: newId, name: `'copy' || n` })
    await copy('audit_head', ofWorkspace, { workspace_id: newId })
    await copy('audit', ofWorkspace, { id: 'n + 100000', workspace_id: newId })
    // As many of single workspaces as viewers like, which are newer than those of all workspaces.
    for (const [at, action] of ['ledger.verify', 'ledger.verify-incremental', 'ledger.checkpoint'].entries())
      await copy('audit', ofWorkspace, {
        id: `n + ${200_000 + at * 100_000}`,
        workspace_id: newId,
        action: `'${action}'`,
      })
    await owner.query(`
      insert into access_change select n + 100000 from generate_series(${first}, ${last}) n;
      update access_revision set revision = 100000 + ${last};
      reset session_replication_role`)
  }

  #name(): string {
    return `n${++this.#names}`
  }
}

function times<Result>(count: number, action: () => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, action))
}

/** Counts up to 10,000 open holds, for the metrics. */
const isBounded = (name?: string) => name === 'count-open-holds'

/**
 * Statements of administration, moves and repair, the look for nodes of Citus, the end of sessions that do not start, those that the ORM
 * runs, which are measured by text, those for forged webhooks, which webhooks/forged-webhooks.test.ts measures, and the one for many due
 * holds, which differs from the one for a few in its limit only.
 */
const unmeasured = [
  'change-ledger-status',
  'create-wallet',
  'end-starting-session',
  'end-webhook-leases',
  'find-actions',
  'find-all-holds-of-wallet',
  'find-arrivals',
  'find-due-among-webhooks',
  'find-lockable-ledgers',
  'find-moves',
  'find-node',
  'find-role',
  'find-wallet-and-due-holds',
  'insert-verified-ledgers',
  'keep-chain-fingerprint',
  'lock-due-webhooks',
  'lock-rows-that-change-without-audit',
  'lock-verified-ledgers',
  'open-ledger',
  'read-part-of-workspace',
  'read-webhook-rows',
  'remove-checkpoint-uploads',
  'remove-old-refusals',
  'remove-verified-ledgers',
  'repair-ledger',
  'repair-wallet',
  'set-limit',
  'size-of-place',
  'upload-checkpoint-part',
]

/** Runs when a connection is opened: before the measurement or during it. */
const ofConnections = 'read-chain-fingerprint'

/** Core opens others, which make plans of their own. */
const endSessions = (owner: pg.Client) =>
  owner.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and usename <> current_user`)

function isDomainError(error: unknown): void {
  expect(error).toHaveProperty('cause.code')
}

describe.each([
  ['never analyzed', 0],
  ['analyzed while they were empty', 0],
  ['never analyzed, with plans for a hundred rows', 100],
  ['never analyzed, with plans for a thousand rows', 1_000],
])('tables that were %s', (state, rowsAtFirst) => {
  let core: TestCore
  let owner: pg.Client
  let ledger: Ledger
  beforeAll(async () => {
    core = await openTestCore({
      // A plan for all values is made at once, instead of after five executions.
      options: '-c plan_cache_mode=force_generic_plan',
      async prepare(database) {
        owner = await connect(database.ownerUrl)
        await explainStatements(owner, database, { nested: true })
        const { rows } = await owner.query(
          `select oid::regclass as table from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
        )
        for (const { table } of rows) await owner.query(`alter table ${table} set (autovacuum_enabled = off)`)
        if (state === 'analyzed while they were empty') await owner.query('analyze')
      },
    })
    ledger = new Ledger(core)
    await ledger.open()
    await ledger.useAll()
    if (rowsAtFirst === 0) return
    await ledger.fill(owner, rowsAtFirst)
    await endSessions(owner)
    await until('core has new sessions, and used all', () =>
      ledger.useAll().then(
        () => true,
        () => false,
      ),
    )
  })
  afterAll(async () => {
    await owner.end()
    await core.close()
  })

  test('statements read few rows after the tables were filled', async () => {
    await ledger.fill(owner, filled)
    reads = new Map()
    await ledger.useAll()
    const nameOf = new Map(Array.from(statements.values(), ({ name, text }) => [text, name]))
    const costly = [...reads].filter(([text, { rows }]) => rows > mostRows && !isBounded(nameOf.get(text)))
    expect(costly.map(([text, { rows, plan }]) => `${nameOf.get(text) ?? text} reads ${rows} rows: ${plan}`)).toEqual(
      [],
    )
    const unused = [...statements.values()].filter(({ text }) => !reads.has(text)).map(({ name }) => name)
    expect(unused.filter(name => name !== ofConnections).toSorted()).toEqual(unmeasured)
  })
})
