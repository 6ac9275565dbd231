import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath, signedHeaders } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Clients that misuse their connections: nothing of theirs stays, and nobody else notices. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

function open(text?: string): Promise<Socket> {
  const { hostname, port } = new URL(system.baseUrl)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => {
      if (text) socket.write(text)
      resolve(socket)
    })
    socket.on('error', reject)
  })
}

/** Everything that arrives until the server closes. */
function received(socket: Socket): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    socket.on('data', chunk => (text += chunk))
    for (const end of ['end', 'close', 'error'] as const) socket.on(end, () => resolve(text))
  })
}

function requestText(method: string, path: string, body?: string): string {
  const headers = Object.entries(signedHeaders(system, method, path, body)).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const length = body === undefined ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers.join('')}${length}\r\n${body ?? ''}`
}

const isServed = async () => (await call(system, 'GET', '/api/v1/wallets')).status === 200

test('a reset after CONNECT, and a reset in the middle of anything, do not end the gateway', async () => {
  const { pid } = system.gateways[0]!.process
  for (const text of [
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /api/v1/wal',
    'garbage\r\n\r\n',
    requestText('GET', '/api/v1/wallets'),
  ])
    for (let count = 0; count < 10; count++) {
      const socket = await open(text)
      socket.on('error', () => {})
      socket.resetAndDestroy()
    }
  expect(await isServed()).toBe(true)
  expect(system.gateways[0]!.process.exitCode).toBe(null)
  expect(system.gateways[0]!.process.pid).toBe(pid)
})

test('a connection that says nothing is closed, although its client never closes', async () => {
  const sockets = await Promise.all(
    Array.from({ length: 20 }, (_, at) => open(at % 2 === 0 ? undefined : 'GET /api/v1/wal')),
  )
  const answers = await Promise.all(sockets.map(received))
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*X-Request-Id: req_[\s\S]*"code":"S012"/)
  // The server has let go of them: what we still write is answered by a reset.
  await until('the server has closed its side', () =>
    sockets.every(socket => {
      if (!socket.destroyed) socket.write('x')
      return socket.destroyed
    }),
  )
})

test('garbage behind a create is not taken for its answer', async () => {
  const [source, target] = system.wallets
  const bizId = `pipelined-${randomUUID()}`
  const body = JSON.stringify({
    sourceWalletId: source!.walletId,
    targetWalletId: target!.walletId,
    amount: '1.00',
    currency: 'USD',
    bizId,
  })
  const socket = await open(`${requestText('POST', createPath, body)}GARBAGE\r\n\r\n`)
  const answer = await received(socket)
  expect(answer).not.toContain('S012')
  expect(await isServed()).toBe(true)
})

test('thousands of requests in one piece: the connection is closed, others are served', async () => {
  const socket = await open('GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3000))
  socket.on('error', () => {})
  const answer = await received(socket)
  expect(answer.split('HTTP/1.1 ').length - 1).toBeLessThan(100)
  expect(await isServed()).toBe(true)
})

test('a few requests in one piece are answered, in order', async () => {
  const paths = ['/api/v1/wallets', '/api/v1/nowhere', `/api/v1/wallets/${system.wallets[0]!.walletId}`]
  const last = requestText('GET', '/api/v1/transfer/query/orders').replace('Host: x', 'Host: x\r\nConnection: close')
  const socket = await open(paths.map(path => requestText('GET', path)).join('') + last)
  const codes = [...(await received(socket)).matchAll(/"code":"(\w+)"/g)].map(([, code]) => code)
  expect(codes).toEqual(['2000', '50090201', '2000', '2000'])
})

test('nobody is invited to send a body before his key is known', async () => {
  const expecting = (key: string) =>
    requestText('POST', createPath, '{}')
      .replace(/\{\}$/, '')
      .replace('Host: x', 'Host: x\r\nExpect: 100-continue')
      .replace(system.apiKey, key)
  const stranger = await received(await open(expecting('ak_01h455vb4pex5vsknk084sn02q')))
  expect(stranger).toMatch(/^HTTP\/1\.1 401 /)
  const socket = await open(expecting(system.apiKey))
  const answer = received(socket)
  socket.once('data', () => socket.write('{}'))
  await until('the answer', async () => (await Promise.race([answer, null])) ?? socket.bytesRead > 200)
  socket.end()
  expect(await answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
})
