import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openHeap } from '../tools/bench/heap.ts'
import { call, createPath, signedHeaders } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** What clients do to the bytes of HTTP itself. connections.test.ts and hostile.test.ts hold what they do with it. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

function open(): Promise<Socket> {
  const { hostname, port } = new URL(system.baseUrl)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.on('error', error => (socket.connecting ? reject(error) : undefined))
  })
}

function received(socket: Socket): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    socket.on('data', chunk => (text += chunk))
    socket.on('close', () => resolve(text))
  })
}

async function exchange(bytes: string): Promise<string> {
  const socket = await open()
  const answer = received(socket)
  socket.write(bytes)
  return answer
}

function head(method: string, path: string, lines: string[], body?: string): string {
  const signed = Object.entries(signedHeaders(system, method, path, body)).map(([name, value]) => `${name}: ${value}`)
  return `${method} ${path} HTTP/1.1\r\n${['Host: x', ...signed, ...lines].join('\r\n')}\r\n\r\n`
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
const isServed = async () => (await call(system, 'GET', '/api/v1/wallets')).status === 200

test('headers and bodies that come a byte at a time are cut off; others are served meanwhile', async () => {
  const request = head('POST', createPath, ['Content-Length: 1000'], 'x'.repeat(1000))
  const answers = Array.from({ length: 200 }, async (_, at) => {
    const socket = await open()
    const answer = received(socket)
    // Half of them have sent whole headers, and dawdle with the body.
    if (at % 2 === 0) socket.write(request)
    const rest = at % 2 === 0 ? 'x'.repeat(1000) : request
    let next = 0
    const dripping = setInterval(() => socket.writable && socket.write(rest[next++]!), 200)
    socket.once('close', () => clearInterval(dripping))
    return answer
  })
  expect(await isServed()).toBe(true)
  for (const text of await Promise.all(answers)) {
    expect(statuses(text)).toEqual(['400'])
    expect(text).toContain('"code":"S012"')
  }
})

const hidden = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
test.each([
  ['Content-Length beside Transfer-Encoding', 'Content-Length: 43\r\nTransfer-Encoding: chunked', `0\r\n\r\n${hidden}`],
  ['the other way round', 'Transfer-Encoding: chunked\r\nContent-Length: 43', `0\r\n\r\n${hidden}`],
  ['two lengths', `Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden],
  ['a list of lengths', `Content-Length: 0, ${hidden.length}`, hidden],
  ['a length with a sign', `Content-Length: +${hidden.length}`, hidden],
  ['a space before the colon', 'Transfer-Encoding : chunked', `0\r\n\r\n${hidden}`],
  ['a coding that is none', 'Transfer-Encoding: xchunked', `0\r\n\r\n${hidden}`],
  ['chunked, but not last', 'Transfer-Encoding: chunked, identity', `0\r\n\r\n${hidden}`],
  ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', `0\r\n\r\n${hidden}`],
  ['a folded header', 'X-A: a\r\n b\r\nContent-Length: 0', hidden],
  ['a line feed alone', 'X-A: a\nContent-Length: 0', hidden],
  ['a carriage return alone', 'X-A: a\rContent-Length: 0', hidden],
  ['a chunk whose size is none', 'Transfer-Encoding: chunked', `0x0\r\n\r\n${hidden}`],
  ['a chunk that ends in a line feed alone', 'Transfer-Encoding: chunked', `1\nx\n0\n\n${hidden}`],
])('a request that can be read in two ways is refused, and nothing behind it is read: %s', async (_, lines, rest) => {
  const text = await exchange(`POST ${createPath} HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n${rest}`)
  expect(text).not.toMatch(/HTTP\/1\.1 (200|5\d\d)/)
  expect(statuses(text).length).toBeLessThanOrEqual(1)
  expect(await isServed()).toBe(true)
})

test('a body without end is refused at the limit, and its connection closed', async () => {
  const socket = await open()
  const answer = received(socket)
  socket.write(head('POST', createPath, ['Transfer-Encoding: chunked'], 'x'))
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  const pour = () => socket.writable && socket.write(chunk, pour)
  pour()
  // The answer goes out before the reset, which may overtake it while the client pours.
  expect(await answer).toMatch(/^(HTTP\/1\.1 413 [\s\S]*"code":"S013".*)?$/)
  expect(await isServed()).toBe(true)
})

describe('memory stays where it is', () => {
  /** What a few thousand of them would leave behind, if a request left a kilobyte. */
  const allowance = 4 * 2 ** 20
  const flood = async (send: () => Promise<unknown>) => {
    for (let round = 0; round < 40; round++) await Promise.all(Array.from({ length: 100 }, send))
  }
  test('while one key uses thousands of nonces, and strangers thousands of keys', async () => {
    const gateway = await system.startGateway({ NODE_OPTIONS: '--inspect=127.0.0.1:0' })
    const heap = await openHeap(gateway)
    const target = '/api/v1/nowhere'
    const here = { ...system, baseUrl: gateway.url }
    const known = () => call(here, 'GET', target).then(({ body }) => expect(body.code).toBe('50090201'))
    const unknown = () =>
      call({ ...here, apiKey: `ak_${randomUUID()}` }, 'GET', target).then(({ body }) =>
        expect(body.code).toBe('GA2011'),
      )
    await flood(known)
    await flood(unknown)
    const before = await heap.measure()
    await flood(known)
    await flood(unknown)
    await until('it is given back', async () => (await heap.measure()) < before + allowance)
    heap.close()
  })
})
