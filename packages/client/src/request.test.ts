/** Retries, errors and the clock, with scripted answers. test/client.test.ts runs the client against the service. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import {
  ApiError,
  ConnectionError,
  createWalletClient,
  RequestError,
  TimeoutError,
  UnexpectedResponseError,
} from './index.ts'

type Reply = { status?: number; headers?: Record<string, string>; body?: object | string } | Error | 'silence'

const secret = 'the-secret'
const serverTime = 1_800_000_000_000
const create = { sourceWalletId: 'wal_1', targetWalletId: 'wal_2', amount: '1.00', currency: 'USD' }

function failure(code: string, status: number, headers: Record<string, string> = {}): Reply {
  const sentence = { detail: 'A sentence.' }
  const body = { version: '1.3.0', timestamp: serverTime, success: false, code, message: `NAME_OF_${code}`, data: null }
  return { status, headers: { 'X-Request-Id': 'req_1', ...headers }, body: { ...body, ...sentence } }
}
const success: Reply = {
  headers: { 'X-Request-Id': 'req_2' },
  body: {
    version: '1.3.0',
    timestamp: serverTime,
    success: true,
    code: '2000',
    message: 'SUCCESS',
    data: { ok: true },
  },
}
function refused(): Error {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' })
  return new TypeError('fetch failed', { cause })
}
const reset = () =>
  new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { syscall: 'read' }) })

/** The pauses between attempts. They end at once. */
const pauses: number[] = []
const timeoutMs = 12_345
beforeEach(() => {
  pauses.length = 0
  const wait = globalThis.setTimeout
  vi.stubGlobal('setTimeout', (run: () => void, ms: number) => {
    if (ms >= timeoutMs) return wait(run, ms)
    pauses.push(ms)
    return wait(run, 0)
  })
})
afterEach(() => vi.unstubAllGlobals())

/** A client whose requests get these replies, the last one again and again. */
function clientOf(replies: Reply[], options: { maxRetries?: number; now?: () => number; timeoutMs?: number } = {}) {
  const sent: { url: string; headers: Record<string, string>; init: RequestInit }[] = []
  const fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    sent.push({ url: String(url), headers: init.headers as Record<string, string>, init })
    const reply = replies[Math.min(sent.length, replies.length) - 1]!
    if (reply instanceof Error) throw reply
    if (reply === 'silence')
      return new Promise((_, reject) => {
        const { signal } = init
        const abort = () => reject(signal?.reason)
        signal?.aborted ? abort() : signal?.addEventListener('abort', abort)
      })
    const { status = 200, headers = {}, body } = reply
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers })
  }
  const credentials = { baseUrl: 'https://wallet.example', apiKey: 'ak_1', apiSecret: secret }
  const client = createWalletClient({ now: () => serverTime, timeoutMs, ...credentials, fetch, ...options })
  return { client, sent }
}

async function errorOf(attempt: Promise<unknown>): Promise<RequestError> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(RequestError)
  return error as RequestError
}

describe('retries', () => {
  test('a command is sent again with the same body, a new nonce and a new time', async () => {
    let now = serverTime
    const replies = [reset(), failure('S002', 503), failure('S003', 504), failure('S029', 429), success]
    const { client, sent } = clientOf(replies, { now: () => (now += 1000) })
    const { data, requestId, status } = await client.request('POST', '/api/v1/x', { body: { ...create, bizId: 'b' } })
    expect({ data, requestId, status }).toEqual({ data: { ok: true }, requestId: 'req_2', status: 200 })
    expect(sent.length).toBe(5)
    expect(new Set(sent.map(({ init }) => init.body))).toEqual(new Set([JSON.stringify({ ...create, bizId: 'b' })]))
    for (const name of ['X-Nonce', 'X-Timestamp', 'X-Signature'])
      expect(new Set(sent.map(({ headers }) => headers[name])).size, name).toBe(5)
  })

  test('a create without a bizId gets one, which all attempts and the error have', async () => {
    const { client, sent } = clientOf([reset()])
    const given = { ...create }
    const error = await errorOf(client.transfers.create(given))
    expect(given).toEqual(create)
    const bodies = sent.map(({ init }) => JSON.parse(String(init.body)).bizId)
    expect(bodies).toEqual(Array.from({ length: 5 }, () => error.bizId))
    expect(error.bizId).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('pauses grow, differ, and are bounded in number', async () => {
    const { client, sent } = clientOf([failure('S002', 503)], { maxRetries: 8 })
    await errorOf(client.wallets.list())
    expect(sent.length).toBe(9)
    for (const [at, pause] of pauses.entries()) {
      const longest = Math.min(250 * 2 ** at, 10_000)
      expect(pause).toBeGreaterThanOrEqual(longest / 2)
      expect(pause).toBeLessThanOrEqual(longest)
    }
    expect(new Set(pauses).size).toBeGreaterThan(1)
  })

  test('Retry-After wins, up to a minute', async () => {
    const { client } = clientOf([failure('S029', 429, { 'Retry-After': '7' }), success])
    await client.wallets.list()
    expect(pauses).toEqual([expect.closeTo(7125, -3)])
    expect(pauses[0]).toBeGreaterThanOrEqual(7000)
    const later = clientOf([failure('S029', 429, { 'Retry-After': '61' })])
    expect(await errorOf(later.client.wallets.list())).toMatchObject({ code: 'S029', retryAfterSeconds: 61 })
    expect(later.sent.length).toBe(1)
  })

  test.each([failure('T002', 422), failure('GA2012', 401), failure('S001', 500), { status: 404, body: '<html>' }])(
    'an answer that would be the same again is not retried: %j',
    async reply => {
      const { client, sent } = clientOf([reply])
      await errorOf(client.transfers.create(create))
      expect(sent.length).toBe(1)
    },
  )

  test('an unknown code is retried by its status', async () => {
    const { client, sent } = clientOf([failure('S999', 503), failure('S998', 429), success])
    await client.wallets.list()
    expect(sent.length).toBe(3)
  })

  test('a command that cannot be repeated is sent again only if it certainly had no effect', async () => {
    const safe = clientOf([refused(), failure('S002', 503), success])
    expect(await safe.client.request('POST', '/api/v1/x', { body: create })).toMatchObject({ status: 200 })
    for (const reply of [reset(), failure('S003', 504)]) {
      const { client, sent } = clientOf([reply])
      expect(await errorOf(client.request('POST', '/api/v1/x', { body: create }))).toMatchObject({ outcome: 'UNKNOWN' })
      expect(sent.length).toBe(1)
    }
    const items = [{ ...create, bizId: 'a' }, create]
    const batch = clientOf([reset(), success])
    await errorOf(batch.client.request('POST', '/api/v1/x', { body: { transfers: items } }))
    const named = items.map((item, at) => ({ ...item, bizId: `b${at}` }))
    await batch.client.request('POST', '/api/v1/x', { body: { transfers: named } })
  })

  test('a release and a change of status are repeated', async () => {
    const { client, sent } = clientOf([reset(), success])
    await client.holds.release('hld_1')
    expect(sent.length).toBe(2)
    const second = clientOf([reset(), success])
    await second.client.wallets.changeStatus('wal_1', 'FROZEN')
    expect(second.sent.length).toBe(2)
  })
})

describe('errors', () => {
  test('an ApiError has what the answer says', async () => {
    const headers = { 'Retry-After': '90', 'X-Batch-Index': '3', 'X-Transfer-Id': 'trf_1' }
    const { client } = clientOf([failure('T002', 422, headers)])
    const error = await errorOf(client.transfers.create({ ...create, bizId: 'b' }))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      name: 'ApiError',
      code: 'T002',
      reason: 'NAME_OF_T002',
      detail: 'A sentence.',
      requestId: 'req_1',
      status: 422,
      retryAfterSeconds: 90,
      batchIndex: 3,
      transferId: 'trf_1',
      bizId: 'b',
      method: 'POST',
      path: '/api/v1/transfer/command/create',
      outcome: 'NOT_EXECUTED',
    })
    expect(error.message).toBe(
      'POST /api/v1/transfer/command/create failed with 422 T002 NAME_OF_T002 (req_1): A sentence.',
    )
  })

  test.each<[string, Reply[], new (...args: never[]) => RequestError, string]>([
    ['refused', [refused()], ConnectionError, 'NOT_EXECUTED'],
    ['lost', [reset()], ConnectionError, 'UNKNOWN'],
    ['no fetch details, as in browsers', [new TypeError('Failed to fetch')], ConnectionError, 'UNKNOWN'],
    ['S002', [failure('S002', 503)], ApiError, 'NOT_EXECUTED'],
    ['S003', [failure('S003', 504)], ApiError, 'UNKNOWN'],
    ['S001', [failure('S001', 500)], ApiError, 'UNKNOWN'],
    ['a proxy without the service', [{ status: 502, body: 'Bad Gateway' }], UnexpectedResponseError, 'UNKNOWN'],
    ['a proxy that is overloaded', [{ status: 503, body: '{}' }], UnexpectedResponseError, 'UNKNOWN'],
    ['another server', [{ status: 404, body: '[]' }], UnexpectedResponseError, 'NOT_EXECUTED'],
    ['a redirect', [{ status: 301, body: '' }], UnexpectedResponseError, 'NOT_EXECUTED'],
    ['half an answer', [{ body: '{"success":' }], UnexpectedResponseError, 'UNKNOWN'],
    // One attempt may have been executed, whatever the others got.
    ['lost, then refused', [reset(), refused()], ConnectionError, 'UNKNOWN'],
    ['lost, then T002', [reset(), failure('T002', 422)], ApiError, 'UNKNOWN'],
  ])('the outcome of a command: %s', async (_, replies, type, outcome) => {
    const { client } = clientOf(replies)
    const error = await errorOf(client.transfers.create(create))
    expect(error).toBeInstanceOf(type)
    expect(error.outcome).toBe(outcome)
    expect(await errorOf(clientOf(replies).client.wallets.list())).toMatchObject({ outcome: 'NOT_EXECUTED' })
    expect(JSON.stringify(error) + error.stack).not.toContain(secret)
  })

  test('a time-out ends each attempt, and names its length', async () => {
    const { client, sent } = clientOf(['silence'], { maxRetries: 1 })
    vi.unstubAllGlobals()
    const error = await errorOf(client.wallets.list({}, { timeoutMs: 1 }))
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error.message).toContain('within 1 ms')
    expect(sent.length).toBe(2)
  })

  test.each<[string, Reply]>([
    ['before it is sent', success],
    ['while it waits for the answer', 'silence'],
    ['while it waits for the next attempt', failure('S002', 503, { 'Retry-After': '30' })],
  ])('an aborted call ends %s', async (when, reply) => {
    vi.unstubAllGlobals()
    const { client, sent } = clientOf([reply])
    const controller = new AbortController()
    const reason = new Error('the user has left')
    if (when === 'before it is sent') controller.abort(reason)
    const call = errorOf(client.transfers.create(create, { signal: controller.signal }))
    await until('the request is sent', () => controller.signal.aborted || sent.length === 1)
    controller.abort(reason)
    const error = await call
    expect(error).toMatchObject({ name: 'AbortError', cause: reason })
    expect(error.outcome).toBe(reply === 'silence' ? 'UNKNOWN' : 'NOT_EXECUTED')
    expect(sent.length).toBe(when === 'before it is sent' ? 0 : 1)
  })
})

describe('the clock', () => {
  const timeOf = ({ headers }: { headers: Record<string, string> }) => Number(headers['X-Timestamp'])

  test('GA2013 sets it from the answer, once; later calls keep it', async () => {
    const { client, sent } = clientOf([failure('GA2013', 401), success], { now: () => serverTime - 3_600_000 })
    await client.wallets.list()
    await client.wallets.list()
    expect(sent.map(timeOf)).toEqual([serverTime / 1000 - 3600, serverTime / 1000, serverTime / 1000])
    expect(pauses).toEqual([])
  })

  test('a second GA2013 is an error', async () => {
    const { client, sent } = clientOf([failure('GA2013', 401)])
    expect(await errorOf(client.wallets.list())).toMatchObject({ code: 'GA2013' })
    expect(sent.length).toBe(2)
  })
})

describe('what is sent', () => {
  test('the query is not signed and repeats names; parameters without a value are left out', async () => {
    const { client, sent } = clientOf([success])
    await client.wallets.list({
      sort: ['amount,asc', 'createdAt,desc'],
      createdFrom: '2026-01-01T00:00:00+01:00',
      size: undefined,
    })
    expect(sent[0]!.url).toBe(
      'https://wallet.example/api/v1/wallets?sort=amount%2Casc&sort=createdAt%2Cdesc&createdFrom=2026-01-01T00%3A00%3A00%2B01%3A00',
    )
    expect(sent[0]!.headers).not.toHaveProperty('Content-Type')
    expect(sent[0]!.headers['X-LOCALE']).toBe('en-US')
  })

  test('fetch neither follows redirects nor sends cookies', async () => {
    const { client, sent } = clientOf([success])
    await client.wallets.list()
    expect(sent[0]!.init).toMatchObject({ redirect: 'manual', credentials: 'omit', cache: 'no-store' })
  })

  test('IDs are percent-encoded, and those that no path can have are refused', async () => {
    const { client, sent } = clientOf([success])
    await client.transfers.get('a/b ?#é..')
    expect(sent[0]!.url).toBe('https://wallet.example/api/v1/transfer/query/orders/a%2Fb%20%3F%23%C3%A9..')
    for (const id of ['', '.', '..']) await expect(client.wallets.get(id)).rejects.toThrow(`"${id}" is not an ID`)
    expect(sent.length).toBe(1)
  })

  test.each(['/api/v1/../x', '/api/v1/a b', '/api/v1/%2e/x', '/api/v1/x?page=1', 'x', '@elsewhere/x', ''])(
    'a path that fetch would change is refused: %s',
    async path => {
      const { client, sent } = clientOf([success])
      await expect(client.request('GET', path)).rejects.toThrow(TypeError)
      expect(sent.length).toBe(0)
    },
  )
})

test.each([
  [{ baseUrl: 'localhost:8080' }, 'baseUrl must be a URL without a path'],
  [{ baseUrl: 'https://wallet.example/api' }, 'baseUrl must be a URL without a path'],
  [{ baseUrl: 'https://user@wallet.example' }, 'baseUrl must be a URL without a path'],
  [{ apiKey: '' }, 'apiKey is empty'],
  [{ apiKey: 'ak 1' }, 'apiKey must be text without spaces'],
  [{ apiSecret: `${secret}\n` }, 'apiSecret must be text without spaces and line breaks'],
  [{ apiSecret: undefined as unknown as string }, 'apiSecret must be text'],
  [{ timeoutMs: 0 }, 'timeoutMs must be between'],
  [{ maxRetries: Number.NaN }, 'maxRetries must be 0 or more'],
])('an invalid option fails at once: %j', (option, message) => {
  const valid = { baseUrl: 'https://wallet.example', apiKey: 'ak_1', apiSecret: secret }
  const create = () => createWalletClient({ ...valid, ...option })
  expect(create).toThrow(message)
  expect(create).not.toThrow(secret)
})
