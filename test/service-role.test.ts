import { randomUUID } from 'node:crypto'
import { idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { repairLedger, verifyLedger as verify } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Answer, call, createPath } from './setup/client.ts'
import { connect, execute, query, queryPersistently } from './setup/database.ts'
import { type Receiver, startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { webhooksOf } from './setup/webhooks.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * An attacker has DATABASE_URL, and so the rights of the service role, but no keys. Whatever the attacker writes, core
 * does not use it, and the verifier reports it. What the role may not write, these tests write as the owner of the tables.
 */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

const asService = (sql: string) => execute(system.database.serviceUrl, sql)
const asOwner = (sql: string) => execute(system.database.ownerUrl, sql)
/** The service's role has no right to write this; somebody else does. */
async function write(sql: string): Promise<void> {
  await expect(asService(sql), sql).rejects.toThrow('permission denied')
  await asOwner(sql)
}
const rowsOf = (sql: string) => query(system.database.serviceUrl, sql)
const garbage = `decode(repeat('01', 33), 'hex')`

type Books = {
  workspaceId: string
  workspace: string
  a: string
  b: string
  key: { apiKey: string; apiSecret: string }
}

/** A workspace in which wallet `a` holds 100.00 and wallet `b` nothing. `workspace` is its ID as an SQL literal. */
async function newBooks(): Promise<Books> {
  const { admin } = system
  const { workspaceId, apiKey, apiSecret } = await createTenant(system)
  const a = await createWallet({ admin, workspaceId }, { deposits: ['100.00'] })
  const b = await createWallet({ admin, workspaceId })
  return { workspaceId, workspace: `'${uuidFromId('workspace', workspaceId)}'`, a, b, key: { apiKey, apiSecret } }
}

const literal = (walletId: string) => `'${uuidFromId('wallet', walletId)}'`
const literalOfKey = ({ key }: Books) => `'${uuidFromId('apiKey', key.apiKey)}'`

function pay({ key, a, b }: Books, from = a, to = b, extra = {}): Promise<Answer> {
  const order = { sourceWalletId: from, targetWalletId: to, amount: '1.00', currency: 'USD', ...extra }
  return call({ ...key, baseUrl: system.baseUrl }, 'POST', createPath, order)
}

function hold({ key }: Books, terms: object): Promise<Answer> {
  return call({ ...key, baseUrl: system.baseUrl }, 'POST', '/api/v1/hold/command/create', terms)
}

async function codeAt(baseUrl: string, { key }: Books, apiSecret = key.apiSecret): Promise<string> {
  return (await call({ baseUrl, apiKey: key.apiKey, apiSecret }, 'GET', '/api/v1/wallets')).body.code
}

/** Waits for this code: a change of a key that a gateway has cached reaches it with its next poll. */
async function untilCode(code: string, books: Books, apiSecret?: string): Promise<void> {
  await until(`the gateway answers ${code}`, async () => (await codeAt(system.baseUrl, books, apiSecret)) === code)
}

/** The rules that the verifier reports as broken in a workspace, in alphabetical order. */
async function broken({ workspaceId }: Books): Promise<string[]> {
  const { violations } = await verify(system.admin, { workspaceId })
  return [...new Set(violations.map(({ rule }) => rule))].sort()
}

async function expectHalted(books: Books, reason: RegExp): Promise<void> {
  const { ledgers } = await system.admin.ledger.halted.query()
  expect(ledgers).toContainEqual({ workspaceId: books.workspaceId, reason: expect.stringMatching(reason) })
}

const wasModified = /was modified outside the service$/

describe('money', () => {
  test('from a forged deposit cannot be spent, although every row except the MACs is consistent', async () => {
    const books = await newBooks()
    await forgeDeposit(books, books.b)
    expect((await pay(books, books.b, books.a)).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    expect((await pay(books)).body.code).toBe('S002')
    expect(await broken(books)).toEqual(expect.arrayContaining(['flow-chain', 'wallet-mac']))
  })

  test('a forged deposit is not shown in the balance', async () => {
    const books = await newBooks()
    await forgeDeposit(books, books.b)
    const { status, body } = await call(
      { ...books.key, baseUrl: system.baseUrl },
      'GET',
      `/api/v1/wallets/${books.b}/balance`,
    )
    expect([status, body.code, body.data]).toEqual([503, 'S002', null])
    await expectHalted(books, wasModified)
  })

  test('a balance that was raised without a transfer cannot be spent', async () => {
    const books = await newBooks()
    await write(`update wallet set balance = 50, sequence = sequence + 1 where id = ${literal(books.b)}`)
    expect((await pay(books, books.b, books.a)).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    expect(await broken(books)).toEqual(expect.arrayContaining(['wallet-balance', 'wallet-mac']))
  })

  test('a wallet cannot be reset to an earlier row', async () => {
    const books = await newBooks()
    const [row] = await rowsOf(`select * from wallet where id = ${literal(books.a)}`)
    expect((await pay(books)).body.code).toBe('2000')
    const state = `${row!.balance}, ${row!.sequence}, ${row!.order_count}, '\\x${(row!.head as Buffer).toString('hex')}', 0, null, 0`
    const repair = `select repair_wallet(${books.workspace}, ${literal(books.a)}, ${state}, 'Wallet', null, 'ACTIVE', null, '\\x${(row!.mac as Buffer).toString('hex')}')`
    await expect(asService(repair)).rejects.toThrow('a repair of a wallet is refused')
    // Nor of a workspace that somebody has halted.
    await asService(`select change_ledger_status(${books.workspace}, 'HALTED', 'test', ${garbage})`)
    await expect(asService(repair)).rejects.toThrow('a repair of a wallet is refused')
    await expect(asService(`delete from wallet where id = ${literal(books.a)}`)).rejects.toThrow('permission denied')
    expect(await broken(books)).toEqual(['ledger-mac'])
  })

  test('a wallet that was unfrozen outside the service cannot pay', async () => {
    const books = await newBooks()
    await system.admin.wallets.changeStatus.mutate({
      workspaceId: books.workspaceId,
      walletId: books.a,
      status: 'FROZEN',
    })
    await asService(changeStatus(books, books.a, 'ACTIVE'))
    expect((await pay(books)).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    expect(await broken(books)).toEqual(['journal-chain', 'journal-id', 'ledger-mac', 'wallet-audit', 'wallet-mac'])
  })

  test("a repair restores a wallet's status from the journal", async () => {
    const books = await newBooks()
    await system.admin.wallets.changeStatus.mutate({
      workspaceId: books.workspaceId,
      walletId: books.a,
      status: 'FROZEN',
    })
    await write(`update wallet set status = 'ACTIVE', frozen_by = null where id = ${literal(books.a)}`)
    expect((await pay(books)).body.code).toBe('S002')
    const { workspaceId } = books
    const { reopened } = await repairLedger(system.admin, { workspaceId, dryRun: false })
    expect(reopened).toBe(true)
    expect((await pay(books)).body.code).toBe('W002')
  })

  test('an administrative action on a modified row does not sign the row', async () => {
    const books = await newBooks()
    const { workspaceId, a: walletId } = books
    await write(`update wallet set status = 'FROZEN', frozen_by = 'OPERATOR' where id = ${literal(walletId)}`)
    const unfreeze = system.admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'ACTIVE' })
    await expect(unfreeze).rejects.toThrow(`${walletId} was modified outside the service`)
    expect(await broken(books)).toEqual(['wallet-audit', 'wallet-journal', 'wallet-mac'])
  })

  test('a wallet that was renamed outside the service rejects transfers', async () => {
    const books = await newBooks()
    await write(`update wallet set name = 'Mine' where id = ${literal(books.b)}`)
    expect((await pay(books)).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    expect(await broken(books)).toEqual(['wallet-audit', 'wallet-mac'])
  })

  test('numbers and entries cannot be changed', async () => {
    const books = await newBooks()
    expect((await pay(books)).body.code).toBe('2000')
    for (const sql of [
      `update wallet set number = 9 where id = ${literal(books.a)}`,
      `update transfer set order_count = 9 where workspace_id = ${books.workspace}`,
      `update transfer set source_order_count = 9 where workspace_id = ${books.workspace}`,
      `delete from transfer where workspace_id = ${books.workspace}`,
    ])
      await expect(asService(sql), sql).rejects.toThrow('permission denied')
    expect(await broken(books)).toEqual([])
  })

  test.each(['order_count = order_count + 5', 'wallet_count = wallet_count + 1', "last_posted_at = '2099-01-01'"])(
    'a workspace whose counters were modified is halted: %s',
    async change => {
      const books = await newBooks()
      await write(`update ledger set ${change} where workspace_id = ${books.workspace}`)
      expect((await pay(books)).body.code).toBe('S002')
      await expectHalted(books, wasModified)
      expect(await broken(books)).toContain('ledger-mac')
    },
  )

  test('a halted workspace that was opened outside the service is halted again, and a deleted one stays deleted', async () => {
    const books = await newBooks()
    await forgeDeposit(books, books.b)
    expect((await pay(books, books.b, books.a)).body.code).toBe('S002')
    await asService(`select change_ledger_status(${books.workspace}, 'OPEN', null, ${garbage})`)
    // At once, or a second after the last time.
    await until('it is halted again', async () => {
      expect((await pay(books)).body.code).toBe('S002')
      const { ledgers } = await system.admin.ledger.halted.query()
      return ledgers.some(({ workspaceId }) => workspaceId === books.workspaceId)
    })
    await expectHalted(books, wasModified)

    const other = await newBooks()
    await system.admin.workspaces.delete.mutate({ workspaceId: other.workspaceId, force: true })
    for (const status of ['OPEN', 'HALTED'])
      await expect(
        asService(`select change_ledger_status(${other.workspace}, '${status}', null, ${garbage})`),
      ).rejects.toThrow('a change of a ledger is refused')
    await expect(
      asService(`update workspace set deleted_at = null, revision = revision + 1 where id = ${other.workspace}`),
    ).rejects.toThrow('this update of workspace is refused')
    expect(await codeAt(system.baseUrl, other)).toBe('GA2032')
  })

  test('a forged ledger without a workspace, of which a hold is due, is halted, and once', async () => {
    const workspace = randomUUID()
    await asService(`
      do $$
      declare
        ws uuid := '${workspace}'; w uuid := gen_random_uuid(); e uuid := gen_random_uuid(); mac bytea := ${garbage};
        at timestamptz := date_trunc('milliseconds', clock_timestamp());
      begin
        perform open_ledger(ws, at, mac);
        perform create_wallet(ws, e, null, null, 'x', 'USD', at, mac, mac, null);
        perform create_wallet(ws, w, 1, null, 'x', 'USD', at, mac, mac, jsonb_build_object('position', 1, 'id', gen_random_uuid(),
          'type', 'wallet.created', 'actor', 'x', 'request_id', 'x', 'mac', '\\x01'));
        perform post(
          array[row(ws, null, mac, at, 0, 2, mac)::posted_ledger],
          array[row(1, e, null, mac, -10, 1, 0, mac, mac)::posted_wallet, row(1, w, null, mac, 10, 1, 0, mac, mac)::posted_wallet],
          array[row(1, gen_random_uuid(), 2, 0, 'DEPOSIT', 'b', null, 10, 'USD', null, null, null, null, null, null, 'x', 'x', null,
            1, 1, 0, -10, mac, 2, 1, 0, 10, mac)::posted_transfer], null, null);
        perform change_holds(
          jsonb_build_array(jsonb_build_object('workspace_id', ws, 'old_mac', mac, 'at', at, 'position', 2, 'journal_head', '\\x01',
            'hold_count', 1, 'mac', mac)),
          jsonb_build_array(jsonb_build_object('workspace_id', ws, 'id', w, 'old_mac', mac, 'held', 1, 'held_until', at + interval '1 ms',
            'hold_count', 1, 'mac', mac)),
          jsonb_build_array(jsonb_build_object('workspace_id', ws, 'id', gen_random_uuid(), 'number', 1, 'wallet_number', 1, 'biz_id', 'h',
            'wallet_id', w, 'currency', 'USD', 'amount', 1, 'captured', 0, 'remaining', 1, 'status', 'OPEN',
            'expires_at', at + interval '1 ms', 'created_at', at, 'updated_at', at, 'mac', mac)),
          '[]');
      end $$`)
    const workspaceId = idFromUuid('workspace', workspace as Uuid<'workspace'>)
    const halted = await until('the sweep has halted it', async () => {
      const { ledgers } = await system.admin.ledger.halted.query()
      return ledgers.find(each => each.workspaceId === workspaceId)
    })
    expect(halted).toMatchObject({ reason: expect.stringMatching(wasModified) })
    const breaches = () =>
      system.cores[0]!.output()
        .split('\n')
        .filter(line => line.includes('ledger breach') && line.includes(workspaceId))
    await until('it is logged', () => breaches().length > 0)
    expect(breaches()).toHaveLength(1)
  })

  test('a workspace cannot be halted by somebody who waits for its deletion', async () => {
    const { workspace } = await newBooks()
    const owner = await connect(system.database.ownerUrl)
    await owner.query(`
      begin; update ledger set status = 'CLOSED' where workspace_id = ${workspace};
      update workspace set deleted_at = now(), revision = revision + 1 where id = ${workspace}`)
    const change = asService(`select change_ledger_status(${workspace}, 'HALTED', null, ${garbage})`)
    const rejected = expect(change).rejects.toThrow('a change of a ledger is refused')
    await until('it waits', async () =>
      Boolean(
        (await owner.query(`select from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))`))
          .rowCount,
      ),
    )
    await owner.query('commit')
    await owner.end()
    await rejected
  })

  test('a workspace that was closed outside the service is listed, halted and repaired', async () => {
    const books = await newBooks()
    const close = `select change_ledger_status(${books.workspace}, 'CLOSED', null, '\\x00')`
    await asService(close)
    // Also before anything is posted.
    await expectHalted(books, /^the ledger was closed outside the service$/)
    expect(await broken(books)).toEqual(['ledger-mac', 'workspace-audit'])
    expect((await pay(books)).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    const { workspaceId } = books
    const [core] = system.cores
    const isLogged = (line: string) => line.includes('ledger breach') && line.includes(workspaceId)
    await until('it is logged', () => core!.output().split('\n').some(isLogged))
    await expect(repairLedger(system.admin, { workspaceId, dryRun: false })).resolves.toMatchObject({ reopened: true })
    expect((await pay(books)).body.code).toBe('2000')

    // A repair halts it first.
    await asService(close)
    await expect(repairLedger(system.admin, { workspaceId, dryRun: false })).resolves.toMatchObject({ reopened: true })
    expect((await pay(books)).body.code).toBe('2000')

    // Other commands do not treat it as deleted.
    await asService(close)
    const wallet = { name: 'Other', currency: 'USD', bizId: 'other' }
    const { body } = await call(
      { ...books.key, baseUrl: system.baseUrl },
      'POST',
      '/api/v1/wallet/command/create',
      wallet,
    )
    expect(body.code).toBe('S002')
    await expectHalted(books, wasModified)
  })

  test.each([
    ['RELEASED', 0, ['hold-mac', 'hold-life']],
    ['CAPTURED', 90, ['hold-mac', 'hold-life', 'hold-captured']],
  ])('that is held cannot be spent after its hold was forged as %s', async (status, captured, rules) => {
    const books = await newBooks()
    const held = { walletId: books.a, amount: '90.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'rent' }
    await hold(books, held)
    await asService(`
      select change_holds(
        (select jsonb_agg(to_jsonb(l) || jsonb_build_object('old_mac', mac, 'at', last_posted_at))
         from ledger l where workspace_id = ${books.workspace}),
        (select jsonb_agg(to_jsonb(w) || jsonb_build_object('old_mac', mac, 'held', 0, 'held_until', null))
         from wallet w where id = ${literal(books.a)}),
        (select jsonb_agg(to_jsonb(h) || jsonb_build_object('old_mac', mac, 'status', '${status}',
           'captured', ${captured}, 'remaining', 0)) from hold h where workspace_id = ${books.workspace}),
        '[]')`)
    expect((await pay(books, books.a, books.b, { amount: '50.00' })).body.code).toBe('S002')
    await expectHalted(books, wasModified)
    // A replay of the create does not confirm what was forged, and a repair does not make it genuine.
    expect((await hold(books, held)).body.code).toBe('S002')
    expect(await broken(books)).toEqual(expect.arrayContaining(['wallet-mac', ...rules]))
    const { workspaceId } = books
    await expect(repairLedger(system.admin, { workspaceId, dryRun: false })).resolves.toMatchObject({ reopened: false })
  })

  test('a forged transfer is not returned as the replay of a create', async () => {
    const books = await newBooks()
    await write(`
      insert into transfer (workspace_id, id, type, biz_id, position, order_count, amount, currency, source_wallet_id, target_wallet_id,
        source_sequence, source_order_count, source_balance, source_mac, target_sequence, target_order_count,
        target_balance, target_mac, actor, request_id, created_at)
      values (${books.workspace}, gen_random_uuid(), 'TRANSFER', 'salary', 99, 1, 1.00, 'USD', ${literal(books.a)},
        ${literal(books.b)}, 2, 1, 99.00, ${garbage}, 1, 1, 1.00, ${garbage}, 'key:forged', 'forged', now())`)
    expect((await pay(books, books.a, books.b, { bizId: 'salary' })).body.code).toBe('S002')
    await expectHalted(books, /^transfer trf_\S+ was written outside the service$/)
    // Nor while the workspace is halted.
    expect((await pay(books, books.a, books.b, { bizId: 'salary' })).body.code).toBe('S002')
    expect(await broken(books)).toContain('flow-chain')
  })
})

/** Forges a deposit with consistent entries, wallets and ledger, but without valid MACs. */
async function forgeDeposit({ workspace }: Books, walletId: string): Promise<void> {
  await asService(`
    select post(
      array[row(l.workspace_id, l.xmin, l.mac, l.last_posted_at, l.order_count, l.position + 1, ${garbage})]::posted_ledger[],
      array[row(1, e.id, e.xmin, e.mac, e.balance - 5000.00, e.sequence + 1, e.order_count, ${garbage}, ${garbage}),
        row(1, w.id, w.xmin, w.mac, w.balance + 5000.00, w.sequence + 1, w.order_count, ${garbage}, ${garbage})]::posted_wallet[],
      array[row(1, gen_random_uuid(), l.position + 1, l.order_count, 'DEPOSIT', null, null, 5000.00, 'USD', null, null, null, null, null,
        null, 'admin:forged', 'forged', null, 1, e.sequence + 1, e.order_count, e.balance - 5000.00, ${garbage},
        2, w.sequence + 1, w.order_count, w.balance + 5000.00, ${garbage})]::posted_transfer[],
      null, null)
    from ledger l, wallet e, wallet w
    where l.workspace_id = ${workspace} and e.workspace_id = l.workspace_id and e.kind = 'EXTERNAL'
      and w.id = ${literal(walletId)}`)
}

/** Calls the database's function as core does, with MACs that nobody can compute. */
function changeStatus({ workspace }: Books, walletId: string, status: string): string {
  return `select change_wallet_status(${workspace}, ${literal(walletId)}, '${status}', null,
      date_trunc('milliseconds', clock_timestamp()), ${garbage}, ${garbage}, jsonb_build_object('position', position + 1,
        'id', gen_random_uuid(), 'type', 'wallet.unfrozen', 'actor', 'forged', 'request_id', 'forged', 'mac', '\\x00'))
    from ledger where workspace_id = ${workspace}`
}

describe('events', () => {
  const receivers: Receiver[] = []
  const couriers: Program[] = []
  afterEach(async () => {
    for (const courier of couriers.splice(0)) await courier.stop()
    for (const receiver of receivers.splice(0)) await receiver.stop()
  })

  /** Delivers the events of a workspace to a real receiver. Returns the positions that arrive. */
  async function deliver({ workspaceId }: Books): Promise<() => number[]> {
    const receiver = await startReceiver()
    receivers.push(receiver)
    const webhooks = webhooksOf({ ...system, workspaceId })
    await webhooks.create(receiver)
    await webhooks.close()
    couriers.push(await system.startCourier())
    return () => receiver.received.map(({ event }) => event.position)
  }

  const readEvents = ({ key }: Books, after: number): Promise<Answer> =>
    call({ ...key, baseUrl: system.baseUrl }, 'GET', `/api/v1/event/query/events/${after}`)
  const headOf = async ({ workspace }: Books) =>
    Number((await rowsOf(`select position from ledger where workspace_id = ${workspace}`))[0]!.position)
  const untilHalted = ({ workspaceId }: Books) =>
    until('the workspace is halted', async () =>
      (await system.admin.ledger.halted.query()).ledgers.some(each => each.workspaceId === workspaceId),
    )

  const forgeries: [what: string, forge: (books: Books) => Promise<void>, reason: RegExp][] = [
    ['a forged deposit', books => forgeDeposit(books, books.b), /^the row of its ledger was modified/],
    [
      'a forged change of a wallet',
      async books => {
        await system.admin.wallets.changeStatus.mutate({ ...books, walletId: books.a, status: 'FROZEN' })
        await asService(changeStatus(books, books.a, 'ACTIVE'))
      },
      /^the row of its ledger was modified/,
    ],
  ]
  test.each(forgeries)('%s is never delivered, and no reader gets it', async (_, forge, reason) => {
    const books = await newBooks()
    const start = await headOf(books)
    const delivered = await deliver(books)
    expect((await pay(books)).body.code).toBe('2000')
    await until('the payment is delivered', () => delivered().length === 1)
    await forge(books)
    await untilHalted(books)
    await expectHalted(books, reason)
    const forged = await headOf(books)
    const answer = await readEvents(books, forged - 1)
    expect([answer.status, answer.body.code, answer.headers.get('retry-after')]).toEqual([503, 'S002', '60'])
    // A reader that read the log up to there learns no more than that.
    expect((await readEvents(books, start)).body.code).toBe('S002')
    expect(delivered()).not.toContain(forged)
  })

  test('that the owner of the tables inserts, and removes again, are never delivered', async () => {
    const books = await newBooks()
    const start = await headOf(books)
    const delivered = await deliver(books)
    expect((await pay(books)).body.code).toBe('2000')
    await until('the payment is delivered', () => delivered().length === 1)
    const isIn = `workspace_id = ${books.workspace}`
    const asSuperuser = (sql: string) => asOwner(`set session_replication_role = replica; ${sql}`)
    await asSuperuser(`
      create schema kept; create table kept.ledger as select * from ledger where ${isIn};
      insert into transfer (workspace_id, id, type, position, order_count, amount, currency, source_wallet_id,
        target_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_sequence,
        target_order_count, target_balance, target_mac, actor, request_id, created_at)
      select workspace_id, gen_random_uuid(), type, position + 1, order_count + 1, 50.00, currency, source_wallet_id,
        target_wallet_id, source_sequence + 1, source_order_count + 1, source_balance - 50, ${garbage},
        target_sequence + 1, target_order_count + 1, target_balance + 50, ${garbage}, actor, request_id, created_at
      from transfer where ${isIn} and position = ${start + 1};
      update ledger set position = position + 1 where ${isIn}`)
    await untilHalted(books)
    await asSuperuser(`
      delete from transfer where ${isIn} and position = ${start + 2};
      delete from ledger where ${isIn}; insert into ledger select * from kept.ledger; drop schema kept cascade`)
    expect((await pay(books, books.a, books.b, { bizId: 'genuine' })).body.code).toBe('2000')
    await until('the next payment is delivered', () => delivered().length === 2)
    expect(delivered()).toEqual([start + 1, start + 2])
    const { content } = (await readEvents(books, start + 1)).body.data
    expect(content).toMatchObject([{ position: start + 2, data: { transfer: { bizId: 'genuine' } } }])
  })
})

describe('access', () => {
  /** Makes every gateway look the key up again. */
  async function invalidate(books: Books): Promise<void> {
    await asService(`
      update access_revision set revision = revision + 1;
      update api_key set access_revision = (select revision from access_revision) where id = ${literalOfKey(books)}`)
  }

  async function expectRejected(books: Books, code: string, secret?: string): Promise<void> {
    await invalidate(books)
    await untilCode(code, books, secret)
    const [core] = system.cores
    const message = 'a row was modified outside the service: the key is refused'
    await until('it is logged', () => core!.output().includes(message))
    expect(await (await fetch(`${core!.url}/metrics`)).text()).toMatch(/core_modified_rows_total\{table="\w+"\} [1-9]/)
  }

  test('a replaced secret cannot be restored', async () => {
    const books = await newBooks()
    const isKey = `id = ${literalOfKey(books)}`
    const [old] = await rowsOf(`select * from api_key where ${isKey}`)
    await system.admin.apiKeys.rotate.mutate(books.key)
    expect(await codeAt(system.baseUrl, books)).toBe('GA2012')
    const restore = (version: unknown) =>
      `update api_key set secret = '${old!.secret}', secret_version = ${version}, revision = revision + 1,
         mac = '\\x${(old!.mac as Buffer).toString('hex')}' where ${isKey}`
    await expect(asService(restore(old!.secret_version))).rejects.toThrow('this update of api_key is refused')
    await asService(restore('secret_version'))
    await expectRejected(books, 'GA2021')
    expect(await broken(books)).toEqual(['key-mac'])
  })

  test('a key cannot be enabled or extended, and a deleted one stays deleted', async () => {
    const books = await newBooks()
    const isKey = `id = ${literalOfKey(books)}`
    await system.admin.apiKeys.disable.mutate(books.key)
    for (const sql of [
      `update api_key set status = 'ACTIVE' where ${isKey}`,
      `update api_key set owner_user_id = 'eve', revision = revision + 1 where ${isKey}`,
      `delete from api_key where ${isKey}`,
    ])
      await expect(asService(sql), sql).rejects.toThrow(/refused|permission denied/)
    await asService(`update api_key set status = 'ACTIVE', expires_at = null, revision = revision + 1 where ${isKey}`)
    await expectRejected(books, 'GA2021')
    await expect(system.admin.apiKeys.enable.mutate(books.key)).rejects.toThrow('was modified outside the service')
    expect(await broken(books)).toEqual(['key-audit', 'key-mac'])

    await system.admin.apiKeys.delete.mutate(books.key)
    await untilCode('GA2011', books)
    await expect(
      asService(`update api_key set deleted_at = null, revision = revision + 1 where ${isKey}`),
    ).rejects.toThrow('this update of api_key is refused')
    expect(await broken(books)).toEqual([])
  })

  test('a forged key gives no access', async () => {
    const books = await newBooks()
    const [row] = await rowsOf(`select * from api_key where id = ${literalOfKey(books)}`)
    const apiKey = mintId('apiKey')
    const copy: Record<string, unknown> = { ...row!, id: uuidFromId('apiKey', apiKey) }
    const names = Object.keys(copy)
    await query(
      system.database.serviceUrl,
      `insert into api_key (${names}) values (${names.map((_, at) => `$${at + 1}`)})`,
      Object.values(copy),
    )
    const { keys } = await system.gatewayClient.access.lookup.query({ apiKeys: [apiKey, books.key.apiKey] })
    expect(keys).toHaveLength(2)
    expect(keys.find(key => key.apiKey === apiKey)).toMatchObject({ status: 'DISABLED', scopes: [], secrets: [] })
    expect(keys.find(key => key.apiKey !== apiKey)).toMatchObject({ status: 'ACTIVE' })
    expect(await broken(books)).toEqual(['key-audit', 'key-mac'])
  })

  test('a removed member cannot be restored, and no member can be added', async () => {
    const books = await newBooks()
    const { workspaceId, workspace } = books
    const isMember = `workspace_id = ${workspace} and user_id = 'owner'`
    const [member] = await rowsOf(`select * from member where ${isMember}`)
    await system.admin.members.remove.mutate({ workspaceId, userId: 'owner' })
    expect(await codeAt(system.baseUrl, books)).toBe('GA2034')
    await expect(asService(`delete from member where ${isMember}`)).rejects.toThrow('permission denied')
    const mac = `'\\x${(member!.mac as Buffer).toString('hex')}'`
    await expect(
      asService(`update member set removed_at = null, revision = ${member!.revision}, mac = ${mac} where ${isMember}`),
    ).rejects.toThrow('this update of member is refused')
    await asService(`update member set removed_at = null, revision = revision + 1, mac = ${mac} where ${isMember}`)
    await expectRejected(books, 'GA2034')
    await asService(`
      insert into member (workspace_id, user_id, created_at, revision, mac) values (${workspace}, 'eve', now(), 1, ${mac})`)
    expect(await broken(books)).toEqual(['member-audit', 'member-mac'])

    // An administrator can restore the member: that overwrites the whole row.
    await system.admin.members.remove.mutate({ workspaceId, userId: 'owner' })
    await system.admin.members.add.mutate({ workspaceId, userId: 'owner' })
    await untilCode('2000', books)
  })

  test('a change of a key cannot be hidden from the gateways', async () => {
    const books = await newBooks()
    const isKey = `id = ${literalOfKey(books)}`
    for (const [sql, refusal] of [
      [`update api_key set access_revision = 1 where ${isKey}`, 'this update of api_key is refused'],
      [`update api_key set access_revision = access_revision + 1000 where ${isKey}`, 'does not exist yet'],
      ['update access_revision set revision = revision + 1000', 'the access revision must rise by one'],
      ['update access_revision set revision = revision - 1', 'the access revision must rise by one'],
      ['insert into access_change (revision) select revision + 1 from access_revision', 'permission denied'],
      ['delete from access_change', 'permission denied'],
    ] as const)
      await expect(asService(sql), sql).rejects.toThrow(refusal)
    // A table of the attacker's own, under a name that a trigger reads. Even if the owner of the database allows such tables.
    const ownTable = `
      create temporary table access_revision as select 9000000000000000000 as revision;
      update api_key set access_revision = 9000000000000000000 where ${isKey}`
    await expect(asService(ownTable)).rejects.toThrow('permission denied to create temporary tables')
    const { ownerUrl } = system.database
    const database = new URL(ownerUrl).pathname.slice(1)
    await execute(ownerUrl, `grant temporary on database ${database} to wallet_service`)
    await expect(asService(ownTable)).rejects.toThrow('does not exist yet')
    await execute(ownerUrl, `revoke temporary on database ${database} from wallet_service`)
    expect(await codeAt(system.baseUrl, books)).toBe('2000')
    await system.admin.apiKeys.disable.mutate(books.key)
    await untilCode('GA2021', books)
  })
})

describe('the audit', () => {
  test('has no heads of workspaces that do not exist', async () => {
    await asService(`select from lock_audit(array(select gen_random_uuid() from generate_series(1, 10)))`)
    expect(
      await rowsOf(`select from audit_head where workspace_id not in (select id from workspace)
      and workspace_id <> '00000000-0000-0000-0000-000000000000'`),
    ).toEqual([])
    const { workspaceId, b: walletId } = await newBooks()
    const nowhere = mintId('workspace')
    await expect(
      system.admin.wallets.deposit.mutate({ workspaceId: nowhere, walletId, amount: '1.00', bizId: randomUUID() }),
    ).rejects.toMatchObject({ data: { appError: { code: 'W001' } } })
    await system.admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
  })

  test('contains forged generations of the nonce store, which neither end the present one nor delay the next', async () => {
    // A gateway would begin a generation of its own after each one.
    const system = await startSystem({ gateways: 0 })
    const begin = (generationId: string) =>
      system.gatewayClient.access.beginNonceGeneration.mutate({ generationId, partitions: [0] })
    /** Forged generations, half of them with the ID of a known one. All have what its entry has besides. */
    const forge = async (count: number, known: string = randomUUID()) => {
      // Core ends a session that holds locks for five seconds.
      const atATime = 1_000
      for (let from = 0; from < count; from += atATime)
        await queryPersistently(
          system.database.serviceUrl,
          `
          insert into audit (at, actor, action, workspace_id, target, after, position, mac)
          select now(), 'gateway:g', 'nonces.begin', null, case when n % 2 = 0 then '${known}' else gen_random_uuid()::text end,
            (select after from audit where target = '${known}' order by id limit 1), position + n, ${garbage}
          from audit_head, generate_series(1, ${Math.min(atATime, count - from)}) n
          where workspace_id = '00000000-0000-0000-0000-000000000000'`,
        )
    }
    const [earlier, present] = [randomUUID(), randomUUID()]
    // A second after the one before.
    for (const id of [earlier, present])
      await until('it begins', () =>
        begin(id)
          .then(({ latest }) => latest.length > 0)
          .catch(() => false),
      )
    await forge(10_000, present)
    expect(await begin(present)).toEqual({ first: [], latest: [0] })
    expect(await begin(earlier)).toEqual({ first: [], latest: [] })
    await until('the next one begins in spite of forged ones', async () => {
      await forge(1)
      return begin(randomUUID())
        .then(({ latest }) => latest.length > 0)
        .catch(() => false)
    })
    expect(await begin(present)).toEqual({ first: [], latest: [] })
    await system.stop()
  })

  test('cannot be changed or truncated, and a forged entry is reported, while new entries are added', async () => {
    const books = await newBooks()
    const { workspaceId, workspace } = books
    for (const sql of [
      `update audit set actor = 'nobody' where workspace_id = ${workspace}`,
      `delete from audit where workspace_id = ${workspace}`,
      `update audit_head set position = 0 where workspace_id = ${workspace}`,
      `delete from audit_head where workspace_id = ${workspace}`,
    ])
      await expect(asService(sql), sql).rejects.toThrow('permission denied')
    const forge = (position: string, at = 'now()') => `
      insert into audit (at, actor, action, workspace_id, target, position, mac)
      select ${at}, 'admin:nobody', 'wallet.freeze', workspace_id, 'forged', ${position}, ${garbage}
      from audit_head where workspace_id = ${workspace}`
    for (const [sql, refusal] of [
      [forge('position'), 'is not the next one of the audit'],
      [forge('position + 2'), 'is not the next one of the audit'],
      [forge('position + 1', "now() - interval '1 day'"), 'must be the time of its transaction'],
      [forge('position + 1', "now() + interval '1 day'"), 'must be the time of its transaction'],
    ] as const)
      await expect(asService(sql), sql).rejects.toThrow(refusal)
    expect(await broken(books)).toEqual([])

    await asService(forge('position + 1'))
    await system.admin.wallets.changeStatus.mutate({ workspaceId, walletId: books.b, status: 'FROZEN' })
    await system.admin.wallets.deposit.mutate({ workspaceId, walletId: books.a, amount: '1.00', bizId: randomUUID() })
    const { violations } = await verify(system.admin, { workspaceId })
    expect(violations).toMatchObject([{ rule: 'audit-chain', ids: { action: 'wallet.freeze' } }])
  })
})

describe('the write-ahead log', () => {
  test('cannot be read, and its archive can be neither redirected nor stopped', async () => {
    for (const sql of [
      `alter system set archive_command = 'true'`,
      `alter system set archive_library = ''`,
      `alter system set max_slot_wal_keep_size = '1MB'`,
      `set max_slot_wal_keep_size = '1MB'`,
      `select pg_reload_conf()`,
      `select pg_switch_wal()`,
      `select pg_stat_reset_shared('archiver')`,
      `select pg_drop_replication_slot('archive')`,
      `select pg_replication_slot_advance('archive', pg_current_wal_lsn())`,
      `select pg_create_physical_replication_slot('another', true)`,
      `select pg_ls_waldir()`,
      `alter role current_user replication`,
    ])
      await expect(asService(sql), sql).rejects.toThrow(/permission denied|cannot be changed now/)
    const replication = `${system.database.serviceUrl}?replication=true`
    await expect(execute(replication, 'IDENTIFY_SYSTEM')).rejects.toThrow('permission denied to start WAL sender')
  })
})
