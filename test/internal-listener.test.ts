import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { exchange, openConnection, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Callers without a token that misuse the internal listener of a gateway. The gateway serves everybody else. */

let system: System
let gateway: Program
beforeAll(async () => {
  system = await startSystem()
  gateway = system.gateways[0]!
})
afterAll(() => system.stop())

async function expectServed(): Promise<void> {
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
  expect((await fetch(`${gateway.internalUrl}/healthz`)).status).toBe(200)
}

test.each([
  ['Trailer', 'GET', ['Trailer: a'], ''],
  ['Trailer, with a body', 'POST', ['Trailer: a', 'Content-Length: 2'], '{}'],
  ['Trailer and Expect', 'POST', ['Trailer: a', 'Expect: 100-continue', 'Content-Length: 2'], '{}'],
  ['Expect', 'POST', ['Expect: 100-continue', 'Content-Length: 2'], '{}'],
  ['Upgrade', 'GET', ['Upgrade: websocket', 'Sec-WebSocket-Version: 13'], ''],
  ['Transfer-Encoding', 'DELETE', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'],
  ['TE', 'GET', ['TE: trailers', 'Keep-Alive: timeout=1', 'Proxy-Authorization: x'], ''],
])('a header that is about the connection is not passed on to core: %s', async (_, method, lines, body) => {
  const text = requestText(method, '/trpc/session.whoami', { Connection: 'close, upgrade' }, lines, body)
  const [answer] = (await exchange(gateway.internalUrl, text)).split('HTTP/1.1 100 Continue\r\n\r\n').slice(-1)
  expect(answer).toMatch(/^HTTP\/1\.1 401 /)
  await expectServed()
})

test('a body that nobody reads is not received: the connection is closed after the response', async () => {
  const body = ['Content-Length: 1000000']
  const courier = await system.startCourier()
  const targets: [string, string, Record<string, string>][] = [
    ...['/healthz', '/readyz', '/metrics'].map((path): [string, string, Record<string, string>] => [
      gateway.internalUrl,
      path,
      {},
    ]),
    ...['/healthz', '/metrics', '/none'].map((path): [string, string, Record<string, string>] => [
      courier.url,
      path,
      {},
    ]),
    [system.coreUrl, '/healthz', {}],
    [gateway.url, '/', { Accept: 'text/html' }],
    [gateway.url, '/docs', {}],
  ]
  // Resolves when the connection is closed.
  for (const [url, path, headers] of targets)
    expect(await exchange(url, requestText('GET', path, headers, body)), `${url}${path}`).toMatch(
      /\r\nconnection: close\r\n/i,
    )
})

test('thousands of pipelined requests close the connection, and others are served', async () => {
  const sockets = await openMany(20)
  for (const [at, socket] of sockets.entries()) {
    const path = ['/trpc/session.whoami', '/batch', '/metrics', '/console'][at % 4]
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1500))
    socket.resume()
  }
  await until('the connections are closed', () => sockets.every(({ closed }) => closed))
  await expectServed()
})

test('one address has at most half of the connections', async () => {
  const sockets = await openMany(600)
  for (const socket of sockets) socket.resume()
  await until('the connections above the limit are closed', () => sockets.filter(({ closed }) => closed).length >= 88)
  for (const socket of sockets) socket.destroy()
  await until('others are served', async () => (await fetch(`${gateway.internalUrl}/healthz`).catch(() => null))?.ok)
})

test('answers are not cached, and no page of another origin may read them', async () => {
  const authorization = `Bearer ${system.adminToken}`
  for (const url of [gateway.internalUrl, system.coreUrl])
    for (const [method, status] of [
      ['GET', 200],
      ['OPTIONS', 401],
    ] as const) {
      const headers = { Origin: 'https://example.com', ...(method === 'GET' && { authorization }) }
      const answer = await fetch(`${url}/trpc/session.whoami`, { method, headers })
      expect(answer.status).toBe(status)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect([...answer.headers.keys()].filter(name => /^access-control|^set-cookie/.test(name))).toEqual([])
    }
})

test('calls that core does not answer are sampled in the log', async () => {
  await system.cores[0]!.kill('SIGKILL')
  for (let count = 0; count < 50; count++)
    expect((await fetch(`${gateway.internalUrl}/trpc/session.whoami`)).status).toBe(503)
  // The answer may be read before the log line.
  const lines = () => gateway.output().split('\n')
  await until('the first call is logged', () =>
    lines().some(line => line.includes('core did not answer an internal call')),
  )
  await until('the others are counted', () => lines().some(line => line.includes('core did not answer more')))
  expect(lines().filter(line => line.includes('core did not answer')).length).toBeLessThan(10)
})

async function openMany(count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openConnection(gateway.internalUrl)))
  for (const socket of sockets) socket.on('error', () => {})
  return sockets
}
