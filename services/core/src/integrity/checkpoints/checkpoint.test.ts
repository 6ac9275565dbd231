import { createHmac, createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import {
  type CheckpointPart,
  checkpointPartEntries,
  countViolations,
  listedViolations,
  uuidFromId,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { type CoreClient, checkpointLines, createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { retryUnavailable } from '../../../../../cli/processes/retry.ts'
import { execute, query, schema } from '../../../../../test/setup/database.ts'
import { signRows } from '../../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'
import { createWallet } from '../../../../../test/setup/workspaces.ts'
import { createCheckpoint } from './checkpoint.ts'

// Each test damages its own workspace, as the owner of the tables, and verifies only that one.
const chainKey = randomBytes(32)
let system: System
let admin: CoreClient
let service: CoreClient

beforeAll(async () => {
  system = await startSystem({ gateways: 0, coreEnvironment: { LEDGER_CHAIN_KEY: chainKey.toString('base64') } })
  admin = system.admin
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
})
afterAll(async () => {
  await service.close()
  await system.stop()
})

const caller = { requestId: 'test' }

test('an export has no connection any more when its last part is to be read, whenever that is', async () => {
  const key = createSecretKey(chainKey)
  const scope = {
    databaseUrl: system.database.serviceUrl,
    chainKey: key,
    workspaceId: null,
    checkpointId: randomUUID(),
  }
  const sessions = `select from pg_stat_activity where datname = current_database() and application_name = 'core checkpoint'`
  for await (const part of createCheckpoint({ ...scope, place: 0, isLastPlace: true })) {
    expect(part.last).toBe(true)
    await until('its session has ended', async () => (await query(system.database.ownerUrl, sessions)).length === 0)
  }
})

type Books = { workspaceId: string; a: string; b: string }

/** Two wallets; the first paid the second twice. */
async function newBooks(): Promise<Books> {
  const { workspaceId } = await retryUnavailable(() => admin.workspaces.create.mutate({ name: 'Test' }))
  const [a, b] = [await createWallet({ admin, workspaceId }), await createWallet({ admin, workspaceId })] as const
  await admin.wallets.deposit.mutate({ workspaceId, walletId: a, amount: '100.00', caller, bizId: randomUUID() })
  await pay({ workspaceId, a, b }, '1.00')
  for (const table of ['wallet', 'ledger'])
    await damage(`
      create schema if not exists kept; create table if not exists kept.${table} as table ${table} with no data;
      insert into kept.${table} select * from ${table} where ${inWorkspace({ workspaceId })}`)
  await pay({ workspaceId, a, b }, '2.00')
  return { workspaceId, a, b }
}

async function pay({ workspaceId, a, b }: Books, amount: string): Promise<void> {
  const order = { sourceWalletId: a, targetWalletId: b, amount, currency: 'USD' }
  await retryUnavailable(() => service.transfers.create.mutate({ workspaceId, caller, order }))
}

async function checkpoint({ workspaceId }: { workspaceId?: string } = {}): Promise<string[]> {
  const lines: string[] = []
  for await (const { line } of checkpointLines(admin, { workspaceId })) lines.push(line)
  return lines
}

function check(lines: Iterable<string>, { workspaceId }: { workspaceId?: string } = {}): Promise<VerifyReport> {
  return verifyLedger(admin, { workspaceId, checkpoint: lines })
}

async function sign(books: Books): Promise<void> {
  for (const table of ['wallet', 'ledger'] as const)
    await signRows(system.database.ownerUrl, chainKey.toString('base64'), table, inWorkspace(books))
}

const damage = (sql: string) => execute(system.database.ownerUrl, `set session_replication_role = replica; ${sql}`)

const isWorkspace = ({ workspaceId }: Pick<Books, 'workspaceId'>) => `'${uuidFromId('workspace', workspaceId)}'::uuid`
const inWorkspace = ({ workspaceId }: Pick<Books, 'workspaceId'>) =>
  `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
const isWallet = (walletId: string) => `'${uuidFromId('wallet', walletId)}'`

const manyWallets = 2 * checkpointPartEntries

let booksWithManyWallets: Promise<Books> | undefined

/** A workspace with so many wallets that its checkpoint has three parts. Nothing may change it. */
function findBooksWithManyWallets(): Promise<Books> {
  booksWithManyWallets ??= newBooks().then(async books => {
    for (let at = 0; at < manyWallets; at += 50)
      await Promise.all(Array.from({ length: 50 }, () => createWallet({ admin, ...books })))
    return books
  })
  return booksWithManyWallets
}

/** Removes the last transfer of a workspace and resets all its rows, so that the rest is consistent. */
const truncation = (books: Books) => `
  delete from transfer where ${inWorkspace(books)} and type = 'TRANSFER' and order_count = 2;
  delete from wallet where ${inWorkspace(books)};
  insert into wallet select * from kept.wallet where ${inWorkspace(books)};
  delete from ledger where ${inWorkspace(books)};
  insert into ledger select * from kept.ledger where ${inWorkspace(books)}`

/** Each violation as "rule walletId". */
const rulesOf = ({ violations }: VerifyReport) => violations.map(({ rule, ids }) => `${rule} ${ids.walletId}`)

test('a checkpoint still matches after further postings', async () => {
  const books = await newBooks()
  const lines = await checkpoint()
  const { checkpointId, takenAt, workspaceId } = JSON.parse(lines[0]!) as CheckpointPart
  expect(workspaceId).toBe(null)
  expect(Math.abs(Date.parse(takenAt) - Date.now())).toBeLessThan(60_000)
  const atOnce = await check(lines)
  const { wallets } = atOnce
  expect(atOnce).toMatchObject({
    ok: true,
    violations: [],
    brokenRules: [],
    checkpoint: { checkpointId, takenAt, wallets, fault: null },
  })

  await pay(books, '3.00')
  await createWallet({ admin, ...books })
  expect(await check(lines)).toMatchObject({ ok: true, wallets: wallets + 1, checkpoint: { wallets, fault: null } })
})

test('a checkpoint of one workspace lists its wallets with their last sequence', async () => {
  const books = await newBooks()
  const [line, ...rest] = await checkpoint(books)
  expect(rest).toEqual([])
  const part = JSON.parse(line!) as CheckpointPart
  expect(part).toMatchObject({ format: 1, workspaceId: books.workspaceId, part: 0, last: true })
  expect(part.chains).toHaveLength(3)
  expect(part.chains).toContainEqual({
    workspaceId: books.workspaceId,
    walletId: books.b,
    sequence: 2,
    head: expect.stringMatching(/^01[0-9a-f]{64}$/),
    // Created, and paid twice.
    revision: 3,
  })
  const { workspaceId } = books
  expect(part.rows).toContainEqual({ kind: 'workspace', workspaceId, id: '', revision: 1 })
  expect(part.rows).toContainEqual({ kind: 'ledger', workspaceId, id: '', revision: expect.any(Number) })
  // Two wallets, a deposit and two transfers. The last journal entry is the creation of the second wallet.
  expect(part.logs).toEqual([{ workspaceId, position: 5, head: expect.stringMatching(/^[0-9a-f]{64}$/) }])
  expect(part.audits).toEqual([{ workspaceId, position: 4, head: expect.stringMatching(/^[0-9a-f]{64}$/) }])
})

test('a checkpoint of many wallets has several parts, and can be read in chunks of any size', async () => {
  const books = await findBooksWithManyWallets()
  const lines = await checkpoint(books)
  const parts = lines.map(line => JSON.parse(line) as CheckpointPart)
  expect(parts.map(({ part, last, chains }) => [part, last, chains.length])).toEqual([
    [0, false, checkpointPartEntries],
    [1, false, checkpointPartEntries],
    [2, true, 3],
  ])
  const pieces = lines.join('').match(/.{1,1000}\n?/gs)!
  expect(await check(pieces, books)).toMatchObject({
    ok: true,
    checkpoint: { wallets: manyWallets + 3, fault: null },
  })
})

test('only a checkpoint reveals a history that was truncated together with its wallets', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  await damage(truncation(books))

  expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
  const report = await check(lines, books)
  expect(report).toMatchObject({ ok: false, checkpoint: { wallets: 3, fault: null } })
  const { workspaceId, a, b } = books
  expect(countViolations(report.brokenRules)).toBe(4)
  expect(report.violations).toEqual([
    {
      rule: 'checkpoint-sequence',
      message: 'the checkpoint names sequence 3, and it is at 2',
      ids: { workspaceId, walletId: a, sequence: 3 },
    },
    {
      rule: 'checkpoint-sequence',
      message: 'the checkpoint names sequence 2, and it is at 1',
      ids: { workspaceId, walletId: b, sequence: 2 },
    },
    {
      rule: 'checkpoint-revision',
      message: expect.stringMatching(/^the row of its ledger is at revision \d+, and at \d+ in the checkpoint$/),
      ids: { workspaceId },
    },
    {
      rule: 'checkpoint-journal',
      message: 'its event log is at position 4, and at 5 in the checkpoint',
      ids: { workspaceId },
    },
  ])
})

/** Rows that the service's role may insert, but cannot sign. */
const fillers = (books: Books, count: number) => `
  insert into member (workspace_id, user_id, created_at, revision, mac)
    select ${isWorkspace(books)}, 'filler-' || n, now(), 1, '' from generate_series(1, ${count}) n;
  insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version,
      created_at, updated_at, access_revision, revision, mac)
    select gen_random_uuid(), ${isWorkspace(books)}, 'filler', 'filler', 'ACTIVE', '{wallet:read}', '{}', 'x', 1, now(),
      now(), 0, 1, '' from generate_series(1, ${count}) n;
  insert into webhook (id, workspace_id, biz_id, biz_id_mac, url, types, concurrency, status, secret, secret_version, created_at,
      updated_at, position, generation, leased_generation, leased_until, next_attempt_at, failures, revision, mac)
    select gen_random_uuid(), ${isWorkspace(books)}, 'filler-' || n, uuid_send(gen_random_uuid()), 'https://filler.example/', '{}', 1, 'PAUSED', 'x', 1,
      now(), now(), 1000000, gen_random_uuid(), null, now(), now(), 0, 1, '' from generate_series(1, ${count}) n`

test('no number of forged rows hides what only a checkpoint reveals, and all of them are counted', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  const before = await check(lines, books)
  await damage(truncation(books))
  const truncated = await check(lines, books)
  const count = 3 * listedViolations
  await execute(system.database.serviceUrl, fillers(books, count))
  const report = await check(lines, books)
  expect(before.brokenRules).toEqual([])
  // They come first, as without the forged rows.
  expect(report.brokenRules).toEqual([
    ...truncated.brokenRules,
    ...(
      [
        'webhook-mac',
        'webhook-position',
        'member-mac',
        'key-mac',
        'member-audit',
        'key-audit',
        'webhook-audit',
      ] as const
    ).map(rule => ({ rule, violations: count })),
  ])
  expect(report.violations.slice(0, truncated.violations.length)).toEqual(truncated.violations)
  for (const { rule, violations } of report.brokenRules)
    expect(report.violations.filter(each => each.rule === rule)).toHaveLength(Math.min(violations, listedViolations))
})

test('a truncated history that continues with other entries does not match the checkpoint', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  await damage(truncation(books))
  await pay(books, '2.00')
  expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
  const { violations } = await check(lines, books)
  expect(violations.map(({ rule, ids }) => [rule, ids.walletId])).toEqual([
    ['checkpoint-head', books.a],
    ['checkpoint-head', books.b],
  ])
})

/** A change, the tables whose rows it changes, and the IDs that the checkpoint reports once these rows are reset. */
const resets: [string, (books: Books) => Promise<unknown>, string[], (books: Books) => object][] = [
  [
    'a wallet that was frozen',
    ({ workspaceId, b: walletId }) => admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' }),
    ['wallet', 'ledger', 'journal'],
    ({ b: walletId }) => ({ walletId }),
  ],
  [
    'a hold that was released',
    ({ workspaceId }) => service.holds.release.mutate({ workspaceId, caller, holdId: 'hold' }),
    ['hold', 'wallet', 'ledger', 'journal'],
    () => ({ holdId: expect.stringMatching(/^hld_/) }),
  ],
  [
    'a secret that was rotated away',
    async ({ workspaceId }) => {
      const { keys } = await admin.apiKeys.list.query({ workspaceId })
      await admin.apiKeys.rotate.mutate({ apiKey: keys[0]!.apiKey })
    },
    ['api_key'],
    () => ({ apiKey: expect.stringMatching(/^ak_/) }),
  ],
  [
    'a limit that was lowered',
    ({ workspaceId, a: walletId }) =>
      admin.limits.set.mutate({ workspaceId, subject: { walletId }, currency: 'USD', perDay: '1.00' }),
    ['spending_limit', 'ledger'],
    ({ a: walletId }) => ({ limit: `wallet:${uuidFromId('wallet', walletId)} USD` }),
  ],
  [
    'a webhook whose secret was rotated away',
    async ({ workspaceId }) => {
      const call = { workspaceId, caller, filter: {}, size: 10, page: 0 }
      const [webhook] = (await service.webhooks.list.query(call)).content
      await service.webhooks.rotate.mutate({ workspaceId, caller, webhookId: webhook!.webhookId })
    },
    ['webhook'],
    () => ({ webhookId: expect.stringMatching(/^whk_/) }),
  ],
  [
    'a member who was removed',
    ({ workspaceId }) => admin.members.remove.mutate({ workspaceId, userId: 'ada' }),
    ['member'],
    () => ({ userId: 'ada' }),
  ],
  [
    'a workspace that was deleted',
    ({ workspaceId }) => admin.workspaces.delete.mutate({ workspaceId, force: true }),
    // Deleting a workspace also closes its ledger.
    ['workspace', 'ledger'],
    ({ workspaceId }) => ({ workspaceId }),
  ],
]

/** Runs a change, takes a checkpoint, and resets the rows of these tables to what they were before the change. */
async function reset(books: Books, tables: string[], change: () => Promise<unknown>): Promise<string[]> {
  const rowsOf = (table: string) =>
    table === 'workspace' ? `id = '${uuidFromId('workspace', books.workspaceId)}'` : inWorkspace(books)
  for (const table of tables)
    await damage(`create schema if not exists kept; drop table if exists kept.reset_${table};
      create table kept.reset_${table} as select * from ${table} where ${rowsOf(table)}`)
  await change()
  const lines = await checkpoint(books)
  for (const table of tables)
    await damage(`delete from ${table} where ${rowsOf(table)};
      insert into ${table} ${table === 'audit' ? 'overriding system value' : ''} select * from kept.reset_${table}`)
  return lines
}

test.each(resets)(
  '%s: only a checkpoint reveals that its row was reset together with the audit',
  async (_, change, tables, idsOf) => {
    const books = await newBooks()
    const { workspaceId, a: walletId } = books
    const hold = { walletId, amount: '1.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'hold' }
    await service.holds.create.mutate({ workspaceId, caller, hold })
    await admin.limits.set.mutate({ workspaceId, subject: { walletId }, currency: 'USD', perDay: '100.00' })
    await service.webhooks.create.mutate({ workspaceId, caller, url: 'https://receiver.example/', bizId: 'hook' })
    await admin.members.add.mutate({ workspaceId, userId: 'ada' })
    await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
    const lines = await reset(books, [...tables, 'audit', 'audit_head'], () => change(books))
    expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
    expect((await check(lines, books)).violations).toContainEqual({
      rule: 'checkpoint-revision',
      message: expect.any(String),
      ids: expect.objectContaining(idsOf(books)),
    })
  },
)

test('a truncated event log that continues with other events does not match the checkpoint', async () => {
  const books = await newBooks()
  const { workspaceId, a, b } = books
  const tables = ['wallet', 'ledger', 'journal', 'audit', 'audit_head']
  const lines = await reset(books, tables, () =>
    admin.wallets.changeStatus.mutate({ workspaceId, walletId: b, status: 'FROZEN' }),
  )
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId: a, status: 'FROZEN' })
  expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
  expect((await check(lines, books)).violations).toContainEqual({
    rule: 'checkpoint-journal',
    message: 'its last journal entry up to position 6 has another MAC than in the checkpoint',
    ids: { workspaceId },
  })
})

test('only a checkpoint reveals that the end of the audit was deleted', async () => {
  const books = await newBooks()
  const lines = await reset(books, ['audit', 'audit_head'], () => checkpoint(books))
  expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
  const { workspaceId } = books
  expect((await check(lines, books)).violations).toMatchObject([{ rule: 'checkpoint-audit', ids: { workspaceId } }])
})

test('tables of the same name on the search path of the verifier hide nothing', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  const tables = ['ledger', 'wallet', 'transfer']
  const views = tables.map(
    table => `
      create table shown.saved_${table} as table ${schema}.${table};
      create view shown.${table} as
        select * from shown.saved_${table} where current_setting('application_name') in ('core verify', 'core reads')
        union all
        select * from ${schema}.${table} where current_setting('application_name') not in ('core verify', 'core reads')`,
  )
  const database = new URL(system.database.ownerUrl).pathname.slice(1)
  await damage(`
    create schema shown;
    ${views.join(';')};
    grant usage on schema shown to wallet_service;
    grant select on all tables in schema shown to wallet_service;
    alter role wallet_service in database ${database} set search_path = shown, ${schema};
    select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid();
    ${truncation(books)}`)
  const report = await until('core has connected again', () => check(lines, books).catch(() => false as const))
  await damage(`alter role wallet_service in database ${database} reset search_path; drop schema shown cascade`)
  expect(rulesOf(report)).toContain(`checkpoint-sequence ${books.a}`)
  expect(rulesOf(report)).toContain(`checkpoint-sequence ${books.b}`)
})

test('a wallet or transfer of the checkpoint that no longer exists is reported', async () => {
  const books = await newBooks()
  const empty = await createWallet({ admin, ...books })
  const lines = await checkpoint(books)
  await damage(`
    delete from wallet where id = ${isWallet(empty)};
    update ledger set wallet_count = 2 where ${inWorkspace(books)}`)
  await sign(books)
  expect((await check(lines, books)).violations).toMatchObject([
    { rule: 'checkpoint-wallet', ids: { walletId: empty } },
    { rule: 'wallet-journal', ids: { walletId: empty } },
    { rule: 'audit-target', ids: { walletId: empty } },
  ])

  await damage(`delete from transfer where target_wallet_id = ${isWallet(books.b)} and target_sequence = 2`)
  const { violations } = await check(lines, books)
  expect(violations).toContainEqual({
    rule: 'checkpoint-sequence',
    message: 'its flow 2 is in the checkpoint but no longer exists',
    ids: { workspaceId: books.workspaceId, walletId: books.b, sequence: 2 },
  })
})

test('a forged or damaged checkpoint is a fault of the checkpoint, not of the ledger', async () => {
  const books = await newBooks()
  const [line] = (await checkpoint(books)) as [string]
  const [other] = (await checkpoint(books)) as [string]
  const part = JSON.parse(line) as CheckpointPart
  const [chain] = part.chains as [CheckpointPart['chains'][number]]
  const changed = (change: Partial<CheckpointPart>) => JSON.stringify({ ...part, ...change })
  const unsigned = 'part 0 was changed, or was not signed with the chain key of this ledger'
  const faults: [string, string[], string][] = [
    ['nothing', [], 'it is incomplete: its last part is missing'],
    ['not a checkpoint', ['hello'], 'line 1 is not a part of a checkpoint'],
    ['a line cut short', [line.slice(0, -20)], 'line 1 is not a part of a checkpoint'],
    ['a wallet left out', [changed({ chains: part.chains.slice(1) })], unsigned],
    ['a sequence changed', [changed({ chains: [{ ...chain, sequence: 1 }] })], unsigned],
    ['a later time', [changed({ takenAt: new Date().toISOString() })], unsigned],
    ['another scope', [changed({ workspaceId: null })], unsigned],
    ['a last part marked as not the last', [changed({ last: false })], unsigned],
    ['another MAC', [changed({ mac: '0'.repeat(64) })], unsigned],
    ['a MAC of another checkpoint', [changed({ mac: (JSON.parse(other) as CheckpointPart).mac })], unsigned],
    ['a line after the last part', [line, line], 'data follows its last part'],
  ]
  for (const [what, lines, fault] of faults) {
    const report = await check(
      lines.map(text => `${text.trim()}\n`),
      books,
    )
    expect(report, what).toMatchObject({ ok: false, violations: [], brokenRules: [], checkpoint: { fault } })
  }
})

test('parts of a checkpoint cannot be removed, reordered or mixed', async () => {
  const books = await findBooksWithManyWallets()
  const [first, second, third] = (await checkpoint(books)) as [string, string, string]
  const [, strange] = (await checkpoint(books)) as [string, string]
  const renumbered = JSON.stringify({ ...JSON.parse(third), part: 1 })
  const faults: [string[], string][] = [
    [[first, second], 'it is incomplete: its last part is missing'],
    [[second, third], 'part 0 is missing before part 1'],
    [[first, third], 'part 1 is missing before part 2'],
    [[first, third, second], 'part 1 is missing before part 2'],
    [[first, strange, third], 'line 2 belongs to another checkpoint'],
    [[first, renumbered], 'part 1 was changed, or was not signed with the chain key of this ledger'],
  ]
  for (const [lines, fault] of faults)
    expect(await check(lines, books)).toMatchObject({ ok: false, violations: [], checkpoint: { fault } })
  expect(await check([first, second, third], books)).toMatchObject({ ok: true })
})

test('the MAC of a checkpoint is HMAC-SHA256 over all its fields', async () => {
  const [line] = (await checkpoint(await newBooks())) as [string]
  const { mac, chains, rows, logs, audits, ...part } = JSON.parse(line) as CheckpointPart
  const content = [
    'ledger checkpoint',
    1,
    part.checkpointId,
    part.takenAt,
    part.workspaceId,
    0,
    0,
    true,
    true,
    chains.map(chain => [chain.workspaceId, chain.walletId, chain.sequence, chain.head, chain.revision]),
    rows.map(({ kind, workspaceId, id, revision }) => [kind, workspaceId, id, revision]),
    logs.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
    audits.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
  ]
  expect(createHmac('sha256', chainKey).update(JSON.stringify(content)).digest('hex')).toBe(mac)
})
