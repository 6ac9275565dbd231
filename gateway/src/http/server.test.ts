import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { type BodyError, BodyMemory, BodyReader } from '@workspace-wallet/runtime'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGuardedServer } from './server.ts'

const bodies = new BodyReader({ memory: new BodyMemory(2 ** 20), deadlineMs: 200 })
const app = express()
app.get('/', (_request, response) => void response.send('answered'))
app.post('/', async (request, response) => {
  const { bytes } = await bodies.read(request, { limitBytes: 100, sender: 'test' })
  response.send(bytes.toString())
})
// More than the buffers of two sockets hold.
app.get('/large', (_request, response) => void response.send(Buffer.alloc(32 * 2 ** 20)))
/** Reads the body of a request after its client has gone, with a deadline that no test reaches. */
const patient = new BodyReader({ memory: new BodyMemory(2 ** 20), deadlineMs: 600_000 })
const late = Promise.withResolvers<BodyError>()
app.post('/late', async request => {
  await new Promise(resolve => request.on('close', resolve))
  await patient.read(request, { limitBytes: 100, sender: 'test' }).catch(late.resolve)
})
const server = createGuardedServer(app, { connections: 100 })
/** A connection whose client does not read the answer. It takes up to 40 seconds, so the other tests run meanwhile. */
let stalled: { closed: Promise<unknown> }
async function openStalled(): Promise<typeof stalled> {
  const accepted = once(server, 'connection')
  const socket = (await open()).pause()
  const [connection] = await accepted
  socket.write('GET /large HTTP/1.1\r\nHost: test\r\n\r\n')
  return { closed: once(connection, 'close').finally(() => socket.destroy()) }
}
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  stalled = await openStalled()
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** Stops everything in this process, as if it was frozen: what clients send meanwhile is not read. */
function freeze(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

async function open() {
  const accepted = once(server, 'connection')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await Promise.all([once(socket, 'connect'), accepted])
  return socket
}

test('a connection without a request is closed without a response, which a client could mistake for that to its first request', async () => {
  const socket = await open()
  let received = ''
  socket.on('data', piece => {
    received += piece
  })
  await once(socket, 'close')
  expect(received).toBe('')
})

test('a request that arrived while the process was frozen is not too slow', async () => {
  const socket = await open()
  socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
  freeze(12_000)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK\r\n.*answered$/s)
  socket.destroy()
})

test('a request whose head still arrives after the process was frozen is too slow', async () => {
  const socket = await open()
  socket.write('GET / HTTP/1.1\r\n')
  freeze(12_000)
  const drip = setInterval(() => socket.write('X-Next: 1\r\n'), 100)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 400 .*"code":"S012"/s)
  clearInterval(drip)
  await once(socket, 'close')
})

test('a body that arrived while the process was frozen is not too slow', async () => {
  const socket = await open()
  const asked = once(server, 'request')
  socket.write('POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\n')
  await asked
  socket.write('12345678')
  freeze(1_500)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK\r\n.*12345678$/s)
  socket.destroy()
})

test('a body whose client has gone fails at once, and holds no memory', async () => {
  const socket = await open()
  const asked = once(server, 'request')
  socket.write('POST /late HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\n1234')
  await asked
  socket.destroy()
  expect((await late.promise).fault).toBe('TOO_SLOW')
  expect(patient.usedBytes).toBe(0)
})

test('a connection whose client does not read its answer is closed', async () => {
  await expect(stalled.closed).resolves.toBeDefined()
})
