import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { LimitedServer } from './limited-server.ts'
import { pipelineLimit as limit } from './pipeline-limit.ts'

const servers: LimitedServer[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(handle: RequestListener) {
  const server = new LimitedServer({ connections: 10 }, {}, handle)
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

/** A server that answers requests, and the number of those that it has got. */
async function startServer() {
  const got = { requests: 0, parsed: 0 }
  const { server, port } = await serve((_, response) => {
    got.requests++
    response.end('served')
  })
  // Each request that Node parses, also one that no handler gets.
  server.on('connection', socket => {
    const { parser } = socket as unknown as { parser: { onIncoming: (...args: unknown[]) => unknown } }
    const { onIncoming } = parser
    parser.onIncoming = (...args) => {
      got.parsed++
      return onIncoming(...args)
    }
  })
  return { got, port }
}

/** Sends a text, and returns what the server answers until it closes the connection. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  let answer = ''
  socket.on('data', piece => {
    answer += String(piece)
  })
  socket.write(text)
  // `once` would fail if the server resets the connection while the client still sends.
  await new Promise(resolve => socket.once('close', resolve))
  return answer
}

const request = (headers = '') => `GET / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
/** The head of a request whose body has this many bytes. */
const head = (bytes: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`

test.each([
  ['plain', request()],
  ['with a body', `${head(2)}ab`],
  ['that ask for another protocol', request('Connection: upgrade\r\nUpgrade: other\r\n')],
  ['that wait for 100', request('Expect: 100-continue\r\n')],
])(
  'the first request above the limit closes the connection, and the next ones are not even parsed: %s',
  async (_, excess) => {
    const { got, port } = await startServer()
    await exchange(port, request().repeat(limit) + excess.repeat(1_000))
    expect(got.requests).toBe(limit)
    expect(got.parsed).toBe(limit + 1)
  },
)

test('a request with a body closes the connection while another one is pending', async () => {
  const { got, port } = await startServer()
  await exchange(port, `${request()}${head(2)}ab${request()}`)
  expect(got).toEqual({ requests: 1, parsed: 2 })
})

test('long targets and headers also close the connection if several requests have them, and not if one has', async () => {
  const long = request(`X-Long: ${'x'.repeat(15_000)}\r\n`)
  const target = `GET /${'x'.repeat(15_000)} HTTP/1.1\r\nHost: x\r\n\r\n`
  for (const first of [long, target]) {
    const { got, port } = await startServer()
    await exchange(port, first + long.repeat(100))
    expect(got).toEqual({ requests: 2, parsed: 3 })
  }
  const { got, port } = await startServer()
  const socket = connect(port, '127.0.0.1')
  for (const each of [long, target, long]) {
    socket.write(each)
    expect(String((await once(socket, 'data'))[0])).toContain('served')
  }
  expect(got.requests).toBe(3)
  socket.destroy()
})

test.each([101, 120, 600, 1_200])(
  'a request with more headers than the limit closes the connection, and its body is not parsed: %i',
  async count => {
    let requests = 0
    const { port } = await serve((_, response) => {
      requests++
      response.end()
    })
    const many = Array.from({ length: count - 2 }, (_, at) => `a${at}:\r\n`).join('')
    const body = request()
    await exchange(port, request(`${many}Content-Length: ${body.length}\r\n`) + body)
    expect(requests).toBe(0)
  },
)

test.each([
  ['with an unknown expectation', request('Expect: x\r\n')],
  ['without a Host header', 'GET / HTTP/1.1\r\n\r\n'],
])('requests to which Node would respond itself count: %s', async (_, uncounted) => {
  const { got, port } = await startServer()
  await exchange(port, uncounted.repeat(1_000))
  expect(got).toEqual({ requests: limit, parsed: limit + 1 })
})

test('as many requests as the limit are answered, again and again', async () => {
  const { got, port } = await startServer()
  const socket = connect(port, '127.0.0.1')
  for (let round = 1; round <= 3; round++) {
    socket.write(request().repeat(limit))
    let answer = ''
    while (answer.split('served').length <= limit) answer += String((await once(socket, 'data'))[0])
    expect(got.requests).toBe(round * limit)
  }
  socket.destroy()
})

test('what has arrived of a body that nobody reads is not kept in any number of pieces', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(request('Transfer-Encoding: chunked\r\n') + '1\r\nx\r\n'.repeat(60_000))
  await until('the pieces are too many', () => requests[0]?.hasTooManyPieces)
  expect(requests[0]!.readableLength).toBeLessThan(2_000)
  socket.destroy()
})

test('what has arrived of a body is one piece for whoever reads it later', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  const text = 'x'.repeat(32)
  socket.write(`${request('Transfer-Encoding: chunked\r\n')}${`20\r\n${text}\r\n`.repeat(1_000)}0\r\n\r\n`)
  await until('the body has arrived', () => requests[0]?.complete)
  const pieces: unknown[] = []
  requests[0]!.on('data', piece => pieces.push(String(piece)))
  await once(requests[0]!, 'end')
  expect(pieces).toEqual([text.repeat(1_000)])
  socket.destroy()
})

test('large pieces of a body that nobody reads yet stay separate, and in order', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  const [small, large] = ['x'.repeat(32), 'y'.repeat(16_384)]
  const part = `20\r\n${small}\r\n20\r\n${small}\r\n4000\r\n${large}\r\n`
  socket.write(`${request('Transfer-Encoding: chunked\r\n')}${part.repeat(2)}0\r\n\r\n`)
  await until('the body has arrived', () => requests[0]?.complete)
  const pieces: string[] = []
  requests[0]!.on('data', piece => pieces.push(String(piece)))
  await once(requests[0]!, 'end')
  expect(pieces.join('')).toBe((small + small + large).repeat(2))
  expect(pieces).toContain(large)
  expect(pieces).toContain(small + small)
  socket.destroy()
})

test('small pieces between large ones take little memory', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  const part = `1\r\nx\r\n1\r\nx\r\n1000\r\n${'y'.repeat(4096)}\r\n`
  socket.write(`${request('Transfer-Encoding: chunked\r\n')}${part.repeat(10)}0\r\n\r\n`)
  await until('the body has arrived', () => requests[0]?.complete)
  const pieces: Buffer[] = []
  requests[0]!.on('data', piece => pieces.push(piece))
  await once(requests[0]!, 'end')
  const memory = new Set(pieces.map(({ buffer }) => buffer))
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  expect(bytes).toBe(10 * 4098)
  expect([...memory].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(1.2 * bytes)
  socket.destroy()
})

test('while nobody reads a body, little of it is read from the connection', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(request('Content-Length: 16777216\r\n') + 'x'.repeat(2 ** 24))
  await until('some has arrived', () => (requests[0]?.readableLength ?? 0) > 4096)
  for (let iteration = 0; iteration < 100; iteration++) await nextIteration()
  expect(requests[0]!.readableLength).toBeLessThanOrEqual(68 * 1024)
  socket.destroy()
})

test('the trailers of a request are not kept', async () => {
  const requests: IncomingMessage[] = []
  const { port } = await serve(request => requests.push(request.resume()))
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(`${request('Transfer-Encoding: chunked\r\n')}1\r\nx\r\n0\r\nA: ${'x'.repeat(10_000)}\r\n\r\n`)
  await until('the request is complete', () => requests[0]?.complete)
  expect([requests[0]!.rawTrailers, requests[0]!.trailers]).toEqual([[], {}])
  socket.destroy()
})

/** More than the kernel takes. */
const largeResponse = Buffer.alloc(16 * 2 ** 20)

test.each([
  ['complete', head(50_000) + 'x'.repeat(50_000)],
  ['in pieces', `${request('Transfer-Encoding: chunked\r\n')}${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n`],
  ['not complete', head(10 * 2 ** 20) + 'x'.repeat(2 ** 20)],
])('a body that nobody reads is not kept while the client does not read the response: %s', async (_, text) => {
  const requests: IncomingMessage[] = []
  const { port } = await serve((request, response) => {
    requests.push(request)
    // Once something of it is kept.
    setImmediate(() => response.end(largeResponse))
  })
  const socket = connect(port, '127.0.0.1')
    .on('error', () => {})
    .pause()
  socket.write(text)
  await until('all that was sent has been read', () => requests[0] && requests[0].socket.bytesRead === text.length)
  await until('nothing of it is kept', () => requests[0]!.readableLength === 0)
  expect(requests[0]!.socket.writableLength).toBeGreaterThan(0)
  socket.destroy()
})

test('a client that sends a body without an end while it does not read the response is disconnected', async () => {
  const { port } = await serve((_, response) => void response.end(largeResponse))
  const socket = connect(port, '127.0.0.1')
    .on('error', () => {})
    .pause()
  // `once` would fail if the server resets the connection while the client still sends.
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.write(head(2 ** 30))
  const piece = Buffer.alloc(2 ** 20)
  const send = () => void socket.write(piece, error => error ?? send())
  send()
  await closed
})

const app = express()
app.use((_, response) => void response.json('served'))

test.each<[string, RequestListener]>([
  ['Node', (_, response) => void response.end('served')],
  ['Node, with headers', (_, response) => void response.writeHead(200, { 'Content-Length': 6 }).end('served')],
  ['Express', app],
])('a response to a request with an unread body closes the connection: %s', async (_, handle) => {
  const { port } = await serve(handle)
  const answer = await exchange(port, `${head(1_000_000_000)}ab`)
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(answer).toMatch(/\r\nConnection: close\r\n/)
  expect(answer).toContain('served')
})

test('a client that reads only after it has sent its whole body gets the response to it', async () => {
  const { port } = await serve((_, response) => void response.end('served'))
  const socket = connect(port, '127.0.0.1')
  const bytes = 8 * 2 ** 20
  await new Promise(resolve => socket.write(head(bytes) + 'x'.repeat(bytes), resolve))
  expect((await socket.toArray()).join('')).toMatch(/^HTTP\/1\.1 200 OK.*served$/s)
})

test.each([
  ['with an unread body', head(2), 'ab'],
  ['for an upgrade that is ignored', request('Connection: upgrade\r\nUpgrade: other\r\n'), ''],
])('no request behind one %s is handled', async (_, first, body) => {
  const targets: (string | undefined)[] = []
  const { port } = await serve(({ url }, response) => {
    targets.push(url)
    response.end('served')
  })
  const socket = connect(port, '127.0.0.1')
    .on('error', () => {})
    .resume()
  socket.write(first)
  await once(socket, 'data')
  socket.write(`${body}GET /other HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'close')
  expect(targets).toEqual(['/'])
})

test('what a client sends after the response to an unread body is not parsed', async () => {
  const { server, port } = await serve((_, response) => void response.end('served'))
  const faults: (string | undefined)[] = []
  server.on('clientError', (error: NodeJS.ErrnoException) => faults.push(error.code))
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).resume()
  socket.write(request('Transfer-Encoding: chunked\r\n'))
  await once(socket, 'end')
  socket.write('no size of a chunk\r\n')
  const [connection] = await accepted
  await once(connection, 'close')
  expect(faults).not.toContain('HPE_INVALID_CHUNK_SIZE')
  socket.destroy()
})

test.each<[string, (socket: Socket) => void]>([
  ['a body without an end', socket => socket.write('x'.repeat(2 ** 20))],
  ['no more', () => {}],
])('a client that sends %s after the response, and never closes its connection, is cut off', async (_, send) => {
  const { server, port } = await serve((_, response) => void response.end('served'))
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  socket.resume().write(head(2 ** 40))
  socket.on('drain', () => send(socket))
  send(socket)
  const [connection] = await accepted
  await once(connection, 'close')
  expect(connection.bytesRead).toBeLessThan(20 * 2 ** 20)
  socket.destroy()
})

test('a connection that its client has reset before it is accepted, and so has no address, serves no request', async () => {
  const { server } = await serve((_, response) => void response.end())
  const socket = new Socket()
  expect(socket.remoteAddress).toBeUndefined()
  server.emit('connection', socket)
  expect(socket.destroyed).toBe(true)
})
