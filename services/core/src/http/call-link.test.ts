import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterEach, expect, test } from 'vitest'
import { readInIterations, writeEndlessly } from '../../../../test/setup/iterations.ts'
import { until } from '../../../../test/setup/until.ts'
import { CallBodies } from './call-bodies.ts'
import { CallLink } from './call-link.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** A connection to a link of a courier. `rejectedAt`: in which iteration of the event loop each batch was rejected. */
async function openLink(bodies = new CallBodies(2 ** 20), answer = () => Buffer.alloc(0)) {
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
  const link = new CallLink(socket, Buffer.alloc(0), {
    token: { name: 'c', role: 'courier' },
    bodies,
    answer: async () => answer(),
    rejectionOf() {
      rejectedAt.push(iteration)
      return Buffer.from('{}')
    },
  })
  return { client, socket, link, rejectedAt }
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

const pong = packFrame(frameKinds.pong)
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

test('pings are answered one after another, on all connections of a token', async () => {
  const bodies = new CallBodies(2 ** 20)
  const links = await Promise.all(Array.from({ length: 20 }, () => openLink(bodies)))
  const pongs = () => links.reduce((sum, { socket }) => sum + socket.bytesWritten, 0) / pong.length
  for (const { client } of links) client.resume().write(times(50, packFrame(frameKinds.ping)))
  const inIteration: number[] = []
  for (let before = 0; before < 1000; ) {
    await nextIteration()
    inIteration.push(pongs() - before)
    before = pongs()
  }
  expect(Math.max(...inIteration)).toBeLessThanOrEqual(2)
})

test('a ping is answered while batches of its token wait', async () => {
  const bodies = new CallBodies(2 ** 20)
  let answered = 0
  const decodeForLong = () => {
    answered++
    for (const startedAtMs = performance.now(); performance.now() < startedAtMs + 50; );
    return Buffer.alloc(0)
  }
  const busy = await Promise.all(Array.from({ length: 10 }, () => openLink(bodies, decodeForLong)))
  for (const { client } of busy) client.resume().write(packFrame(frameKinds.batch, 1, Buffer.of(0x90)))
  await until('the first batch is answered', () => answered > 0)
  const { client } = await openLink(bodies)
  client.write(packFrame(frameKinds.ping, 7))
  await once(client, 'data')
  expect(answered).toBeLessThan(busy.length / 2)
})

test('of frames that are too large, a piece is dropped at a time, on all connections of a token', async () => {
  const bodies = new CallBodies(2 ** 20)
  const links = await Promise.all(Array.from({ length: 10 }, () => openLink(bodies)))
  const frame = packFrame(frameKinds.batch, 1, Buffer.alloc(16_000_000))
  for (const { client } of links) writeEndlessly(client.resume(), frame)
  const inIteration = await readInIterations(
    links.map(({ socket }) => socket),
    100,
  )
  // Node reads ahead of the first piece of each.
  expect(Math.max(...inIteration.slice(50))).toBeLessThanOrEqual(2 ** 18)
})

test('what core has not read counts as memory', async () => {
  const { client, link } = await openLink()
  client.resume().write(times(50_000, packFrame(frameKinds.ping)))
  // What the reader keeps, and what the socket does.
  await until('core has received more than it answers at once', () => link.waitingBytes > 100_000)
})

test('no pong waits behind what a client does not read', async () => {
  // A link that waits for more than 64 KiB to be read reads nothing itself.
  const answer = Buffer.alloc(16 * 1024)
  const frame = packFrame(frameKinds.answers, 1, answer)
  const { client, socket, link } = await openLink(new CallBodies(2 ** 20), () => answer)
  const batch = packFrame(frameKinds.batch, 1, Buffer.of(0x90))
  const send = async (frames: Buffer) => {
    const before = socket.bytesWritten
    client.pause().write(frames)
    while (socket.bytesWritten < before + frame.length) await nextIteration()
  }
  while (socket.writableLength === 0) await send(batch)
  const before = { unsent: socket.writableLength, all: link.waitingBytes }

  await send(Buffer.concat([times(50, packFrame(frameKinds.ping)), batch]))

  expect(socket.writableLength - before.unsent).toBe(frame.length)
  // A frame takes more than its bytes.
  expect(link.waitingBytes - before.all).toBeGreaterThanOrEqual(frame.length + 512)
})

test('a ping is answered', async () => {
  const { client } = await openLink()
  client.write(packFrame(frameKinds.ping, 7))
  const [pong] = (await once(client, 'data')) as [Buffer]
  expect(pong).toEqual(packFrame(frameKinds.pong, 7))
})
