import { randomUUID } from 'node:crypto'
import { type LeasedWebhook, mintId, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, execute, queryPersistently } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'
import { readFigures } from './figures.ts'

/**
 * An attacker writes anything into one row of the table of webhooks: with the service's role, as the owner of the tables, and as
 * an owner who has removed the constraints. The deliveries of other webhooks go on, in its workspace and in others.
 */

let opened: TestCore
let owner: pg.Client
beforeAll(async () => {
  opened = await openTestCore()
  owner = await connect(opened.database.ownerUrl)
  victim = await subscribe(await newWorkspace())
  neighbor = await subscribe(victim)
  other = await subscribe(await newWorkspace())
  // The row of the victim is read first.
  await owner.query(`
    set session_replication_role = replica;
    update webhook set leased_until = '2020-01-01', next_attempt_at = '2020-01-01' where id = ${literal(victim)};
    create table sound as table webhook;`)
})
afterAll(async () => {
  await owner.end()
  await opened.close()
})

const caller = { requestId: 'test' }
type Workspace = { workspaceId: string; walletId: string }
type Subscriber = Workspace & { webhookId: string }
let victim: Subscriber
let neighbor: Subscriber
let other: Subscriber

async function newWorkspace(): Promise<Workspace> {
  const { workspaceId } = await opened.as('admin').workspaces.create({ name: 'Test' })
  const { walletId } = await opened.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  return { workspaceId, walletId }
}

async function subscribe({ workspaceId, walletId }: Workspace): Promise<Subscriber> {
  const webhook = { url: 'https://receiver.example/events', bizId: mintId('event') }
  const { webhookId } = await opened.as('service').webhooks.create({ workspaceId, caller, ...webhook })
  return { workspaceId, walletId, webhookId }
}

const literal = ({ webhookId }: Subscriber) => `'${uuidFromId('webhook', webhookId)}'`

/**
 * Posts an event in both workspaces, and leases what is due until the others have got their event, which is reported. Deliveries
 * to the victim fail, and core accepts the report.
 */
async function expectDeliveries(): Promise<void> {
  for (const { workspaceId, walletId } of [victim, other])
    await opened.as('admin').wallets.deposit({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
  // The metrics are those of all webhooks.
  expect((await readFigures(opened.core.reads)).lagEvents).toBeGreaterThanOrEqual(1)
  const waiting = new Set([neighbor.webhookId, other.webhookId])
  await until('the others get their events', async () => {
    for (const leased of (await opened.as('courier').courier.lease({ size: 64 })).webhooks)
      if (waiting.delete(leased.webhookId)) expect(await report(leased)).toEqual({ accepted: true })
      else if (leased.webhookId === victim.webhookId) expect(await reportFailure(leased)).toEqual({ accepted: true })
    return waiting.size === 0
  })
}

const report = ({ webhookId, generation, deliveries }: LeasedWebhook) =>
  opened.as('courier').courier.report({
    webhookId,
    generation,
    delivered: deliveries.at(-1)!.position,
    lastStatus: 200,
    lastError: null,
    failure: null,
  })

const reportFailure = ({ webhookId, generation }: LeasedWebhook) =>
  opened.as('courier').courier.report({
    webhookId,
    generation,
    delivered: null,
    lastStatus: 500,
    lastError: null,
    failure: { retryAfterSeconds: null },
  })

/** A statement of the attacker, with the role of the service. */
const attack = (sql: string) => queryPersistently(opened.database.serviceUrl, sql)

/** Puts the row of the victim back. */
async function restore(): Promise<void> {
  const others = `(${literal(neighbor)}, ${literal(other)})`
  await owner.query(`
    delete from webhook where (id in ${others}) is not true;
    insert into webhook select * from sound where id = ${literal(victim)}`)
}

const big = 3_000_000
/** Values by type. A column may refuse some of them. */
const values = {
  ARRAY: [
    'null',
    `'{}'`,
    `'{odd}'`,
    `'{null}'`,
    `'{{a,b},{c,d}}'`,
    `array_fill('x'::text, array[100000])`,
    `array[repeat('x', ${big})]`,
  ],
  bigint: ['null', '0', '-1', '9007199254740990', '9007199254740991', '9223372036854775806', '9223372036854775807'],
  bytea: ['null', `'\\x'`, `'\\x00'`, `decode(repeat('00', 64), 'hex')`, `decode(repeat('00', ${big}), 'hex')`],
  integer: ['null', '0', '-1', '7', '2147483647'],
  smallint: ['null', '0', '-1', '2', '32767'],
  text: [
    'null',
    `''`,
    `'odd "\\ 😀'`,
    `E'\\x01'`,
    `'PAUSED'`,
    `'v1.lost.a.b.c'`,
    `repeat('x', 2000)`,
    `repeat('x', ${big})`,
  ],
  'timestamp with time zone': [
    'null',
    `'infinity'`,
    `'-infinity'`,
    `'0044-03-15 BC'`,
    `'1970-01-01'`,
    `'2999-01-01'`,
    `'9999-12-31'`,
    `'12000-01-01'`,
    `'294276-12-31'`,
  ],
  uuid: [
    'null',
    `'00000000-0000-0000-0000-000000000000'`,
    `'ffffffff-ffff-ffff-ffff-ffffffffffff'`,
    'gen_random_uuid()',
  ],
}

const columns: Record<keyof typeof values, string[]> = {
  ARRAY: ['types'],
  bigint: ['position', 'revision'],
  bytea: ['biz_id_mac', 'mac'],
  integer: ['failures', 'last_status', 'secret_version'],
  smallint: ['concurrency'],
  text: ['biz_id', 'last_error', 'previous_secret', 'secret', 'status', 'url'],
  'timestamp with time zone': [
    'created_at',
    'deleted_at',
    'failing_since',
    'last_attempt_at',
    'leased_until',
    'next_attempt_at',
    'previous_secret_until',
    'updated_at',
  ],
  uuid: ['generation', 'id', 'leased_generation', 'workspace_id'],
}
const typed = Object.entries(columns).flatMap(([type, names]) =>
  names.map(column => [column, values[type as keyof typeof values]] as const),
)

test('every column of the table is tested', async () => {
  const { rows } = await owner.query(
    `select column_name as "column" from information_schema.columns where table_name = 'webhook'`,
  )
  expect(rows.map(({ column }) => column).sort()).toEqual(typed.map(([column]) => column).sort())
})

/** What PostgreSQL answers if it refuses a value: a right, a constraint, a trigger, or a value that the type does not have. */
const refusals = /^(42501|22\d\d\d|23\d\d\d)$/

/** Writes one value after the other. Returns how many were stored. */
async function writeAll(write: (value: string) => Promise<unknown>, column: string, isListed = true): Promise<number> {
  let stored = 0
  for (const value of values[typeOf(column)])
    try {
      const refusal = await write(value).then(
        () => null,
        error => error as { code: string },
      )
      if (refusal) expect(refusal.code).toMatch(refusals)
      else {
        stored++
        await expectDeliveries()
        if (isListed) await expectListed()
      }
    } finally {
      await restore()
    }
  return stored
}

const typeOf = (column: string) =>
  (Object.keys(columns) as (keyof typeof values)[]).find(type => columns[type].includes(column))!

/** The client of that workspace still sees its other webhook. */
async function expectListed(): Promise<void> {
  const { content } = await opened.as('service').webhooks.list({ workspaceId: neighbor.workspaceId, caller, size: 100 })
  expect(content.map(({ webhookId }) => webhookId)).toContain(neighbor.webhookId)
}

describe('the deliveries of other webhooks go on, whatever the row of one webhook contains', () => {
  test.each(typed.map(([column]) => column))("written with the service's role: %s", async column => {
    // A trigger requires the next revision for the signed columns, and accepts it for the others.
    const revision = column === 'revision' ? '' : ', revision = revision + 1'
    await writeAll(
      value => attack(`update webhook set ${column} = ${value}${revision} where id = ${literal(victim)}`),
      column,
    )
  })

  test.each(typed.map(([column]) => column))('written by the owner, past the triggers: %s', async column => {
    const stored = await writeAll(
      value => owner.query(`update webhook set ${column} = ${value} where id = ${literal(victim)}`),
      column,
    )
    expect(stored).toBeGreaterThan(0)
  })

  test('a webhook whose next attempt or lease is far away is due, and its next lease sets it right', async () => {
    for (const column of ['next_attempt_at', 'leased_until']) {
      await attack(`update webhook set ${column} = now() + interval '1 day' where id = ${literal(victim)}`)
      const { workspaceId, walletId } = victim
      await opened.as('admin').wallets.deposit({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
      const leased = await until('it is leased', async () => {
        const { webhooks } = await opened.as('courier').courier.lease({ size: 64 })
        return webhooks.find(({ webhookId }) => webhookId === victim.webhookId)
      })
      const sql = `select from webhook where id = ${literal(victim)}
        and next_attempt_at <= now() and leased_until <= now() + interval '1 minute'`
      expect((await owner.query(sql)).rowCount).toBe(1)
      await report(leased)
      await restore()
    }
  })

  test('a modified webhook is looked at once in its pause, also if its lease ends in 9999', async () => {
    const change = "url = 'https://other.example/', leased_until = '9999-12-31', revision = revision + 1"
    await attack(`update webhook set ${change} where id = ${literal(victim)}`)
    await opened.as('courier').courier.lease({ size: 64 })
    const sql = `select from webhook where id = ${literal(victim)} and next_attempt_at > now() and leased_until <= now()`
    expect((await owner.query(sql)).rowCount).toBe(1)
    await restore()
  })

  test('inserted with the role of the service, in any number', async () => {
    const inserted = 2000
    await attack(`
      insert into webhook select (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid(), 'revision', 1,
        'biz_id_mac', '\\x' || encode(sha256(n::text::bytea), 'hex'), 'leased_until', '2020-01-01'))).*
      from webhook w, generate_series(1, ${inserted}) n where id = ${literal(victim)}`)
    await expectDeliveries()
    await restore()
  })

  describe('and the owner has removed the constraints', () => {
    beforeAll(async () => {
      const { rows } = await owner.query(
        `select conname, contype from pg_constraint where conrelid = 'webhook'::regclass order by contype = 'n'`,
      )
      for (const { conname } of rows) await owner.query(`alter table webhook drop constraint ${conname} cascade`)
    })

    test.each(typed.map(([column]) => column))('%s', async column => {
      const isRead = (value: string) => {
        // The owner can also make one row so large that it cannot be read.
        return !value.includes(String(big))
      }
      const stored = await writeAll(
        async value =>
          isRead(value) && (await owner.query(`update webhook set ${column} = ${value} where id = ${literal(victim)}`)),
        column,
        false,
      )
      expect(stored).toBeGreaterThan(0)
    })

    test('and no statement can write the row any more', async () => {
      await owner.query(`update webhook set concurrency = 1000 where id = ${literal(victim)}`)
      await execute(
        opened.database.ownerUrl,
        'alter table webhook add constraint later check (concurrency < 100) not valid',
      )
      await expectDeliveries()
      await restore()
    })
  })
})
