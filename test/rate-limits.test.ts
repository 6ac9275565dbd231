import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { networkOf } from '@workspace-wallet/runtime'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Redis, startRedis } from '../cli/processes/redis.ts'
import { type Answer, type Credentials, call, createPath, type Overrides } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** Rate limits: off by default, counted over all gateways, and after the codes of section 5.3. */

const list = '/api/v1/wallets'
const unknownKey = 'ak_01h455vb4pex5vsknk084sn02q'
const keyLimit = { KEY_REQUESTS_PER_SECOND: '1', KEY_REQUESTS_BURST: '5' }
/** Five failures, and another one every 12 s. X-Forwarded-For sets the address of a client. */
const failureLimit = { FAILED_AUTH_PER_MINUTE: '5', TRUSTED_PROXIES: '127.0.0.1' }
const failureIntervalMs = 12_000

let redis: Redis
let system: System
beforeAll(async () => {
  redis = await startRedis()
  system = await startSystem({ gatewayEnvironment: { REDIS_URL: redis.url } })
})
afterAll(async () => {
  await system.stop()
  await redis.stop()
})

/** Where requests are counted: in Redis by two gateways, or in the nonce file of the one gateway in embedded mode. */
const stores = [
  { where: 'in Redis, by two gateways', gateways: 2, store: async () => ({}) },
  {
    where: 'in the one gateway of embedded mode',
    gateways: 1,
    store: async () => ({ REDIS_URL: undefined, NONCE_FILE: join(await makeTempDir('limits'), 'nonces.db') }),
  },
]

const newKey = (options: { ipAllowlist?: string[] } = {}) => createKey(system, { scopes: ['wallet:read'], ...options })

test('without limits, answers have no RateLimit fields, and any number of requests may fail', async () => {
  const wallet = `${list}/${system.wallets[0]!.walletId}`
  for (let count = 0; count < 50; count++) {
    const { body, headers } = await call(system, 'GET', list, undefined, { headers: { 'X-Api-Key': unknownKey } })
    expect(body.code).toBe('GA2011')
    expect(headers.get('ratelimit') ?? headers.get('ratelimit-policy')).toBe(null)
  }
  const answers = await Promise.all(Array.from({ length: 50 }, () => call(system, 'GET', wallet)))
  for (const { status, headers } of answers)
    expect([status, headers.get('ratelimit'), headers.get('ratelimit-policy')]).toEqual([200, null, null])
})

test('Redis stores no nonces of requests above the limit, whatever path they ask for', async () => {
  const { url, stop } = await system.startGateway({ KEY_REQUESTS_PER_SECOND: '1', KEY_REQUESTS_BURST: '5' })
  onTestFinished(async () => void (await stop()))
  await until('the gateway is ready', async () => (await fetch(`${url}/readyz`)).ok)
  const key = await newKey()
  const paths = [list, '/api/v1/nowhere', `${list}/`, '/api/v1/transfer/query/orders']
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, at) => call({ ...key, baseUrl: url }, 'GET', paths[at % paths.length]!)),
  )
  const passed = answers.filter(({ body }) => body.code !== 'S029').length
  expect(passed).toBeGreaterThanOrEqual(5)
  expect(passed).toBeLessThan(200)
  const client = await createClient({ url: redis.url }).connect()
  const stored = await client.keys(`nonce:${key.apiKey}:*`)
  client.destroy()
  expect(stored).toHaveLength(passed)
})

describe.each(stores)('the limit of a key, counted $where', ({ gateways, store }) => {
  const started: Program[] = []
  let urls: string[]
  afterAll(() => Promise.all(started.map(gateway => gateway.stop())))
  beforeAll(async () => {
    const environment = { ...keyLimit, ...(await store()) }
    for (let count = 0; count < gateways; count++) started.push(await system.startGateway(environment))
    urls = started.map(({ url }) => url)
    // A new nonce file is a new generation, which rejects requests that may have been accepted before it began.
    const probe = await newKey()
    const timestamp = () => String(Math.floor(Date.now() / 1000) + 60)
    for (const baseUrl of urls)
      await until('the gateway serves', async () => {
        const answer = await call({ ...probe, baseUrl }, 'GET', list, undefined, { timestamp: timestamp() })
        return answer.status !== 503
      })
  })
  const send = (at: number, key: { apiKey: string; apiSecret: string }, overrides: Overrides = {}) => {
    const timestamp = String(Math.floor(Date.now() / 1000) + 60)
    return call({ ...key, baseUrl: urls[at % urls.length]! }, 'GET', list, undefined, { timestamp, ...overrides })
  }
  const untilOver = (key: { apiKey: string; apiSecret: string }) =>
    until('over the limit', async () => {
      const answer = await send(0, key)
      return answer.body.code === 'S029' && answer
    })

  test('allows the burst and the steady rate, and answers report them', async () => {
    const key = await newKey()
    const startedAt = performance.now()
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => send(at, key)))
    const seconds = Math.floor((performance.now() - startedAt) / 1000)
    const codes = answers.map(({ body }) => body.code)
    const served = codes.filter(code => code === '2000').length
    expect(served).toBeGreaterThanOrEqual(5)
    expect(served).toBeLessThanOrEqual(5 + seconds + 1)
    expect(codes.filter(code => code === 'S029')).toHaveLength(40 - served)
    const remaining = answers.map(({ headers }) => {
      expect(headers.get('ratelimit-policy')).toBe('"key";q=5;w=5')
      return Number(/^"key";r=(\d+);t=[0-5]$/.exec(headers.get('ratelimit')!)![1])
    })
    expect(Math.max(...remaining)).toBe(4)
    for (const { status, headers, body } of answers) {
      if (body.code !== 'S029') continue
      expect(body).toMatchObject({ success: false, message: 'TOO_MANY_REQUESTS', data: null })
      expect([status, headers.get('retry-after'), headers.get('ratelimit')]).toEqual([429, '1', '"key";r=0;t=1'])
    }
    await until('the next one', async () => (await send(0, key)).status === 200)
    expect((await send(0, await newKey())).status).toBe(200)
  })

  test('comes after steps 1 to 6 and before the others, and counts requests for every path', async () => {
    const reader = await newKey()
    const { nonce, timestamp } = { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + 60) }
    await send(0, reader, { nonce, timestamp })
    await untilOver(reader)
    const credentials = { ...reader, baseUrl: urls[0]! }
    const signed = { timestamp }
    const codeOf = async (answer: Promise<Answer>) => (await answer).body.code
    expect(await codeOf(send(0, reader, { nonce, timestamp }))).toBe('GA2013')
    expect(await codeOf(send(0, reader, { timestamp: '1' }))).toBe('GA2013')
    expect(await codeOf(send(0, reader, { secret: 'x' }))).toBe('GA2012')
    const restricted = await newKey({ ipAllowlist: ['203.0.113.7'] })
    const requests: [string, () => Promise<Answer>][] = [
      ['GA2024', () => call(credentials, 'POST', createPath, '{', signed)],
      ['50090201', () => call(credentials, 'GET', '/api/v1/nowhere', undefined, signed)],
      ['GA2022', () => send(0, restricted)],
    ]
    // Every request with a valid signature counts, and is limited, whatever step it would fail in.
    for (const [code, request] of requests) {
      const seen = new Set<string>()
      await until(`S029 in place of ${code}`, async () => seen.add(await codeOf(request())).has('S029'))
      expect([...seen].filter(each => each !== 'S029' && each !== code)).toEqual([])
    }
    await until(`${requests[0]![0]} again`, async () => (await codeOf(requests[0]![1]())) === 'GA2024')
  })

  test('does not use up the nonce of a rejected request', async () => {
    const key = await newKey()
    const over = { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + 60) }
    await untilOver(key)
    await until('it is limited', async () => {
      const { body } = await send(0, key, over)
      // The bucket may have refilled meanwhile, and the nonce is used up.
      if (body.code === '2000') over.nonce = randomUUID()
      return body.code === 'S029'
    })
    await until('there is room', async () => (await send(0, key, over)).body.code === '2000')
    expect((await send(0, key, over)).body.code).toBe('GA2013')
  })

  test('cannot be used up with wrong signatures or replays', async () => {
    const key = await newKey()
    const replayed = { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + 60) }
    const { headers } = await send(0, key, replayed)
    expect(headers.get('ratelimit')).toContain(';r=4;')
    for (let count = 0; count < 20; count++) {
      expect((await send(count, key, { secret: 'x' })).body.code).toBe('GA2012')
      expect((await send(count, key, replayed)).body.code).toBe('GA2013')
    }
    expect((await send(0, key)).status).toBe(200)
  })
})

describe.each(stores)('the limit of failed authentications of an address, counted $where', ({ gateways, store }) => {
  const started: Program[] = []
  let urls: string[]
  afterAll(() => Promise.all(started.map(gateway => gateway.stop())))
  beforeAll(async () => {
    const environment = { ...failureLimit, ...(await store()) }
    for (let count = 0; count < gateways; count++) started.push(await system.startGateway(environment))
    urls = started.map(({ url }) => url)
    await until('the gateways know the key', async () => {
      const answers = await Promise.all(urls.map((_, at) => from('192.0.2.1', at)))
      return answers.every(({ status }) => status === 200)
    })
  })
  /** A request from this address, valid unless overrides make it invalid. */
  function from(
    address: string,
    at = 0,
    { headers, ...overrides }: Overrides = {},
    key: Omit<Credentials, 'baseUrl'> = system,
  ): Promise<Answer> {
    const credentials: Credentials = { ...key, baseUrl: urls[at % urls.length]! }
    const timestamp = String(Math.floor(Date.now() / 1000) + 60)
    const sent = { 'X-Forwarded-For': address, ...headers }
    return call(credentials, 'GET', list, undefined, { timestamp, ...overrides, headers: sent })
  }
  let addresses = 0
  /**
   * The answers to requests from a new address, in order. On a machine that takes so long that the address may fail once more
   * meanwhile, they are sent again, from another address.
   */
  const inOneInterval = (send: (address: string) => (() => Promise<Answer>)[]) =>
    until('the requests are answered before another failure is allowed', async () => {
      const startedAtMs = performance.now()
      const answers: Answer[] = []
      for (const request of send(`198.51.100.${++addresses}`)) answers.push(await request())
      return performance.now() - startedAtMs < failureIntervalMs && answers
    })
  const failures: [string, Overrides][] = [
    ['GA2001', { headers: { 'X-Api-Key': null } }],
    ['GA2011', { headers: { 'X-Api-Key': unknownKey } }],
    ['GA2013', { timestamp: '1' }],
    ['GA2012', { secret: 'x' }],
    ['GA2013', { headers: { 'X-Nonce': 'a b' } }],
  ]

  test('lets five failures keep their codes; further ones are S029, and valid requests are served', async () => {
    const answers = await inOneInterval(address => [
      ...failures.map(
        ([, failure], at) =>
          () =>
            from(address, at, failure),
      ),
      ...failures.flatMap(([, failure]) => urls.map((_, at) => () => from(address, at, failure))),
      () => from(address),
    ])
    for (const [at, [code]] of failures.entries()) {
      const { body, headers } = answers[at]!
      expect(body.code).toBe(code)
      expect(headers.get('ratelimit-policy')).toBe('"failed-authentication";q=5;w=60')
      expect(headers.get('ratelimit')).toMatch(new RegExp(`^"failed-authentication";r=${4 - at};t=\\d+$`))
    }
    for (const { status, body, headers } of answers.slice(failures.length, -1)) {
      expect([status, body.code]).toEqual([429, 'S029'])
      const seconds = Number(headers.get('retry-after'))
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(12)
      expect(headers.get('ratelimit')).toBe(`"failed-authentication";r=0;t=${seconds}`)
    }
    expect(answers.at(-1)!.status).toBe(200)
    expect((await from('203.0.113.8', 0, failures[0]![1])).body.code).toBe('GA2001')
  })

  test('counts IPv6 addresses by their /64', async () => {
    const failure = failures[3]![1]
    let network = 0
    const answers = await inOneInterval(() => {
      const hosts = [`${++network}::1`, `${network}::2`, `${network}::3`, `${network}::4`, `${network}::5`]
      return [...hosts, `${network}:ffff::9`].map((host, at) => () => from(`2001:db8:1:${host}`, at, failure))
    })
    expect(answers.map(({ body }) => body.code)).toEqual([...Array(5).fill('GA2012'), 'S029'])
    expect((await from('2001:db8:2:1::1', 0, failure)).body.code).toBe('GA2012')
  })

  test.each([
    ['IDs that were never issued', { headers: { 'X-Api-Key': unknownKey } }],
    ['wrong signatures of their own key', { secret: 'x' }],
    ['wrong signatures of the key of another client', { secret: 'y' }],
  ])('others at an address over the limit by %s use keys that the gateway has not cached', async (name, failure) => {
    const [own, victim] = [await newKey(), await newKey()]
    const attacked = name.includes('another') ? victim : own
    const answers = await inOneInterval(address => [
      ...Array(8).fill(() => from(address, 0, failure, attacked)),
      ...urls.map((_, at) => () => from(address, at, {}, victim)),
    ])
    expect(answers[7]!.body.code).toBe('S029')
    expect(answers.slice(8).map(({ body }) => body.code)).toEqual(urls.map(() => '2000'))
  })
})

test('while Redis is frozen, failures cannot be counted, and steps 1 to 4 keep their codes', async () => {
  const own = await startRedis()
  const { url } = await system.startGateway({ ...failureLimit, REDIS_URL: own.url })
  own.freeze()
  const send = (overrides: Overrides) => call({ ...system, baseUrl: url }, 'GET', list, undefined, overrides)
  for (let count = 0; count < 7; count++)
    expect((await send({ headers: { 'X-Api-Key': null } })).body.code).toBe('GA2001')
  expect((await send({ timestamp: '1' })).body.code).toBe('GA2013')
  expect((await send({ secret: 'x' })).body.code).toBe('S002')
  await own.stop()
})

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:0:0:ffff::1', '2001:db8:0:0::/64'],
  ['', ''],
])('%s counts as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
