import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openHeap } from '../tools/bench/measure/heap.ts'
import { call, createPath, signedHeaders } from './setup/client.ts'
import { exchange, openConnection, received, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** HTTP that is slow, ambiguous or endless. connections.test.ts and hostile.test.ts test other misuse. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

const open = () => openConnection(system.baseUrl)

/** A request without its body, whose hash is signed. */
const signedHead = async (method: string, path: string, lines: string[], body: string) =>
  requestText(method, path, await signedHeaders(system, method, path, body), lines)

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
const isServed = async () => (await call(system, 'GET', '/api/v1/wallets')).status === 200

test('requests that arrive a byte at a time time out, and others are served meanwhile', async () => {
  const request = await signedHead('POST', createPath, ['Content-Length: 1000'], 'x'.repeat(1000))
  const answers = Array.from({ length: 200 }, async (_, at) => {
    const socket = await open()
    const answer = received(socket)
    // Half of them send complete headers and a slow body.
    if (at % 2 === 0) socket.write(request)
    const rest = at % 2 === 0 ? 'x'.repeat(1000) : request
    let next = 0
    const writing = setInterval(() => socket.writable && socket.write(rest[next++]!), 200)
    socket.once('close', () => clearInterval(writing))
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
  ['Transfer-Encoding before Content-Length', 'Transfer-Encoding: chunked\r\nContent-Length: 43', `0\r\n\r\n${hidden}`],
  ['two lengths', `Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden],
  ['a list of lengths', `Content-Length: 0, ${hidden.length}`, hidden],
  ['a length with a sign', `Content-Length: +${hidden.length}`, hidden],
  ['a space before the colon', 'Transfer-Encoding : chunked', `0\r\n\r\n${hidden}`],
  ['an unknown coding', 'Transfer-Encoding: xchunked', `0\r\n\r\n${hidden}`],
  ['chunked, but not last', 'Transfer-Encoding: chunked, identity', `0\r\n\r\n${hidden}`],
  ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', `0\r\n\r\n${hidden}`],
  ['a folded header', 'X-A: a\r\n b\r\nContent-Length: 0', hidden],
  ['a line feed alone', 'X-A: a\nContent-Length: 0', hidden],
  ['a carriage return alone', 'X-A: a\rContent-Length: 0', hidden],
  ['a chunk with a malformed size', 'Transfer-Encoding: chunked', `0x0\r\n\r\n${hidden}`],
  ['a chunk that ends in a line feed alone', 'Transfer-Encoding: chunked', `1\nx\n0\n\n${hidden}`],
])('an ambiguous request is rejected, and the bytes after it are not read: %s', async (_, lines, rest) => {
  const text = await exchange(system.baseUrl, `POST ${createPath} HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n${rest}`)
  expect(text).not.toMatch(/HTTP\/1\.1 (200|5\d\d)/)
  expect(statuses(text).length).toBeLessThanOrEqual(1)
  expect(await isServed()).toBe(true)
})

const head = (line: string, ...lines: string[]) => `${[line, ...lines].join('\r\n')}\r\n\r\n`
const line = `POST ${createPath} HTTP/1.1`
test.each([
  ['two hosts', head(line, 'Host: x', 'host: y', 'Content-Length: 0')],
  ['the same host twice', head(line, 'Host: x', 'Host: x', 'Content-Length: 0')],
  ['no host', head(line, 'Content-Length: 0')],
  ['HTTP/2.0', head(line.replace('1.1', '2.0'), 'Host: x', 'Content-Length: 0')],
  ['HTTP/0.9', head(line.replace('1.1', '0.9'), 'Host: x', 'Content-Length: 0')],
  ['HTTP/1.2', head(line.replace('1.1', '1.2'), 'Host: x', 'Content-Length: 0')],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['another coding before chunked', head(line, 'Host: x', 'Transfer-Encoding: gzip, chunked')],
  ['chunked after an empty coding', head(line, 'Host: x', 'Transfer-Encoding: , chunked')],
  ['chunked in two headers', head(line, 'Host: x', 'Transfer-Encoding: gzip', 'Transfer-Encoding: chunked')],
  ['chunked in HTTP/1.0', head(line.replace('1.1', '1.0'), 'Host: x', 'Transfer-Encoding: chunked')],
  ['an authority with a bracket', head(line.replace('/api', 'http://[x/api'), 'Host: x', 'Content-Length: 0')],
  ['another scheme, without a path', head('GET foo://x HTTP/1.1', 'Host: x')],
  ['a fragment after an authority', head('GET //x@y#z HTTP/1.1', 'Host: x')],
])('a request that RFC 9112 forbids gets 400, and its connection is closed: %s', async (_, request) => {
  for (const sent of [request, request.replace(createPath, '/healthz')]) {
    const answer = await exchange(system.baseUrl, `${sent}0\r\n\r\n${hidden}`)
    expect(statuses(answer)).toEqual(['400'])
    expect(answer).toMatch(/Connection: close\r\n[\s\S]*\{"version":"1\.3\.0",[\s\S]*"code":"S012"/)
  }
})

test('the sentence about a forbidden request says what to send', async () => {
  const ask = (...lines: string[]) => exchange(system.baseUrl, head(line, ...lines, 'X-LOCALE: en-US'))
  expect(await ask('Host: x', 'Host: y')).toContain('"detail":"Host was sent more than once. Send it once."')
  expect(await ask('Host: x', 'Transfer-Encoding: gzip, chunked')).toContain(
    'Transfer-Encoding must be one of chunked.',
  )
})

test('a request with more than 100 headers is refused', async () => {
  const many = Array.from({ length: 100 }, (_, at) => `X-${at}: `)
  const answer = await exchange(system.baseUrl, head('GET /healthz HTTP/1.1', 'Host: x', ...many) + hidden)
  expect(statuses(answer)).toEqual(['400'])
  expect(answer).toContain('"code":"S012"')
  const few = head('GET /healthz HTTP/1.1', 'Host: x', 'Connection: close', ...many.slice(2))
  expect(statuses(await exchange(system.baseUrl, few))).toEqual(['200'])
})

test('an endless body is rejected at the limit, and its connection closed', async () => {
  const head = await signedHead('POST', createPath, ['Transfer-Encoding: chunked'], 'x')
  const socket = await open()
  const answer = received(socket)
  socket.write(head)
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  const writeMore = () => socket.writable && socket.write(chunk, writeMore)
  writeMore()
  // While the client writes, the reset of the connection may overtake the answer.
  expect(await answer).toMatch(/^(HTTP\/1\.1 413 [\s\S]*"code":"S013".*)?$/)
  expect(await isServed()).toBe(true)
})

describe('memory does not grow', () => {
  /** In bytes: less than a kilobyte for each of the thousands of requests. */
  const allowance = 2 * 2 ** 20
  const flood = async (rounds: number, send: () => Promise<unknown>) => {
    for (let round = 0; round < rounds; round++) await Promise.all(Array.from({ length: 100 }, send))
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
    try {
      await flood(10, known)
      await flood(10, unknown)
      const before = await heap.measure()
      await flood(20, known)
      await flood(20, unknown)
      await until('the memory is free again', async () => (await heap.measure()) < before + allowance)
    } finally {
      // Otherwise the gateway waits for the inspector before it exits.
      heap.close()
    }
  })
})
