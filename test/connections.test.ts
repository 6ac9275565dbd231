import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, createPath, signedHeaders } from './setup/client.ts'
import { transferOrder } from './setup/order.ts'
import { openConnection, received, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Clients that misuse their connections. The gateway closes them, and serves everybody else. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gatewayEnvironment: { DOCS: 'on' } })
})
afterAll(() => system.stop())

/** A connection that the client never closes by itself, with this text sent on it. */
async function open(text?: string) {
  const socket = await openConnection(system.baseUrl, true)
  if (text) socket.write(text)
  return socket
}

async function signedRequest(method: string, path: string, body?: string): Promise<string> {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return requestText(method, path, await signedHeaders(system, method, path, body), length, body)
}

const isServed = async () => (await call(system, 'GET', '/api/v1/wallets')).status === 200

test('the gateway survives a client that resets its connection at any point', async () => {
  const { pid } = system.gateways[0]!.process
  for (const text of [
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /api/v1/wal',
    'garbage\r\n\r\n',
    await signedRequest('GET', '/api/v1/wallets'),
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

test('an idle connection is closed, even if its client never closes it', async () => {
  const sockets = await Promise.all(
    Array.from({ length: 20 }, (_, at) => open(at % 2 === 0 ? undefined : 'GET /api/v1/wal')),
  )
  const answers = await Promise.all(sockets.map(received))
  const refused = /^HTTP\/1\.1 400 [\s\S]*X-Request-Id: req_[\s\S]*"code":"S012"/
  // A client would take a response for that to the first request that it sends.
  for (const [at, answer] of answers.entries()) expect(answer).toMatch(at % 2 === 0 ? /^$/ : refused)
  // The server has closed its sockets: it answers further bytes with a reset.
  await until('the server has closed its side', () =>
    sockets.every(socket => {
      if (!socket.destroyed) socket.write('x')
      return socket.destroyed
    }),
  )
})

test.each([
  ['garbage', 'GARBAGE\r\n\r\n'],
  ['a CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
])('%s after a create does not change its answer', async (_, rest) => {
  const body = JSON.stringify(transferOrder(system, { bizId: `pipelined-${randomUUID()}` }))
  const socket = await open((await signedRequest('POST', createPath, body)) + rest)
  const answer = await received(socket)
  expect(answer).not.toContain('S012')
  expect(await isServed()).toBe(true)
})

test('thousands of pipelined requests close the connection, and others are served', async () => {
  const socket = await open('GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3000))
  socket.on('error', () => {})
  const answer = await received(socket)
  expect(answer.split('HTTP/1.1 ').length - 1).toBeLessThanOrEqual(4)
  expect(await isServed()).toBe(true)
})

describe('more connections than a gateway holds', () => {
  const openFrom = (localAddress: string, url: string) =>
    new Promise<Socket>((resolve, reject) => {
      const { port } = new URL(url)
      const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress }, () => resolve(socket))
      socket.on('error', reject)
    })
  const statusFrom = async (localAddress: string, url: string) => {
    const socket = await openFrom(localAddress, url)
    socket.on('error', () => {}).write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    return (await received(socket)).slice(0, 12)
  }
  const isServedFrom = async (address: string, url: string) => (await statusFrom(address, url)) === 'HTTP/1.1 200'

  test('are closed: one address gets half of them, and another one is served', async () => {
    const { url, stop } = await system.startGateway({ MAX_CONNECTIONS: '64' })
    const sockets = await Promise.all(Array.from({ length: 100 }, () => openFrom('127.0.0.2', url)))
    // After a request, a connection stays open for a minute.
    const responses = sockets.map(socket => {
      socket.on('error', () => {}).write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      const first = once(socket, 'data').then(() => 'response')
      return Promise.race([first, once(socket, 'close').then(() => 'closed')]).catch(() => 'closed')
    })
    expect(Map.groupBy(await Promise.all(responses), each => each).get('response')).toHaveLength(32)
    expect(await statusFrom('127.0.0.2', url)).toBe('')
    expect(await isServedFrom('127.0.0.1', url)).toBe(true)
    for (const socket of sockets) socket.destroy()
    await until('the address is served again', () => isServedFrom('127.0.0.2', url))
    await stop()
  })

  test('are not counted for a trusted proxy', async () => {
    const { url, stop } = await system.startGateway({ MAX_CONNECTIONS: '64', TRUSTED_PROXIES: '127.0.0.2' })
    const sockets = await Promise.all(Array.from({ length: 60 }, () => openFrom('127.0.0.2', url)))
    expect(await isServedFrom('127.0.0.2', url)).toBe(true)
    for (const socket of sockets) socket.destroy()
    await stop()
  })
})

test('a few pipelined requests are answered in order', async () => {
  const paths = ['/api/v1/wallets', '/api/v1/nowhere', `/api/v1/wallets/${system.wallets[0]!.walletId}`]
  const requests = await Promise.all(
    [...paths, '/api/v1/transfer/query/orders'].map(path => signedRequest('GET', path)),
  )
  const last = requests.pop()!.replace('Host: x', 'Host: x\r\nConnection: close')
  const socket = await open(requests.join('') + last)
  const codes = [...(await received(socket)).matchAll(/"code":"(\w+)"/g)].map(([, code]) => code)
  expect(codes).toEqual(['2000', '50090201', '2000', '2000'])
})

test('100 Continue is sent only to clients with a known key', async () => {
  const expecting = async (key: string) =>
    (await signedRequest('POST', createPath, '{}'))
      .replace(/\{\}$/, '')
      .replace('Host: x', 'Host: x\r\nExpect: 100-continue')
      .replace(system.apiKey, key)
  const unknownKey = await received(await open(await expecting('ak_01h455vb4pex5vsknk084sn02q')))
  expect(unknownKey).toMatch(/^HTTP\/1\.1 401 /)
  const socket = await open(await expecting(system.apiKey))
  const answer = received(socket)
  socket.once('data', () => socket.write('{}'))
  await until('the answer', async () => (await Promise.race([answer, null])) ?? socket.bytesRead > 200)
  socket.end()
  expect(await answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
})
