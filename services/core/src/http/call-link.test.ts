import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../../../test/setup/until.ts'
import { CallBodies } from './call-bodies.ts'
import { CallLink } from './call-link.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** A connection to a link of a courier. `rejectedAt`: in which iteration of the event loop each batch was rejected. */
async function openLink(bodies = new CallBodies(2 ** 20)) {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const { port } = server.address() as { port: number }
  const client = connect(port, '127.0.0.1')
  const [socket] = (await accepted) as [Socket]
  server.close()
  sockets.push(client, socket)
  for (const each of [client, socket]) each.on('error', () => {})
  let iteration = 0
  void (async () => {
    for (; !socket.destroyed; iteration++) await nextIteration()
  })()
  const rejectedAt: number[] = []
  new CallLink(socket, Buffer.alloc(0), {
    token: { name: 'c', role: 'courier' },
    bodies,
    answer: async () => Buffer.alloc(0),
    rejectionOf() {
      rejectedAt.push(iteration)
      return Buffer.from('{}')
    },
  })
  return { client, socket, rejectedAt }
}

/** How many frames of a kind arrive, until one of another kind. */
function countUntil(client: Socket, counted: number, last: number): Promise<number> {
  return new Promise(resolve => {
    let count = 0
    const reader = new FrameReader({
      onHead({ kind }) {
        if (kind === counted) count++
        if (kind === last) resolve(count)
        return true
      },
      onFrame() {},
    })
    client.on('data', piece => reader.push(piece))
  })
}

const times = (count: number, frame: Buffer) => Buffer.concat(Array.from({ length: count }, () => frame))

test.each([
  ['empty', Buffer.alloc(0)],
  ['not MessagePack', Buffer.of(0xc1)],
])(
  'thousands of batches that are %s are rejected one after another, so that others are served meanwhile',
  async (_, body) => {
    const { client, rejectedAt } = await openLink()
    const count = 2_000
    client.write(times(count, packFrame(frameKinds.batch, 1, body)))
    const rejected = countUntil(client, frameKinds.rejection, frameKinds.answers)
    // An array without calls.
    client.write(packFrame(frameKinds.batch, 2, Buffer.of(0x90)))
    expect(await rejected).toBe(count)
    expect(new Set(rejectedAt).size).toBeGreaterThan(count / 2)
  },
)

test.each([
  ['that find no memory', 100_000, 90_000],
  ['that are too large', 2 ** 20, 200_000],
])(
  'nothing is read of a connection while one of its batches waits to be rejected: batches %s',
  async (_, memory, bytes) => {
    const bodies = new CallBodies(memory)
    const links = await Promise.all(Array.from({ length: 20 }, () => openLink(bodies)))
    for (const { client } of links) client.write(times(50, packFrame(frameKinds.batch, 1, Buffer.alloc(bytes))))
    await until('each has rejected some', () => links.every(({ rejectedAt }) => rejectedAt.length > 3))
    for (const { rejectedAt } of links) expect(new Set(rejectedAt).size).toBe(rejectedAt.length)
    for (const { client } of links) client.destroy()
    await until('all connections are closed', () => links.every(({ socket }) => socket.destroyed))
    await until('no body is kept', () => bodies.usedBytes === 0)
  },
)

test('thousands of pings close the connection', async () => {
  const { client } = await openLink()
  const closed = once(client, 'close')
  client.on('error', () => {}).resume()
  client.write(times(5_000, packFrame(frameKinds.ping)))
  await closed
})

test('a ping is answered', async () => {
  const { client } = await openLink()
  client.write(packFrame(frameKinds.ping, 7))
  const [pong] = (await once(client, 'data')) as [Buffer]
  expect(pong).toEqual(packFrame(frameKinds.pong, 7))
})
