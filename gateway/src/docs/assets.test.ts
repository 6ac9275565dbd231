import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import express from 'express'
import { afterAll, expect, test } from 'vitest'
import { Asset } from './assets.ts'

const content = Buffer.from('{"text":"a text that compresses"}'.repeat(1000))
let reads = 0
const read = async () => {
  reads++
  if (reads === 1) throw new Error('EMFILE')
  return content
}
const asset = new Asset('application/json', read, { headers: { 'X-Added': 'yes' } })

let sharedReads = 0
const shared = new Asset('text/plain', async () => {
  sharedReads++
  return content
})

const app = express()
  .disable('etag')
  .use((request, _response, next) => {
    request.requestId = 'req_1'
    next()
  })
  .use('/shared', (request, response) => shared.send(request, response))
  .use((request, response) => asset.send(request, response))
  .use(((_error, _request, response, _next) => response.status(500).end()) as express.ErrorRequestHandler)
const server = createServer(app).listen(0, '127.0.0.1')
afterAll(() => server.close())

async function get(headers: Record<string, string> = {}, method = 'GET', path = '/'): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo
  const [response] = await once(send({ port, host: '127.0.0.1', path, method, headers }).end(), 'response')
  return response as IncomingMessage
}

test('a failure to read is not kept, and a success is', async () => {
  expect((await get()).statusCode).toBe(500)
  for (let count = 0; count < 3; count++) expect(await buffer(await get())).toEqual(content)
  expect(reads).toBe(2)
})

test.each([
  ['br', 'br', brotliDecompressSync],
  ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
  ['gzip', 'gzip', gunzipSync],
  ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
  ['*', 'br', brotliDecompressSync],
  ['identity', undefined, (body: Buffer) => body],
  ['deflate', undefined, (body: Buffer) => body],
  ['', undefined, (body: Buffer) => body],
])('Accept-Encoding "%s" gets %s', async (accepted, encoding, decode) => {
  const response = await get({ 'Accept-Encoding': accepted })
  const body = await buffer(response)
  expect(decode(body)).toEqual(content)
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(body.length),
    'cache-control': 'public, max-age=300',
    vary: 'Accept-Encoding',
    'x-request-id': 'req_1',
    'x-added': 'yes',
    etag: expect.stringMatching(/^"[\w-]{22}"$/),
  })
  expect(response.headers['content-encoding']).toBe(encoding)
})

test('each encoding has an ETag of its own, and a request that names it gets 304 without a body', async () => {
  const tags = new Set<string>()
  for (const encoding of ['br', 'gzip', 'identity']) {
    const { etag } = (await get({ 'Accept-Encoding': encoding })).headers
    tags.add(etag!)
    for (const ifNoneMatch of [etag!, `"other", ${etag}`, `W/${etag}`, '*']) {
      const response = await get({ 'Accept-Encoding': encoding, 'If-None-Match': ifNoneMatch })
      expect([response.statusCode, response.headers.etag, await buffer(response)]).toEqual([304, etag, Buffer.alloc(0)])
      expect(response.headers).toMatchObject({ 'cache-control': 'public, max-age=300', 'x-request-id': 'req_1' })
    }
    expect((await get({ 'Accept-Encoding': encoding, 'If-None-Match': '"other"' })).statusCode).toBe(200)
  }
  expect(tags.size).toBe(3)
})

test('headers that are much longer than usual are not parsed', async () => {
  const { etag } = (await get()).headers
  const long = 'a,'.repeat(2000)
  const response = await get({ 'Accept-Encoding': `${long}br`, 'If-None-Match': `${long}${etag}` })
  expect(response.statusCode).toBe(200)
  expect(response.headers['content-encoding']).toBeUndefined()
  expect(await buffer(response)).toEqual(content)
})

test('a file is read once for any number of requests at once', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => get({ 'Accept-Encoding': 'br' }, 'GET', '/shared')),
  )
  for (const answer of answers) expect(brotliDecompressSync(await buffer(answer))).toEqual(content)
  expect(sharedReads).toBe(1)
})

test('HEAD gets the headers of GET without the body', async () => {
  const { headers: expected } = await get({ 'Accept-Encoding': 'br' })
  const response = await get({ 'Accept-Encoding': 'br' }, 'HEAD')
  expect(await buffer(response)).toHaveLength(0)
  const { date: _, ...headers } = response.headers
  expect(expected).toMatchObject(headers)
})
