import { createHmac, randomBytes } from 'node:crypto'
import { type CheckpointPart, checkpointPartEntries, uuidFromId, type VerifyReport } from '@workspace-wallet/contract'
import { type CoreClient, checkpointLines, createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { execute } from '../../../../../test/setup/database.ts'
import { signRows } from '../../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'

// Each test damages a workspace of its own, as the owner of the tables, and looks at that one alone.
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

type Books = { workspaceId: string; a: string; b: string }

/** Two wallets; the first has paid the second twice. */
async function newBooks(): Promise<Books> {
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test' })
  const [a, b] = [await newWallet(workspaceId), await newWallet(workspaceId)] as const
  await admin.wallets.deposit.mutate({ workspaceId, walletId: a, amount: '100.00', caller })
  await pay({ workspaceId, a, b }, '1.00')
  for (const table of ['wallet', 'ledger'])
    await damage(`
      create schema if not exists kept; create table if not exists kept.${table} as table ${table} with no data;
      insert into kept.${table} select * from ${table} where ${inWorkspace({ workspaceId })}`)
  await pay({ workspaceId, a, b }, '2.00')
  return { workspaceId, a, b }
}

async function newWallet(workspaceId: string): Promise<string> {
  return (await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
}

async function pay({ workspaceId, a, b }: Books, amount: string): Promise<void> {
  const order = { sourceWalletId: a, targetWalletId: b, amount, currency: 'USD' }
  await service.transfers.create.mutate({ workspaceId, caller, order })
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

const inWorkspace = ({ workspaceId }: Pick<Books, 'workspaceId'>) =>
  `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
const isWallet = (walletId: string) => `'${uuidFromId('wallet', walletId)}'`

/** Takes the last transfer out of a workspace without a trace in what is left: all rows are as they were before. */
const truncation = (books: Books) => `
  delete from flow f using transfer t
    where f.${inWorkspace(books)} and t.id = f.transfer_id and t.number = 2;
  delete from transfer where ${inWorkspace(books)} and number = 2;
  delete from wallet where ${inWorkspace(books)};
  insert into wallet select * from kept.wallet where ${inWorkspace(books)};
  delete from ledger where ${inWorkspace(books)};
  insert into ledger select * from kept.ledger where ${inWorkspace(books)}`

/** "rule wallet" of each violation. */
const rulesOf = ({ violations }: VerifyReport) => violations.map(({ rule, ids }) => `${rule} ${ids.walletId}`)

test('a checkpoint holds, at once and after further postings', async () => {
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
    more: 0,
    checkpoint: { checkpointId, takenAt, wallets, fault: null },
  })

  await pay(books, '3.00')
  await newWallet(books.workspaceId)
  expect(await check(lines)).toMatchObject({ ok: true, wallets: wallets + 1, checkpoint: { wallets, fault: null } })
})

test('a checkpoint of one workspace names it, and its wallets as far as they are', async () => {
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
  expect(part.audits).toEqual([{ workspaceId, position: 4, head: expect.stringMatching(/^[0-9a-f]{64}$/) }])
})

test('a checkpoint of many wallets comes in parts, and its file may be read in any pieces', async () => {
  const books = await newBooks()
  await damage(`
    insert into wallet (workspace_id, id, number, kind, name, currency, status, created_at, updated_at, revision, mac)
    select workspace_id, gen_random_uuid(), 2 + n, kind, name, currency, status, created_at, updated_at, 1, ''
    from wallet, generate_series(1, ${2 * checkpointPartEntries}) n where id = ${isWallet(books.b)};
    update ledger set wallet_count = 2 + ${2 * checkpointPartEntries} where ${inWorkspace(books)}`)
  await sign(books)
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
    checkpoint: { wallets: 2 * checkpointPartEntries + 3, fault: null },
  })
})

test('only the checkpoint shows a history whose end was cut off together with what its wallets say', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  await damage(truncation(books))

  expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
  const report = await check(lines, books)
  expect(report).toMatchObject({ ok: false, more: 0, checkpoint: { wallets: 3, fault: null } })
  const { workspaceId, a, b } = books
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
  ])
})

test('a history that was cut off and written on does not become the one in the checkpoint', async () => {
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

/** A change, what it changed by its table, and what the checkpoint says when all rows of that table are as they were before. */
const setBack: [string, (books: Books) => Promise<unknown>, string, (books: Books) => object][] = [
  [
    'a wallet that was frozen',
    ({ workspaceId, b: walletId }) => admin.wallets.freeze.mutate({ workspaceId, walletId }),
    'wallet',
    ({ b: walletId }) => ({ rule: 'checkpoint-revision', ids: { walletId } }),
  ],
  [
    'a secret that was rotated away',
    async ({ workspaceId }) => {
      const { keys } = await admin.apiKeys.list.query({ workspaceId })
      await admin.apiKeys.rotate.mutate({ apiKey: keys[0]!.apiKey })
    },
    'api_key',
    () => ({ rule: 'checkpoint-revision', ids: { apiKey: expect.stringMatching(/^ak_/) } }),
  ],
  [
    'a member who was removed',
    ({ workspaceId }) => admin.members.remove.mutate({ workspaceId, userId: 'ada' }),
    'member',
    () => ({ rule: 'checkpoint-revision', ids: { userId: 'ada' } }),
  ],
  [
    'a workspace that was deleted',
    ({ workspaceId }) => admin.workspaces.delete.mutate({ workspaceId, force: true }),
    'workspace',
    ({ workspaceId }) => ({ rule: 'checkpoint-revision', ids: { workspaceId } }),
  ],
  [
    'an audit that was cut off',
    ({ workspaceId, b: walletId }) => admin.wallets.freeze.mutate({ workspaceId, walletId }),
    'audit',
    ({ workspaceId }) => ({ rule: 'checkpoint-audit', ids: { workspaceId } }),
  ],
]

test.each(setBack)(
  '%s: only the checkpoint shows that the rows were put back as they were',
  async (_, action, table, told) => {
    const books = await newBooks()
    const { workspaceId } = books
    await admin.members.add.mutate({ workspaceId, userId: 'ada' })
    await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'] })
    const tables = table === 'audit' ? ['audit', 'audit_head'] : [table]
    const rowsOf = (each: string) =>
      each === 'workspace' ? `id = '${uuidFromId('workspace', workspaceId)}'` : inWorkspace(books)
    const into = (each: string) => (each === 'audit' ? `${each} overriding system value` : each)
    for (const each of tables)
      await damage(`create schema if not exists kept; drop table if exists kept.put_back_${each};
      create table kept.put_back_${each} as select * from ${each} where ${rowsOf(each)}`)
    await action(books)
    const lines = await checkpoint(books)
    for (const each of tables)
      await damage(`delete from ${each} where ${rowsOf(each)};
      insert into ${into(each)} select * from kept.put_back_${each}`)
    expect(await check(await checkpoint(books), books)).toMatchObject({ ok: true })
    expect((await check(lines, books)).violations).toMatchObject([told(books)])
  },
)

test('what the verifier alone is shown, by tables of the same name on its search path, hides nothing', async () => {
  const books = await newBooks()
  const lines = await checkpoint(books)
  const tables = ['ledger', 'wallet', 'transfer', 'flow']
  const views = tables.map(
    table => `
      create table shown.saved_${table} as table public.${table};
      create view shown.${table} as
        select * from shown.saved_${table} where current_setting('application_name') in ('core verify', 'core reads')
        union all
        select * from public.${table} where current_setting('application_name') not in ('core verify', 'core reads')`,
  )
  const database = new URL(system.database.ownerUrl).pathname.slice(1)
  await damage(`
    create schema shown;
    ${views.join(';')};
    grant usage on schema shown to wallet_service;
    grant select on all tables in schema shown to wallet_service;
    alter role wallet_service in database ${database} set search_path = shown, public;
    select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid();
    ${truncation(books)}`)
  const report = await until('core has connected again', () => check(lines, books).catch(() => false as const))
  await damage(`alter role wallet_service in database ${database} reset search_path; drop schema shown cascade`)
  expect(rulesOf(report)).toContain(`checkpoint-sequence ${books.a}`)
  expect(rulesOf(report)).toContain(`checkpoint-sequence ${books.b}`)
})

test('a wallet, or a flow, of the checkpoint that is gone is named', async () => {
  const books = await newBooks()
  const empty = await newWallet(books.workspaceId)
  const lines = await checkpoint(books)
  await damage(`
    delete from wallet where id = ${isWallet(empty)};
    update ledger set wallet_count = 2 where ${inWorkspace(books)}`)
  await sign(books)
  expect((await check(lines, books)).violations).toMatchObject([
    { rule: 'checkpoint-wallet', ids: { walletId: empty } },
  ])

  await damage(`delete from flow where wallet_id = ${isWallet(books.b)} and sequence = 2`)
  const { violations } = await check(lines, books)
  expect(violations).toContainEqual({
    rule: 'checkpoint-sequence',
    message: 'its flow 2 is in the checkpoint, and no longer exists',
    ids: { workspaceId: books.workspaceId, walletId: books.b, sequence: 2 },
  })
})

test('a checkpoint that was forged or damaged is told apart from a ledger that was changed', async () => {
  const books = await newBooks()
  const [line] = (await checkpoint(books)) as [string]
  const [other] = (await checkpoint(books)) as [string]
  const part = JSON.parse(line) as CheckpointPart
  const [chain] = part.chains as [CheckpointPart['chains'][number]]
  const changed = (change: Partial<CheckpointPart>) => JSON.stringify({ ...part, ...change })
  const unsigned = "part 0 was changed, or was not signed under this ledger's chain key"
  const faults: [string, string[], string][] = [
    ['nothing', [], 'it is cut off: its last part is missing'],
    ['no checkpoint', ['hello'], 'line 1 is not a part of a checkpoint'],
    ['a line cut short', [line.slice(0, -20)], 'line 1 is not a part of a checkpoint'],
    ['a wallet left out', [changed({ chains: part.chains.slice(1) })], unsigned],
    ['a sequence changed', [changed({ chains: [{ ...chain, sequence: 1 }] })], unsigned],
    ['a later time', [changed({ takenAt: new Date().toISOString() })], unsigned],
    ['another scope', [changed({ workspaceId: null })], unsigned],
    ['a last part that is not', [changed({ last: false })], unsigned],
    ['another MAC', [changed({ mac: '0'.repeat(64) })], unsigned],
    ['a MAC of another checkpoint', [changed({ mac: (JSON.parse(other) as CheckpointPart).mac })], unsigned],
    ['something after the end', [line, line], 'something follows its last part'],
  ]
  for (const [what, lines, fault] of faults) {
    const report = await check(
      lines.map(text => `${text.trim()}\n`),
      books,
    )
    expect(report, what).toMatchObject({ ok: false, violations: [], more: 0, checkpoint: { fault } })
  }
})

test('parts of a checkpoint cannot be dropped, moved or mixed', async () => {
  const books = await newBooks()
  await damage(`
    insert into wallet (workspace_id, id, number, kind, name, currency, status, created_at, updated_at, revision, mac)
    select workspace_id, gen_random_uuid(), 2 + n, kind, name, currency, status, created_at, updated_at, 1, ''
    from wallet, generate_series(1, ${2 * checkpointPartEntries}) n where id = ${isWallet(books.b)};
    update ledger set wallet_count = 2 + ${2 * checkpointPartEntries} where ${inWorkspace(books)}`)
  await sign(books)
  const [first, second, third] = (await checkpoint(books)) as [string, string, string]
  const [, strange] = (await checkpoint(books)) as [string, string]
  const renumbered = JSON.stringify({ ...JSON.parse(third), part: 1 })
  const faults: [string[], string][] = [
    [[first, second], 'it is cut off: its last part is missing'],
    [[second, third], 'part 0 is missing before part 1'],
    [[first, third], 'part 1 is missing before part 2'],
    [[first, third, second], 'part 1 is missing before part 2'],
    [[first, strange, third], 'line 2 belongs to another checkpoint'],
    [[first, renumbered], "part 1 was changed, or was not signed under this ledger's chain key"],
  ]
  for (const [lines, fault] of faults)
    expect(await check(lines, books)).toMatchObject({ ok: false, violations: [], checkpoint: { fault } })
  expect(await check([first, second, third], books)).toMatchObject({ ok: true })
})

test("a checkpoint's MAC is HMAC-SHA256 over everything in it, as anybody with the key can compute", async () => {
  const [line] = (await checkpoint(await newBooks())) as [string]
  const { mac, chains, rows, audits, ...part } = JSON.parse(line) as CheckpointPart
  const content = [
    'ledger checkpoint',
    1,
    part.checkpointId,
    part.takenAt,
    part.workspaceId,
    0,
    true,
    chains.map(chain => [chain.workspaceId, chain.walletId, chain.sequence, chain.head, chain.revision]),
    rows.map(({ kind, workspaceId, id, revision }) => [kind, workspaceId, id, revision]),
    audits.map(({ workspaceId, position, head }) => [workspaceId, position, head]),
  ]
  expect(createHmac('sha256', chainKey).update(JSON.stringify(content)).digest('hex')).toBe(mac)
})
