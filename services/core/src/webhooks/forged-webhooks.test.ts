import { randomUUID } from 'node:crypto'
import { type LeasedWebhook, mintId, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, queryPersistently } from '../../../../test/setup/database.ts'
import { blocksOf, explainStatements, type PlanNode, readPlans } from '../../../../test/setup/plans.ts'
import { until } from '../../../../test/setup/until.ts'
import { statements } from '../database/statement.ts'

/**
 * Whoever has the password of the service's role may insert rows of webhooks. PostgreSQL cannot tell them from genuine ones, and they can
 * have been due for longer than any genuine one.
 */

let opened: TestCore
/** The blocks that the statements of core have read, by the name of the statement: the most of an execution. */
const blocks = new Map<string, number>()
readPlans(({ 'Query Text': text, Plan }: { 'Query Text': string; Plan: PlanNode }) => {
  const name = [...statements.values()].find(each => each.text === text)?.name
  if (name) blocks.set(name, Math.max(blocksOf(Plan), blocks.get(name) ?? 0))
})
beforeAll(async () => {
  opened = await openTestCore({
    async prepare(database) {
      const owner = await connect(database.ownerUrl)
      await explainStatements(owner, database, { nested: false })
      // With autovacuum, the number of blocks would depend on when it runs.
      await owner.query('alter table webhook set (autovacuum_enabled = off)')
      await owner.end()
    },
  })
})
afterAll(() => opened.close())

const caller = { requestId: 'test' }
type Subscriber = { workspaceId: string; walletId: string; webhookId: string }

async function subscribe(to?: Subscriber): Promise<Subscriber> {
  const admin = opened.as('admin')
  const workspaceId = to?.workspaceId ?? (await admin.workspaces.create({ name: 'Test' })).workspaceId
  const walletId = to?.walletId ?? (await admin.wallets.create({ workspaceId, currency: 'USD', name: 'W' })).walletId
  const webhook = { url: 'https://receiver.example/events', bizId: mintId('event') }
  const { webhookId } = await opened.as('service').webhooks.create({ workspaceId, caller, ...webhook })
  return { workspaceId, walletId, webhookId }
}

const deposit = ({ workspaceId, walletId }: Subscriber) =>
  opened.as('admin').wallets.deposit({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })

const lease = async () => (await opened.as('courier').courier.lease({ size: 64 })).webhooks
const report = ({ webhookId, generation, deliveries }: LeasedWebhook) =>
  opened.as('courier').courier.report({
    webhookId,
    generation,
    delivered: deliveries.at(-1)!.position,
    lastStatus: 200,
    lastError: null,
    failure: null,
  })

/** Posts an event in the workspaces of these webhooks, and leases what is due until all of them have got it. */
async function deliverTo(
  subscribers: Subscriber[],
  attack: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  for (const subscriber of subscribers) await deposit(subscriber)
  const waiting = new Set(subscribers.map(({ webhookId }) => webhookId))
  await until(
    'all of them get their event',
    async () => {
      await attack()
      for (const leased of await lease()) if (waiting.delete(leased.webhookId)) await report(leased)
      return waiting.size === 0
    },
    240_000,
  )
}

/** Inserts copies of a webhook with the role of the service. Their columns are SQL, also of the number `n`. */
async function forge(
  count: number,
  { webhookId }: Subscriber,
  { workspace = 'w.workspace_id', position = '0', status = 'ACTIVE' } = {},
): Promise<void> {
  // Core ends a session that holds locks for five seconds.
  const atATime = 10_000
  for (let from = 0; from < count; from += atATime)
    await queryPersistently(
      opened.database.serviceUrl,
      `insert into webhook select gen_random_uuid(), ${workspace}, w.biz_id, decode(md5(n || '${randomUUID()}'), 'hex'),
         w.url, w.types, w.concurrency, '${status}', w.secret, w.secret_version, null, null, null, w.created_at, w.updated_at,
         ${position}, gen_random_uuid(), null, '2020-01-01', '2020-01-01', 0, null, null, null, null, 1, '\\x01'
       from webhook w, generate_series(${from + 1}, ${Math.min(count, from + atATime)}) n
       where w.id = '${uuidFromId('webhook', webhookId)}'`,
    )
}

test('what a call reads does not depend on how many webhooks of a workspace are due', async () => {
  const subscriber = await subscribe()
  const readBy = async () => {
    blocks.clear()
    await lease()
    return Object.fromEntries([...blocks].filter(([name]) => name.startsWith('find-due-')))
  }
  await forge(1_000, subscriber)
  // Core finds that there are forged rows, and which one is genuine.
  await deliverTo([subscriber])
  const few = await readBy()
  expect(Object.keys(few).sort()).toEqual(['find-due-among-webhooks', 'find-due-webhooks'])
  // A row may be read that has nothing to deliver, but not all of them.
  const idle = { position: '(select position from ledger where workspace_id = w.workspace_id)' }
  for (const columns of [{}, idle, { status: 'PAUSED' }]) {
    await forge(20_000, subscriber, columns)
    await deliverTo([subscriber])
    const many = await readBy()
    for (const [name, count] of Object.entries(few)) expect(many[name], name).toBeLessThan(count + 1_000)
  }
})

test('deliveries go on in the same and in other workspaces, with any number of forged rows', {
  timeout: 400_000,
}, async () => {
  const victim = await subscribe()
  const [neighbor, other] = [await subscribe(victim), await subscribe()]
  // This core has not leased any of them before.
  await forge(200_000, victim)
  // Core makes forged rows wait. The same role may also undo that.
  const rearm = () =>
    queryPersistently(
      opened.database.serviceUrl,
      `update webhook set next_attempt_at = '2020-01-01' where mac = '\\x01' and next_attempt_at > now()`,
    )
  await deliverTo([victim, neighbor, other], rearm)
  await deliverTo([victim, neighbor, other], rearm)
})

test('deliveries go on when each of many forged workspaces has a forged webhook', { timeout: 120_000 }, async () => {
  const subscriber = await subscribe()
  await queryPersistently(
    opened.database.serviceUrl,
    `insert into workspace (id, name, created_at, updated_at, revision, mac)
     select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Forged', now(), now(), 1, '\\x01'
     from generate_series(1, 5000) n;
     select open_ledger(('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, date_trunc('milliseconds', clock_timestamp()), '\\x01')
     from generate_series(1, 5000) n`,
  )
  await forge(5_000, subscriber, {
    workspace: `('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid`,
    position: '1',
  })
  await deliverTo([subscriber])
  await deliverTo([subscriber])

  // The line about a genuine one that is modified is not lost among those about forged ones.
  const { known, others } = opened.core.webhookLogs
  const [ofKnown, ofOthers] = [vi.spyOn(known, 'write'), vi.spyOn(others, 'write')]
  await queryPersistently(
    opened.database.serviceUrl,
    `update webhook set url = 'https://other.example/', revision = revision + 1
     where id = '${uuidFromId('webhook', subscriber.webhookId)}'`,
  )
  await deposit(subscriber)
  const isAbout = (write: typeof ofKnown) =>
    write.mock.calls.some(([, { fields }]) => 'webhookId' in fields && fields.webhookId === subscriber.webhookId)
  await until('it is logged', async () => {
    await lease()
    return isAbout(ofKnown)
  })
  expect(isAbout(ofOthers)).toBe(false)
  await queryPersistently(
    opened.database.serviceUrl,
    `update webhook set next_attempt_at = '2020-01-01' where mac = '\\x01' and workspace_id < '00000001-0000-0000-0000-000000000000'`,
  )
  await until('forged ones are logged too', async () => {
    await lease()
    return ofOthers.mock.calls.length > 0
  })
})
