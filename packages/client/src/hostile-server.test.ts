/** The client against a server that lies, or never ends what it sends. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { createWalletClient, UnexpectedResponseError, type WalletClient } from './index.ts'

const apiSecret = 'the-secret-of-this-client'
const credentials = { apiKey: 'ak_1', apiSecret }
const servers: Server[] = []
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

async function clientOf(listener: RequestListener, options: { now?: () => number } = {}): Promise<WalletClient> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return createWalletClient({ ...credentials, baseUrl, maxRetries: 0, ...options })
}

function envelope(data: unknown, change: object = {}): string {
  return JSON.stringify({ timestamp: Date.now(), success: true, code: '2000', message: 'SUCCESS', data, ...change })
}

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error: unknown) => error,
  )

describe('a loop ends', () => {
  test('when a list says that it has further pages, and they are empty', async () => {
    let requests = 0
    const client = await clientOf((_request, response) => {
      requests++
      response.end(envelope({ content: requests < 3 ? [{ walletId: 'wal_1' }] : [], page: { totalPages: 1e15 } }))
    })
    expect(await Array.fromAsync(client.wallets.listAll())).toHaveLength(2)
    expect(requests).toBe(3)
  })

  test('and the reader of events waits, even if the log says that it has more and does not continue', async () => {
    let requests = 0
    const stop = new AbortController()
    const client = await clientOf((_request, response) => {
      requests++
      response.end(envelope({ content: [], last: 7, lastEventId: 'evt_7', afterEventId: 'evt_7', more: true }))
      if (requests === 3) stop.abort()
    })
    const pauses: number[] = []
    const { setTimeout: wait } = globalThis
    globalThis.setTimeout = ((run: () => void, ms: number) => {
      if (ms === 4321) pauses.push(ms)
      return wait(run, ms === 4321 ? 0 : ms)
    }) as typeof setTimeout
    try {
      const reader = client.events.follow({ after: 7, afterEventId: 'evt_7', pollMs: 4321, signal: stop.signal })
      expect(await failureOf(reader.next())).toMatchObject({ name: 'AbortError' })
      expect(pauses).toEqual([4321, 4321])
    } finally {
      globalThis.setTimeout = wait
    }
  })

  test('when an answer never does', async () => {
    let wasClosed = false
    const client = await clientOf((_request, response) => {
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1_000_000, ' ')));
      }
      response.on('drain', write).on('close', () => (wasClosed = true))
      write()
    })
    const error = await failureOf(client.transfers.get('trf_1'))
    expect(error).toBeInstanceOf(UnexpectedResponseError)
    await until('the connection is closed', () => wasClosed)
  })
})

describe('the clock of the service', () => {
  const day = 86_400_000

  async function timesSent(claimed: number): Promise<number[]> {
    const times: number[] = []
    const client = await clientOf((request, response) => {
      times.push(Number(request.headers['x-timestamp']) * 1000)
      response.writeHead(401).end(envelope(null, { success: false, code: 'GA2013', timestamp: claimed }))
    })
    for (let count = 0; count < 2; count++)
      expect(await failureOf(client.wallets.list())).toMatchObject({ code: 'GA2013' })
    return times
  }

  test.each([day + 60_000, 365 * day, Number.MAX_SAFE_INTEGER, 1e300])(
    'is not followed %d ms into the future, where somebody could send the signed requests later',
    async ahead => {
      const before = Date.now()
      const times = await timesSent(before + ahead)
      expect(times).toHaveLength(2)
      for (const time of times) expect(time).toBeLessThanOrEqual(Date.now())
    },
  )

  test('is followed by up to a day', async () => {
    const times = await timesSent(Date.now() + day - 60_000)
    expect(times.map(time => time > Date.now() + day / 2)).toEqual([false, true, true, true])
  })
})

test.each([
  ['a detail that is no text', { success: false, code: 'T001', detail: { toString: 1 } }],
  ['a code that is no text', { success: false, code: ['T001'] }],
  ['a time that is no number', { timestamp: '1' }],
  ['an infinite time', { timestamp: null }],
])('%s is an unexpected answer', async (_, change) => {
  const client = await clientOf((_request, response) => response.writeHead(400).end(envelope({}, change)))
  expect(await failureOf(client.wallets.list())).toMatchObject({ name: 'UnexpectedResponseError', status: 400 })
})

test('keys of an answer change no prototype', async () => {
  const data = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
  const client = await clientOf((_request, response) => response.end(envelope(0).replace('"data":0', `"data":${data}`)))
  await client.wallets.get('wal_1')
  expect(({} as { polluted?: number }).polluted).toBeUndefined()
})

test('a redirect is not followed', async () => {
  const elsewhere: unknown[] = []
  const other = await clientOf((request, response) => response.end(envelope(elsewhere.push(request.headers))))
  await other.wallets.list()
  const { port } = servers.at(-1)!.address() as AddressInfo
  for (const status of [301, 302, 303, 307, 308]) {
    const client = await clientOf((request, response) =>
      response.writeHead(status, { Location: `http://localhost:${port}${request.url}` }).end(),
    )
    expect(await failureOf(client.wallets.list())).toMatchObject({ name: 'UnexpectedResponseError', status })
  }
  expect(elsewhere).toHaveLength(1)
})

test('the client and its errors do not show the secret', async () => {
  const client = await clientOf((request, response) => {
    response
      .writeHead(400)
      .end(envelope(null, { success: false, code: 'T001', detail: JSON.stringify(request.headers) }))
  })
  const echo = await clientOf(request => request.socket.end(`${JSON.stringify(request.headers)}\r\n`))
  const errors = [await failureOf(client.wallets.list()), await failureOf(echo.wallets.list())]
  for (const shown of [client, ...errors])
    for (const text of [inspect(shown, { depth: 9, showHidden: true }), JSON.stringify(shown), String(shown)])
      expect(text).not.toContain(apiSecret)
})
