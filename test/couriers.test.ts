/** Couriers and core are killed and frozen under load. webhook-delivery.test.ts has the rules of delivery. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { call, createPath } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { pauseAfter } from './setup/load.ts'
import { transferOrder } from './setup/order.ts'
import { type Receiver, startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { type Webhooks, webhooksOf } from './setup/webhooks.ts'

let system: System
let webhooks: Webhooks
let owner: pg.Client
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
  webhooks = webhooksOf(system)
  owner = await connect(system.database.ownerUrl)
})
afterAll(async () => {
  await webhooks.close()
  await owner.end()
  await system.stop()
})

type Subscription = { receiver: Receiver; webhookId: string; concurrency: number }

async function subscribe(concurrency: number): Promise<Subscription> {
  let requests = 0
  const receiver = await startReceiver(() => (++requests % 40 === 0 ? 500 : 200))
  return { receiver, concurrency, webhookId: await webhooks.create(receiver, { concurrency }) }
}

/** Repeats are allowed. An event that arrives before the success of the one before it is not. */
function expectOrder({ received }: Receiver, start: number): void {
  let succeeded = start
  for (const { event, status } of received) {
    expect(event.position).toBeLessThanOrEqual(succeeded + 1)
    if (status === 200) succeeded = Math.max(succeeded, event.position)
  }
}

test('while couriers and a core are killed and frozen, every event arrives, in order', async () => {
  const subscriptions = [await subscribe(1), await subscribe(1), await subscribe(4)]
  const start = await webhooks.head()
  const couriers: Program[] = [await system.startCourier(), await system.startCourier()]
  /** The least position of all webhooks. Ends the waits after failures. */
  const progress = async () => {
    await owner.query('update webhook set next_attempt_at = now() where next_attempt_at > now()')
    const { rows } = await owner.query('select min(position)::int as position from webhook')
    return rows[0].position as number
  }

  let isLoading = true
  let transfers = 0
  const load = (async () => {
    while (isLoading) {
      // Deliveries must catch up in the end.
      await until('the webhooks catch up', async () => !isLoading || start + transfers - (await progress()) < 200)
      const { body } = await call(system, 'POST', createPath, transferOrder(system, { bizId: randomUUID() }))
      if (body.code === '2000') transfers++
      await pauseAfter(body.code)
    }
  })()
  /** Waits until every webhook has advanced. Leases of killed couriers end at once. */
  const advances = async () => {
    await owner.query('update webhook set leased_until = now()')
    const before = await progress()
    await until('all webhooks advance', async () => (await progress()) > before)
  }

  for (let round = 0; round < 2; round++) {
    await advances()
    await couriers[0]!.kill('SIGKILL')
    await advances()
    await couriers[1]!.kill('SIGSTOP')
    couriers[0] = await system.startCourier()
    await advances()
    // Its leases are over, but it believes that it still has them.
    await couriers[1]!.kill('SIGCONT')
    await advances()
    couriers.reverse()
  }
  const core = system.cores[1]!
  await core.kill('SIGKILL')
  await advances()
  await system.startCore({ CORE_PORT: String(core.port) })
  await advances()
  isLoading = false
  await load
  expect(transfers).toBeGreaterThan(0)

  const head = await webhooks.head()
  await owner.query('update webhook set leased_until = now()')
  await until('all events are delivered', async () => (await progress()) === head)
  for (const courier of couriers) expect(await courier.stop()).toBe(0)
  for (const subscription of subscriptions) {
    const { received, forged } = subscription.receiver
    expect(forged).toEqual([])
    const succeeded = new Set(received.filter(({ status }) => status === 200).map(({ event }) => event.position))
    expect([...succeeded].sort((a, b) => a - b)).toEqual(
      Array.from({ length: head - start }, (_, at) => start + 1 + at),
    )
    if (subscription.concurrency === 1) expectOrder(subscription.receiver, start)
    expect((await webhooks.get(subscription.webhookId)).position).toBe(head)
    await subscription.receiver.stop()
  }
})
