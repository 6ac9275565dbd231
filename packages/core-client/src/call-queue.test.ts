import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type ReceivedBatch, serveBatches } from '../../../test/setup/batches.ts'
import { until } from '../../../test/setup/until.ts'
import { defaultAnswerLimits } from './answer-limits.ts'
import { CallQueue, type Gathering } from './call-queue.ts'
import { CoreConnection } from './core-connection.ts'
import { PendingCall } from './pending-call.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

/** A queue of calls to a core that the test answers for. */
async function startQueue(gathering?: Gathering) {
  const batches: ReceivedBatch[] = []
  const server = createServer()
  serveBatches(server, batch => batches.push(batch))
  server.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const core = new CoreConnection(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    { token: 'x', answers: defaultAnswerLimits },
    () => {},
  )
  const limits = { channel: 'commands', batches: 2, callsPerBatch: 100, waitMs: 60_000, timeoutMs: 60_000 } as const
  const queue = new CallQueue([core], gathering ? { ...limits, gathering } : limits)
  const answered: unknown[] = []
  return {
    queue,
    batches,
    answered,
    sizes: () => batches.map(({ calls }) => calls.length),
    /** Each in a turn of the event loop of its own. */
    async add(count: number, workspaceId = 'a') {
      for (let at = 0; at < count; at++) {
        const observer = { next: (value: unknown) => answered.push(value), error: () => {} }
        queue.add(
          new PendingCall(
            { path: 'transfers.create', type: 'mutation', input: { workspaceId } },
            observer as never,
            undefined,
          ),
        )
        await new Promise(setImmediate)
      }
    },
    answer(at: number) {
      batches[at]!.reply(batches[at]!.calls.map(() => ({ data: null })))
    },
  }
}

const patient = { calls: 4, atMostMs: 50_000 }

test('a call is sent at once, and what is called meanwhile together when it is answered', async () => {
  const { add, sizes, answer, answered } = await startQueue(patient)
  await add(1)
  await until('the first call has arrived', () => sizes().length === 1)
  await add(3)
  answer(0)
  await until('the others have arrived', () => sizes().length === 2)
  expect(sizes()).toEqual([1, 3])
  answer(1)
  await until('all are answered', () => answered.length === 4)
})

test('as many calls as are gathered do not wait for the batch in flight', async () => {
  const { add, sizes } = await startQueue(patient)
  await add(1)
  await until('the first call has arrived', () => sizes().length === 1)
  await add(4)
  await until('the others have arrived', () => sizes().length === 2)
  expect(sizes()).toEqual([1, 4])
})

test('a batch that takes long does not keep the next call waiting', async () => {
  const { add, sizes } = await startQueue({ calls: 4, atMostMs: 25 })
  await add(1)
  await until('the first call has arrived', () => sizes().length === 1)
  await add(1)
  await until('the next one has arrived', () => sizes().length === 2)
})

test('a workspace whose calls take all batches keeps no other one waiting', async () => {
  const { add, batches, answer } = await startQueue()
  const workspaces = () =>
    batches.map(({ calls }) => calls.map(({ input }) => (input as { workspaceId: string }).workspaceId))
  await add(4, 'a')
  await add(1, 'b')
  await until('the other call has arrived', () => batches.length === 3)
  expect(workspaces()).toEqual([['a'], ['a'], ['b']])
  // Now it has a call in flight as well.
  await add(2, 'b')
  await add(1, 'c')
  await add(1, 'd')
  await until('twice as many are in flight', () => batches.length === 4)
  expect(workspaces().at(-1)).toEqual(['c'])
  for (const at of [0, 1, 2]) answer(at)
  await until('those that waited take turns', () => batches.length === 5)
  expect(workspaces().at(-1)!.toSorted()).toEqual(['a', 'a', 'b', 'b', 'd'])
})

test('a batch that takes long, and was sent long ago, lets no call be gathered', async () => {
  const { queue, add, sizes, answer, answered } = await startQueue({ calls: 4, atMostMs: 100 })
  await add(1, 'a')
  await add(1, 'b')
  expect(queue.waiting).toBe(1)
  await until('the second call has waited, and was sent', () => sizes().length === 2)
  answer(1)
  await until('it is answered', () => answered.length === 1)
  await add(1, 'b')
  expect(queue.waiting).toBe(0)
})
