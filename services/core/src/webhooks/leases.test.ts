import { randomUUID } from 'node:crypto'
import {
  type DeliveryReport,
  type EventType,
  eventsOf,
  type LeasedWebhook,
  mintId,
  uuidFromId,
} from '@workspace-wallet/contract'
import type pg from 'pg'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { signRows } from '../../../../test/setup/sign-rows.ts'
import { until } from '../../../../test/setup/until.ts'
import { KnownWebhooks } from './known-webhooks.ts'

let opened: TestCore
let owner: pg.Client
beforeAll(async () => {
  opened = await openTestCore()
  owner = await connect(opened.database.ownerUrl)
})
afterAll(async () => {
  await owner.end()
  await opened.close()
})
/** So that the next test leases only its own webhooks. */
afterEach(() => owner.query(`update webhook set next_attempt_at = now() + interval '1 hour'`))

const caller = { requestId: 'test' }
const admin = () => opened.as('admin')
const service = () => opened.as('service')
const courier = () => opened.as('courier')

type Subscription = { types?: EventType[]; concurrency?: number }

/** A workspace with a wallet, whose creation is event 1, and a webhook that begins after it. */
async function newSubscriber(subscription: Subscription = {}) {
  const { workspaceId } = await admin().workspaces.create({ name: 'Test' })
  const { walletId } = await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  const bizId = mintId('event')
  const created = await service().webhooks.create({
    workspaceId,
    caller,
    url: 'https://receiver.example/events',
    bizId,
    ...subscription,
  })
  return { workspaceId, walletId, webhookId: created.webhookId, secret: created.secret! }
}
type Subscriber = Awaited<ReturnType<typeof newSubscriber>>

/** Adds an event of type wallet.deposited. */
const deposit = ({ workspaceId, walletId }: Subscriber) =>
  admin().wallets.deposit({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })

async function depositTimes(subscriber: Subscriber, times: number): Promise<void> {
  for (let at = 0; at < times; at++) await deposit(subscriber)
}

const lease = async (size = 64) => (await courier().courier.lease({ size })).webhooks
/** Repeats the call until it leases one: on a busy machine, its events may not be read within a second. */
async function leaseOne(size?: number): Promise<LeasedWebhook> {
  const webhooks = await until('a webhook is leased', async () => {
    const leased = await lease(size)
    return leased.length > 0 && leased
  })
  expect(webhooks).toHaveLength(1)
  return webhooks[0]!
}
/** Leases nothing, until the position has passed the events of other types. */
const leaseNone = (subscriber: Subscriber, position: number) =>
  until('the position passes the events', async () => {
    expect(await lease()).toEqual([])
    return (await get(subscriber)).position === position
  })
const positionsOf = ({ deliveries }: LeasedWebhook) => deliveries.map(({ position }) => position)

const report = ({ webhookId, generation }: LeasedWebhook, outcome: Partial<DeliveryReport> = {}) =>
  courier().courier.report({
    webhookId,
    generation,
    delivered: null,
    lastStatus: null,
    lastError: null,
    failure: null,
    ...outcome,
  })
const reportAll = (leased: LeasedWebhook) =>
  report(leased, { delivered: leased.deliveries.at(-1)!.position, lastStatus: 200 })
const fail = (leased: LeasedWebhook, lastStatus: number | null = 500, retryAfterSeconds: number | null = null) =>
  report(leased, { lastStatus, failure: { retryAfterSeconds } })

const get = ({ workspaceId, webhookId }: Subscriber) => service().webhooks.get({ workspaceId, caller, webhookId })

/** Columns that are not signed, changed by the owner of the database: for tests that would otherwise have to wait. */
const set = ({ webhookId }: Pick<Subscriber, 'webhookId'>, assignments: string) =>
  owner.query(`update webhook set ${assignments} where id = $1`, [uuidFromId('webhook', webhookId)])
const dueNow = (subscriber: Subscriber) => set(subscriber, `next_attempt_at = now() - interval '1 s'`)
const leaseOver = (subscriber: Subscriber) => set(subscriber, `leased_until = now() - interval '1 s'`)

async function nextAttemptOf({ webhookId }: Subscriber): Promise<number> {
  const { rows } = await owner.query('select next_attempt_at from webhook where id = $1', [
    uuidFromId('webhook', webhookId),
  ])
  return rows[0].next_attempt_at.getTime()
}

/** How many seconds after the last attempt the next one is. */
async function waitOf({ webhookId }: Subscriber): Promise<number> {
  const { rows } = await owner.query(
    'select extract(epoch from next_attempt_at - last_attempt_at)::float8 as seconds from webhook where id = $1',
    [uuidFromId('webhook', webhookId)],
  )
  return rows[0].seconds
}

describe('a lease', () => {
  test('has the events after the position, in order, each as the API shows it', async () => {
    const subscriber = await newSubscriber()
    expect(await lease()).toEqual([])
    await depositTimes(subscriber, 3)
    const { workspaceId, webhookId } = subscriber
    const leased = await leaseOne()
    expect(leased).toMatchObject({
      webhookId,
      workspaceId,
      url: 'https://receiver.example/events',
      concurrency: 1,
      leaseMs: 60_000,
    })
    const content = eventsOf(await service().events.read({ workspaceId, caller, after: 1 }))
    expect(leased.deliveries.map(({ position, body }) => ({ position, event: JSON.parse(body) }))).toEqual(
      content.map(event => ({ position: event.position, event })),
    )
    expect(positionsOf(leased)).toEqual([2, 3, 4])
  })

  test('has signatures that the library of Standard Webhooks accepts, under both secrets in a grace', async () => {
    const subscriber = await newSubscriber()
    const { workspaceId, webhookId, secret } = subscriber
    await deposit(subscriber)
    const verify = (leased: LeasedWebhook, key: string) =>
      new Verifier(key).verify(leased.deliveries[0]!.body, leased.deliveries[0]!.headers)
    const first = await leaseOne()
    expect(verify(first, secret)).toEqual(JSON.parse(first.deliveries[0]!.body))
    expect(first.deliveries[0]!.headers['webhook-id']).toBe(JSON.parse(first.deliveries[0]!.body).eventId)
    const other = `whsec_${secret.at(6) === 'A' ? 'B' : 'A'}${secret.slice(7)}`
    expect(() => verify(first, other)).toThrow()
    const changed = { ...first, deliveries: [{ ...first.deliveries[0]!, body: `${first.deliveries[0]!.body} ` }] }
    expect(() => verify(changed, secret)).toThrow()
    await report(first)

    const rotated = await service().webhooks.rotate({ workspaceId, caller, webhookId })
    const inGrace = await leaseOne()
    expect(inGrace.deliveries[0]!.headers['webhook-signature']!.split(' ')).toHaveLength(2)
    verify(inGrace, rotated.secret)
    verify(inGrace, secret)
    await report(inGrace)

    const again = await service().webhooks.rotate({ workspaceId, caller, webhookId, graceSeconds: 60 })
    const second = await leaseOne()
    verify(second, again.secret)
    verify(second, rotated.secret)
    expect(() => verify(second, secret)).toThrow()
    await report(second)

    const { secret: last } = await service().webhooks.rotate({ workspaceId, caller, webhookId, graceSeconds: 0 })
    const alone = await leaseOne()
    verify(alone, last)
    expect(() => verify(alone, again.secret)).toThrow()
  })

  test('has events of the types of the webhook only, and the position passes the others', async () => {
    const subscriber = await newSubscriber({ types: ['wallet.frozen'] })
    const { workspaceId, walletId } = subscriber
    await depositTimes(subscriber, 3)
    await leaseNone(subscriber, 4)
    expect(await lease()).toEqual([])
    await deposit(subscriber)
    await admin().wallets.changeStatus({ workspaceId, walletId, status: 'FROZEN' })
    await admin().wallets.changeStatus({ workspaceId, walletId, status: 'ACTIVE' })
    const leased = await leaseOne()
    expect(positionsOf(leased)).toEqual([6])
    await reportAll(leased)
    expect((await get(subscriber)).position).toBe(6)
    await leaseNone(subscriber, 7)
  })

  test('has at most a hundred deliveries, and its size webhooks', async () => {
    const subscriber = await newSubscriber()
    const [{ workspaceId, walletId }, other] = [subscriber, await newSubscriber()]
    await admin().wallets.deposit({ workspaceId, walletId, amount: '500', bizId: randomUUID() })
    const target = (await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Other' })).walletId
    const transfer = { sourceWalletId: walletId, targetWalletId: target, amount: '1', currency: 'USD' }
    const transfers = Array.from({ length: 99 }, () => ({ ...transfer, bizId: mintId('event') }))
    await service().transfers.batch({ workspaceId, caller, batch: { transfers } })
    await deposit(other)
    const [first, second] = [await leaseOne(1), await leaseOne(1)]
    expect(await lease(1)).toEqual([])
    const sizes = [first, second].map(({ webhookId, deliveries }) => [webhookId, deliveries.length])
    expect(Object.fromEntries(sizes)).toEqual({ [subscriber.webhookId]: 100, [other.webhookId]: 1 })
  })

  test('gives every workspace a turn before a second webhook of one', async () => {
    const many = await newSubscriber()
    const { workspaceId } = many
    for (let at = 0; at < 15; at++)
      await service().webhooks.create({ workspaceId, caller, url: 'https://a.example', bizId: `more-${at}` })
    const few = await newSubscriber()
    await deposit(many)
    await deposit(few)
    const first = await lease(2)
    expect(first.map(each => each.workspaceId).sort()).toEqual([workspaceId, few.workspaceId].sort())
    expect(await lease()).toHaveLength(15)
  })

  test('is exclusive: racing couriers never get the same webhook, and get all of them', async () => {
    const subscribers = await Promise.all(Array.from({ length: 12 }, () => newSubscriber()))
    await Promise.all(subscribers.map(deposit))
    const leased: string[] = []
    while (leased.length < subscribers.length) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => lease(3)))
      leased.push(...answers.flat().map(({ webhookId }) => webhookId))
    }
    expect(leased.sort()).toEqual(subscribers.map(({ webhookId }) => webhookId).sort())
  })

  test('ends after its time: the webhook is leased again, and the report of the earlier lease has no effect', async () => {
    const subscriber = await newSubscriber()
    await depositTimes(subscriber, 2)
    const first = await leaseOne()
    expect(await lease()).toEqual([])
    await leaseOver(subscriber)
    const second = await leaseOne()
    expect(second.generation).not.toBe(first.generation)
    expect(await reportAll(first)).toEqual({ accepted: false })
    expect(await get(subscriber)).toMatchObject({ position: 1, lastStatus: null, lastAttemptAt: null })
    // The second lease is not ended by it either.
    expect(await lease()).toEqual([])
    expect(await report(second, { delivered: 2, lastStatus: 204 })).toEqual({ accepted: true })
    expect(await get(subscriber)).toMatchObject({ position: 2, lastStatus: 204 })
    expect(positionsOf(await leaseOne())).toEqual([3])
  })

  test('without an attempt ends when it is reported, and changes nothing', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const before = await get(subscriber)
    expect(await report(await leaseOne())).toEqual({ accepted: true })
    expect(await get(subscriber)).toEqual(before)
    await leaseOne()
  })

  test.each([
    ['without a delivery and without a failure', null],
    ['with the delivery of an event that does not exist', 1_000],
  ])('that ends %s is given again after a second only', async (_, delivered) => {
    await deposit(await newSubscriber())
    const { webhookId, ...lease } = await leaseOne()
    await report({ webhookId, ...lease }, { delivered })
    const { rows } = await owner.query(
      `select next_attempt_at - leased_until as wait from webhook where id = '${uuidFromId('webhook', webhookId)}'`,
    )
    expect(rows).toEqual([{ wait: { seconds: 1 } }])
  })

  test('is given for open workspaces only', async () => {
    const halted = await newSubscriber()
    const deleted = await newSubscriber()
    await deposit(halted)
    await deposit(deleted)
    const workspace = uuidFromId('workspace', halted.workspaceId)
    await owner.query(`update ledger set status = 'HALTED', halt_reason = 'test' where workspace_id = $1`, [workspace])
    await admin().workspaces.delete({ workspaceId: deleted.workspaceId, force: true })
    expect(await lease()).toEqual([])
    await owner.query(`update ledger set status = 'OPEN', halt_reason = null where workspace_id = $1`, [workspace])
    expect((await leaseOne()).webhookId).toBe(halted.webhookId)
  })

  test('is not given for a webhook that is paused or deleted', async () => {
    const paused = await newSubscriber()
    const deleted = await newSubscriber()
    await deposit(paused)
    await deposit(deleted)
    await service().webhooks.update({ ...paused, caller, status: 'PAUSED' })
    await service().webhooks.delete({ ...deleted, caller })
    expect(await lease()).toEqual([])
    await service().webhooks.update({ ...paused, caller, status: 'ACTIVE' })
    expect(positionsOf(await leaseOne())).toEqual([2])
  })
})

describe('a report', () => {
  test('of failures makes the waits longer, and a success ends them', async () => {
    const subscriber = await newSubscriber()
    await depositTimes(subscriber, 2)
    let failingSince: Date | null = null
    for (const seconds of [5, 30, 120, 600, 1800, 3600, 3600]) {
      const leased = await leaseOne()
      expect(positionsOf(leased)).toEqual([2, 3])
      expect(await fail(leased)).toEqual({ accepted: true })
      expect(await lease()).toEqual([])
      const wait = await waitOf(subscriber)
      expect(wait).toBeGreaterThanOrEqual(0.8 * seconds)
      expect(wait).toBeLessThanOrEqual(1.2 * seconds)
      const shown = await get(subscriber)
      expect(shown).toMatchObject({ status: 'ACTIVE', position: 1, lastStatus: 500 })
      failingSince ??= shown.failingSince
      expect(shown.failingSince).toEqual(failingSince)
      await dueNow(subscriber)
    }
    expect(failingSince).toBeInstanceOf(Date)
    await report(await leaseOne(), { delivered: 2, lastStatus: 200 })
    expect(await get(subscriber)).toMatchObject({ position: 2, lastStatus: 200, failingSince: null })
    await fail(await leaseOne())
    expect(await waitOf(subscriber)).toBeLessThanOrEqual(6)
  })

  test('of successes before a failure moves the position over them', async () => {
    const subscriber = await newSubscriber()
    await depositTimes(subscriber, 3)
    await report(await leaseOne(), { delivered: 3, lastError: 'TLS', failure: { retryAfterSeconds: null } })
    const shown = await get(subscriber)
    expect(shown).toMatchObject({ position: 3, lastStatus: null, lastError: 'TLS' })
    expect(shown.failingSince).toEqual(shown.lastAttemptAt)
    await dueNow(subscriber)
    await reportAll(await leaseOne())
    expect(await get(subscriber)).toMatchObject({ position: 4, lastStatus: 200, lastError: null })
  })

  test('of a failure is followed by an attempt at once if the client sends ACTIVE', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    await fail(await leaseOne())
    expect(await lease()).toEqual([])
    const { workspaceId, webhookId } = subscriber
    const before = await get(subscriber)
    const updated = await service().webhooks.update({ workspaceId, webhookId, caller, status: 'ACTIVE' })
    expect(updated).toEqual({ ...before, failingSince: null })
    expect(positionsOf(await leaseOne())).toEqual([2])
  })

  test.each([
    [0, 1],
    [7, 7],
    [3600, 3600],
    [1e9, 3600],
  ])('Retry-After %i replaces the wait: %i s', async (retryAfterSeconds, seconds) => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    await fail(await leaseOne(), 503, retryAfterSeconds)
    expect(await waitOf(subscriber)).toBe(seconds)
  })

  test('counts once: a repeated one has no effect', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const leased = await leaseOne()
    expect(await fail(leased)).toEqual({ accepted: true })
    const shown = await get(subscriber)
    expect(await fail(leased, 404)).toEqual({ accepted: false })
    expect(await get(subscriber)).toEqual(shown)
  })

  test('with a position after the end of the log, or of an unknown webhook, has no effect', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const leased = await leaseOne()
    expect(await report(leased, { delivered: 3, lastStatus: 200 })).toEqual({ accepted: false })
    expect((await get(subscriber)).position).toBe(1)
    for (const webhookId of [mintId('webhook'), 'nonsense'])
      expect(await report({ ...leased, webhookId })).toEqual({ accepted: false })
  })

  test('of 410 pauses the webhook at once, as core', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    await fail(await leaseOne(), 410)
    expect(await get(subscriber)).toMatchObject({ status: 'PAUSED', lastStatus: 410, position: 1 })
    await dueNow(subscriber)
    expect(await lease()).toEqual([])
    const { webhookId, workspaceId } = subscriber
    const { entries } = await admin().audit.list({ workspaceId, target: webhookId, action: 'webhook.pause' })
    expect(entries).toMatchObject([
      { actor: 'core', before: { status: 'ACTIVE' }, after: { status: 'PAUSED', lastStatus: 410 } },
    ])
    await service().webhooks.update({ workspaceId, webhookId, caller, status: 'ACTIVE' })
    expect(await get(subscriber)).toMatchObject({ status: 'ACTIVE', failingSince: null })
    expect(positionsOf(await leaseOne())).toEqual([2])
  })

  test('of a failure after seven days without a success pauses the webhook', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    await fail(await leaseOne())
    const failing = (interval: string) => set(subscriber, `failing_since = now() - interval '${interval}'`)
    await failing('6 days 23 hours 59 minutes')
    await dueNow(subscriber)
    await fail(await leaseOne())
    expect((await get(subscriber)).status).toBe('ACTIVE')
    await failing('7 days')
    await dueNow(subscriber)
    await fail(await leaseOne(), null)
    expect(await get(subscriber)).toMatchObject({ status: 'PAUSED', lastStatus: null })
  })
})

describe('a change during a lease', () => {
  const changes = {
    'an update': ({ workspaceId, webhookId }: Subscriber) =>
      service().webhooks.update({ workspaceId, webhookId, caller, url: 'https://new.example/' }),
    'a seek': ({ workspaceId, webhookId }: Subscriber) =>
      service().webhooks.seek({ workspaceId, webhookId, caller, after: 0 }),
    'a rotation': ({ workspaceId, webhookId }: Subscriber) =>
      service().webhooks.rotate({ workspaceId, webhookId, caller }),
  }
  test.each(Object.entries(changes))(
    'by %s makes its report have no effect, and the next lease begins when it ends',
    async (_, change) => {
      const subscriber = await newSubscriber()
      await depositTimes(subscriber, 2)
      const leased = await leaseOne()
      await change(subscriber)
      const shown = await get(subscriber)
      // The courier may still be sending: another one would send out of order.
      expect(await lease()).toEqual([])
      expect(await reportAll(leased)).toEqual({ accepted: false })
      expect(await get(subscriber)).toEqual(shown)
      const next = await leaseOne()
      expect(positionsOf(next)[0]).toBe(shown.position + 1)
      expect(next.url).toBe(shown.url)
    },
  )

  test('by a deletion makes its report have no effect', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const leased = await leaseOne()
    await service().webhooks.delete({ ...subscriber, caller })
    expect(await reportAll(leased)).toEqual({ accepted: false })
    await expect(get(subscriber)).rejects.toMatchObject({ cause: { code: 'E002' } })
  })
})

describe('a lease that is held', () => {
  const held = ({ webhookId, generation }: LeasedWebhook) => ({ webhookId, generation })
  const revokedOf = async (...leases: LeasedWebhook[]) =>
    (await courier().courier.lease({ size: 0, held: leases.map(held) })).revoked

  const endings: Record<string, (subscriber: Subscriber) => Promise<unknown>> = {
    'an update': on => service().webhooks.update({ ...on, caller, url: 'https://new.example/' }),
    'a pause': on => service().webhooks.update({ ...on, caller, status: 'PAUSED' }),
    'a rotation': on => service().webhooks.rotate({ ...on, caller, graceSeconds: 0 }),
    'a seek': on => service().webhooks.seek({ ...on, caller, after: 0 }),
    'a deletion': on => service().webhooks.delete({ ...on, caller }),
    'the deletion of its workspace': ({ workspaceId }) => admin().workspaces.delete({ workspaceId, force: true }),
  }
  test.each(Object.entries(endings))('is revoked by %s, and others are not', async (_, end) => {
    const [subscriber, other] = [await newSubscriber(), await newSubscriber()]
    await deposit(subscriber)
    await deposit(other)
    const leases = await lease()
    expect(await revokedOf(...leases)).toEqual([])
    await end(subscriber)
    const revoked = leases.filter(({ webhookId }) => webhookId === subscriber.webhookId).map(held)
    expect(revoked).toHaveLength(1)
    expect(await revokedOf(...leases)).toEqual(revoked)
  })

  test('is revoked when its time is over and the webhook is leased again', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const first = await leaseOne()
    await leaseOver(subscriber)
    const second = await leaseOne()
    expect(await revokedOf(first, second)).toEqual([held(first)])
    expect(
      await courier().courier.lease({ size: 0, held: [{ webhookId: 'nonsense', generation: randomUUID() }] }),
    ).toEqual({
      webhooks: [],
      revoked: [],
    })
  })
})

test('with workspaces to leave out, a call leases nothing of them, and one webhook of each other workspace', async () => {
  const [left, other] = [await newSubscriber(), await newSubscriber()]
  const url = 'https://receiver.example/events'
  for (const { workspaceId } of [left, other])
    await service().webhooks.create({ workspaceId, caller, url, bizId: randomUUID() })
  await deposit(left)
  await deposit(other)
  const { webhooks } = await until('a webhook is leased', async () => {
    const leased = await courier().courier.lease({ size: 64, except: [left.workspaceId] })
    return leased.webhooks.length > 0 && leased
  })
  expect(webhooks).toMatchObject([{ workspaceId: other.workspaceId }])
  const rest: string[] = []
  await until('the others are leased', async () => {
    rest.push(...(await lease()).map(({ workspaceId }) => workspaceId))
    return rest.length >= 3
  })
  expect(rest.toSorted()).toEqual([left.workspaceId, left.workspaceId, other.workspaceId].toSorted())
})

describe('one webhook does not hold up the others', () => {
  test('when its events were modified: it gets none of them, and its workspace is halted', async () => {
    const [subscriber, other] = [await newSubscriber(), await newSubscriber()]
    await depositTimes(subscriber, 3)
    await deposit(other)
    await owner.query(`set session_replication_role = replica`)
    await owner.query(`update transfer set amount = 50 where workspace_id = $1 and position = 3`, [
      uuidFromId('workspace', subscriber.workspaceId),
    ])
    await owner.query(`reset session_replication_role`)
    const delivered: LeasedWebhook[] = []
    await until('the workspace is halted', async () => {
      delivered.push(...(await lease()))
      const { ledgers } = await admin().ledger.halted()
      return ledgers.some(({ workspaceId }) => workspaceId === subscriber.workspaceId)
    })
    expect((await get(subscriber)).position).toBe(1)
    await dueNow(subscriber)
    delivered.push(...(await lease()))
    expect(delivered.map(({ webhookId }) => webhookId)).toEqual([other.webhookId])
  })

  test('when its events cannot be read: it waits for some seconds', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const locker = await connect(opened.database.ownerUrl)
    try {
      await locker.query('begin; lock table hold in access exclusive mode')
      await until('the lease has ended without deliveries', async () => {
        expect(await lease()).toEqual([])
        return (await nextAttemptOf(subscriber)) > Date.now()
      })
      expect((await get(subscriber)).position).toBe(1)
    } finally {
      await locker.end()
    }
    await dueNow(subscriber)
    expect(positionsOf(await leaseOne())).toEqual([2])
  })

  test('when its workspace reads many lists: its events do not wait for them', async () => {
    const subscribers = [await newSubscriber(), await newSubscriber()]
    for (const subscriber of subscribers) await deposit(subscriber)
    const workspace = uuidFromId('workspace', subscribers[0]!.workspaceId)!
    const lock = 4711
    await owner.query('select pg_advisory_lock($1)', [lock])
    const wait = { name: '', text: `select pg_advisory_xact_lock_shared(${lock})` }
    const reading = Promise.allSettled(
      Array.from({ length: 8 }, () =>
        opened.core.lists.read({ workspace, cost: 'bounded', statement: wait, values: [] }),
      ),
    )
    try {
      const leased = new Set<string>()
      await until('both are leased', async () => {
        for (const { webhookId } of await lease()) leased.add(webhookId)
        return leased.size === 2
      })
      expect([...leased].toSorted()).toEqual(subscribers.map(({ webhookId }) => webhookId).toSorted())
    } finally {
      await owner.query('select pg_advisory_unlock($1)', [lock])
      await reading
    }
  })

  test('when reading its events takes long: the call ends without it', async () => {
    const subscriber = await newSubscriber()
    await deposit(subscriber)
    const locker = await connect(opened.database.ownerUrl)
    await locker.query('begin; lock table journal in access exclusive mode')
    expect(await lease()).toEqual([])
    await locker.end()
    // The lease has ended.
    await dueNow(subscriber)
    expect(positionsOf(await leaseOne())).toEqual([2])
  })

  test('when its row is locked: the calls that wait for it leave connections for others', async () => {
    const [subscriber, other] = [await newSubscriber(), await newSubscriber()]
    await deposit(subscriber)
    const leased = await leaseOne()
    const { workspaceId, webhookId } = subscriber
    const locker = await connect(opened.database.ownerUrl)
    try {
      await locker.query(
        `begin; select from webhook where id = '${uuidFromId('webhook', webhookId)}' for no key update`,
      )
      const calls = Array.from({ length: 20 }, () => [
        service().webhooks.update({ workspaceId, webhookId, caller, concurrency: 2 }),
        service().webhooks.rotate({ workspaceId, webhookId, caller }),
        service().webhooks.seek({ workspaceId, webhookId, caller, after: 0 }),
        service().webhooks.delete({ workspaceId, webhookId, caller }),
        report(leased),
      ])
      const ended = Promise.allSettled(calls.flat())
      const waiting = async () => {
        const { rows } = await owner.query(
          `select from pg_stat_activity
           where datname = current_database() and application_name = 'core reads' and wait_event_type = 'Lock'`,
        )
        return rows.length
      }
      await until('a client and couriers wait', async () => (await waiting()) === 3)
      await get(other)
      await service().webhooks.update({ workspaceId: other.workspaceId, webhookId: other.webhookId, caller, types: [] })
      expect(await waiting()).toBeLessThanOrEqual(3)
      await locker.query('commit')
      await ended
    } finally {
      await locker.end()
    }
  })
})

/** While `action` runs, every update of this webhook fails as one in a workspace that is leaving to another place. */
async function whileLeaving({ webhookId }: Subscriber, action: () => Promise<void>): Promise<void> {
  await owner.query(`
    create function leaves() returns trigger language plpgsql as
      'begin raise exception ''leaves'' using errcode = ''lock_not_available''; end';
    create trigger leaves before update on webhook for each row
      when (new.id = '${uuidFromId('webhook', webhookId)}') execute function leaves()`)
  try {
    await action()
  } finally {
    await owner.query('drop function leaves cascade')
  }
}

test('a webhook whose workspace begins to leave during the call is left out, and the others are leased', async () => {
  const subscribers = [await newSubscriber(), await newSubscriber(), await newSubscriber()]
  for (const subscriber of subscribers) await deposit(subscriber)
  const [leaving, ...others] = subscribers
  await whileLeaving(leaving!, async () => {
    const leased = new Set<string>()
    await until('the others are leased', async () => {
      for (const { webhookId } of await lease()) leased.add(webhookId)
      return leased.size === others.length
    })
    expect([...leased].toSorted()).toEqual(others.map(({ webhookId }) => webhookId).toSorted())
  })
  expect((await leaseOne()).webhookId).toBe(leaving!.webhookId)
})

describe('a webhook whose row was modified outside the service', () => {
  test.each([
    ['url', `url = 'https://attacker.example/'`],
    ['types', `types = '{wallet.frozen}'`],
    ['secret', 'secret = (select secret from webhook where id <> $1 limit 1)'],
    ['status', `status = 'ACTIVE'`],
  ])('is never leased: %s', async (column, assignment) => {
    const subscriber = await newSubscriber()
    const other = await newSubscriber()
    if (column === 'status') await service().webhooks.update({ ...subscriber, caller, status: 'PAUSED' })
    await deposit(subscriber)
    await deposit(other)
    await set(subscriber, `${assignment}, revision = revision + 1`)
    // The others are not held up.
    expect((await leaseOne()).webhookId).toBe(other.webhookId)
    expect(await lease()).toEqual([])
    await dueNow(subscriber)
    expect(await lease()).toEqual([])
    const { workspaceId, webhookId } = subscriber
    const on = { workspaceId, webhookId, caller }
    for (const change of [
      () => service().webhooks.update({ ...on, url: 'https://mine.example/' }),
      () => service().webhooks.rotate(on),
      () => service().webhooks.seek({ ...on, after: 0 }),
    ])
      await expect(change()).rejects.toMatchObject({ cause: { code: 'S002' } })
    await expect(admin().webhooks.update({ ...on, status: 'PAUSED' })).rejects.toThrow('run ledger verify')
    await service().webhooks.delete(on)
    await dueNow(subscriber)
    expect(await lease()).toEqual([])
  })

  test('with a secret that was replaced by that of another webhook, signed anew, is not leased', async () => {
    const subscriber = await newSubscriber()
    const other = await newSubscriber()
    await deposit(subscriber)
    await set(
      subscriber,
      `secret = (select secret from webhook where id = '${uuidFromId('webhook', other.webhookId)}'), revision = revision + 1`,
    )
    await signRows(
      owner,
      opened.chainKey.export().toString('base64'),
      'webhook',
      `id = '${uuidFromId('webhook', subscriber.webhookId)}'`,
    )
    expect(await lease()).toEqual([])
  })
})

test('a webhook that was modified stays known, is not looked up before others, and is again once it is genuine', async () => {
  const { webhookId } = await newSubscriber()
  const id = uuidFromId('webhook', webhookId)!
  const stateIn = (known: KnownWebhooks) => ({
    isKnown: known.has(id),
    isLookedUp: [...known.parts()].flat().includes(id),
  })
  const before = new KnownWebhooks(opened.core.reads, opened.chainKey)
  await before.check(Number.POSITIVE_INFINITY)
  expect(stateIn(before)).toEqual({ isKnown: true, isLookedUp: true })

  await owner.query(`update webhook set url = 'https://other.example/', revision = revision + 1 where id = $1`, [id])
  const later = new KnownWebhooks(opened.core.reads, opened.chainKey)
  later.remember(id)
  await later.check(Number.POSITIVE_INFINITY)
  expect(stateIn(later)).toEqual({ isKnown: true, isLookedUp: false })
  later.remember(id)
  expect(stateIn(later)).toEqual({ isKnown: true, isLookedUp: true })
})
