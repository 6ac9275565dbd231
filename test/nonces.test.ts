import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Readiness } from '@workspace-wallet/runtime'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Redis, startRedis } from '../cli/processes/redis.ts'
import { type Answer, type Credentials, call } from './setup/client.ts'
import { query } from './setup/database.ts'
import { startFaultProxy } from './setup/fault-proxy.ts'
import { logLines } from './setup/log-lines.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/** A request that was accepted is never accepted again, whatever happens to the nonce store. */

const list = '/api/v1/wallets'
/** Seconds between the clock and the timestamps of requests: both sides of the 60 s window. */
const offsets = [-50, -30, 0, 30, 60]

let system: System
let redis: Redis
let durable: Redis
beforeAll(async () => {
  redis = await startRedis()
  system = await startSystem({ gateways: 2, gatewayEnvironment: { REDIS_URL: redis.url } })
  durable = await startRedis({ appendonly: 'yes', appendfsync: 'always', dir: await makeTempDir('redis') })
})
afterAll(async () => {
  await system.stop()
  await redis.stop()
  await durable.stop()
})

type Sent = { nonce: string; timestamp: string }
/** The URL of a gateway; its key is that of the system unless there is another one. */
type At = Pick<Credentials, 'baseUrl'> & Partial<Credentials>

function credentialsAt({ baseUrl, apiKey = system.apiKey, apiSecret = system.apiSecret }: At): Credentials {
  return { baseUrl, apiKey, apiSecret }
}

function send(at: At, sent: Sent): Promise<Answer> {
  return call(credentialsAt(at), 'GET', list, undefined, sent)
}

function fresh(offset = 0): Sent {
  return { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + offset) }
}

/** Sends requests with timestamps from the whole window. Returns them after all were accepted. */
async function accepted(at: At): Promise<Sent[]> {
  const requests: Sent[] = []
  for (const offset of offsets) {
    const request = fresh(offset)
    expect((await send(at, request)).body.code).toBe('2000')
    requests.push(request)
  }
  return requests
}

const isInWindow = ({ timestamp }: Sent) => Math.floor(Date.now() / 1000) - Number(timestamp) <= 60

/**
 * The gateway rejects requests that may have been accepted in an earlier generation of the store: with S002 while their
 * timestamp is in the window, and with GA2013 when it has left the window, which a busy machine may take to get here.
 */
async function expectFenced(at: At, requests: Sent[]): Promise<void> {
  for (const request of requests) {
    const wasInWindow = isInWindow(request)
    const { body, headers, status } = await send(at, request)
    if (!wasInWindow) {
      expect(body.code).toBe('GA2013')
      continue
    }
    if (body.code === 'GA2013' && !isInWindow(request)) continue
    expect([status, body.code]).toEqual([503, 'S002'])
    const seconds = Number(headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(71)
  }
}

/** The last timestamp that gateways reject because of the generation of a Redis: 70 s after its beginning. */
async function lastFenced(url: string): Promise<Sent> {
  const [key] = (await command(url, 'KEYS', 'nonces:generation:*')) as string[]
  const began = String(await command(url, 'GET', key!)).split(' ')[3]
  return { nonce: randomUUID(), timestamp: String(Number(began) + 70) }
}

/** Without Redis, answers are S002 as well. Waits until the gateway is ready. */
async function untilReady({ baseUrl }: At): Promise<void> {
  await until('the gateway is ready', async () => (await fetch(`${baseUrl}/readyz`)).status === 200)
}

/** Moves the beginning of the generation into the past, as if the time of rejections were over. */
async function age(url: string): Promise<void> {
  const client = await createClient({ url }).connect()
  // A gateway joins when it first reaches Redis and core, which may be after it listens.
  const key = await until('a gateway has joined', async () => (await client.keys('nonces:generation:*'))[0])
  const [server, durable, id] = (await client.get(key))!.split(' ')
  await client.set(key, `${server} ${durable} ${id} 1`)
  client.destroy()
}

async function command(url: string, ...args: string[]): Promise<unknown> {
  const client = await createClient({ url }).connect()
  const answer = await client.sendCommand(args)
  client.destroy()
  return answer
}

/** Gateways of the same core use one nonce store at a time, so each other one has a core of its own, until the end of the test. */
async function systemOn(redisUrl: string): Promise<System> {
  const other = await startSystem({ gatewayEnvironment: { REDIS_URL: redisUrl } })
  onTestFinished(() => other.stop())
  return other
}

/** Starts another gateway of a system. */
async function gatewayOn(
  redisUrl: string,
  { startGateway, apiKey, apiSecret }: System,
): Promise<Program & Credentials> {
  const gateway = await startGateway({ REDIS_URL: redisUrl })
  return { ...gateway, baseUrl: gateway.url, apiKey, apiSecret }
}

test('of many identical requests at two gateways, one is accepted', async () => {
  const request = fresh()
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => send({ baseUrl: system.gateways[at % 2]!.url }, request)),
  )
  const codes = answers.map(({ body }) => body.code)
  expect(codes.filter(code => code === '2000')).toHaveLength(1)
  expect(codes.filter(code => code === 'GA2013')).toHaveLength(39)
})

test('after FLUSHALL, requests that were accepted before are rejected, and later requests are accepted', async () => {
  const requests = await accepted(system)
  const wrong = { ...fresh(), secret: 'x' }
  await command(redis.url, 'FLUSHALL')
  try {
    for (const { url } of system.gateways) {
      await expectFenced({ baseUrl: url }, [...requests, fresh()])
      expect((await call(credentialsAt({ baseUrl: url }), 'GET', list, undefined, wrong)).body.code).toBe('S002')
    }
    const last = await lastFenced(redis.url)
    // Its timestamp is up to 70 s ahead, and the window ends at 60 s.
    await until('it is in the window', () => Number(last.timestamp) - Math.floor(Date.now() / 1000) <= 60)
    for (const { url } of system.gateways) await expectFenced({ baseUrl: url }, [last])
    // Its timestamp is later than any that was accepted before the flush.
    await until('a request from after the flush', async () => (await send(system, fresh(60))).body.success)
    for (const { url } of system.gateways)
      for (const request of requests) {
        // GA2013 when its timestamp has left the window.
        expect(['S002', 'GA2013']).toContain((await send({ baseUrl: url }, request)).body.code)
      }
  } finally {
    await age(redis.url)
  }
})

test('after a restart of a Redis without persistence, requests that were accepted before are rejected', async () => {
  const requests = await accepted(system)
  await redis.kill()
  try {
    expect((await send(system, fresh())).body.code).toBe('S002')
  } finally {
    await redis.restart()
  }
  try {
    for (const { url } of system.gateways) {
      await untilReady({ baseUrl: url })
      await expectFenced({ baseUrl: url }, [...requests, fresh()])
    }
  } finally {
    await age(redis.url)
  }
  expect((await send(system, fresh())).body.code).toBe('2000')
})

test('after SCRIPT FLUSH, the generation continues and requests are served', async () => {
  const [request] = await accepted(system)
  await command(redis.url, 'SCRIPT', 'FLUSH')
  expect((await send(system, request!)).body.code).toBe('GA2013')
  expect((await send(system, fresh())).body.code).toBe('2000')
})

test('gateways do not use a Redis that may evict nonces', async () => {
  await command(redis.url, 'CONFIG', 'SET', 'maxmemory', '100mb')
  await command(redis.url, 'CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
  const { url, output } = await system.startGateway()
  try {
    expect((await send({ baseUrl: url }, fresh())).body.code).toBe('S002')
    await until('the log gives the reason', () =>
      output().includes('maxmemory-policy is volatile-lru, set it to noeviction'),
    )
  } finally {
    await command(redis.url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  }
  expect((await send({ baseUrl: url }, fresh())).body.code).toBe('2000')
})

describe('a Redis whose settings change while it is in use', () => {
  let changing: Redis
  let gateway: Program
  let other: System
  beforeAll(async () => {
    changing = await startRedis()
    other = await startSystem({ gatewayEnvironment: { REDIS_URL: changing.url } })
    gateway = other.gateways[0]!
    await untilReady(other)
  })
  afterAll(async () => {
    await other.stop()
    await changing.stop()
  })
  const set = (...settings: string[]) => command(changing.url, 'CONFIG', 'SET', ...settings)
  const mayEvict = () => set('maxmemory', '1gb', 'maxmemory-policy', 'volatile-lru')
  const mayNotEvict = () => set('maxmemory', '0', 'maxmemory-policy', 'noeviction')
  const untilReadinessIs = (expected: Readiness) =>
    until(`readiness is ${JSON.stringify(expected)}`, async () =>
      isDeepStrictEqual(await (await fetch(`${gateway.internalUrl}/readyz`)).json(), expected),
    )
  const isServed = async () => (await send(other, fresh())).body.code === '2000'

  test('that may evict: S002, and readiness and log give the reason; corrected, the generation continues', async () => {
    const [request] = await accepted(other)
    const reason = 'Redis may evict nonces: its maxmemory-policy is volatile-lru, set it to noeviction'
    await mayEvict()
    try {
      await until('the gateway notices', async () => !(await isServed()))
      await untilReadinessIs({ status: 'not ready', parts: { core: { up: true }, nonces: { up: false, reason } } })
    } finally {
      await mayNotEvict()
    }
    await until('the gateway serves', isServed)
    expect((await send(other, request!)).body.code).toBe('GA2013')
    await until('the log reports it', () => gateway.output().includes('Redis is available again'))
    // Logged once, not for each rejected request.
    expect(logLines(gateway).filter(line => line.reason === reason)).toMatchObject([{ msg: 'Redis is unavailable' }])
  })

  test('that has evicted: requests that were accepted before are rejected', async () => {
    const requests = await accepted(other)
    // Less memory than it uses: Redis evicts all keys that expire.
    await set('maxmemory-policy', 'volatile-lru', 'maxmemory', '1')
    try {
      await until('Redis has evicted the nonces', async () =>
        String(await command(changing.url, 'INFO')).includes('db0:keys=1,'),
      )
    } finally {
      await mayNotEvict()
    }
    await until('the gateway notices', async () => !(await isServed()))
    await expectFenced(other, [...requests, fresh()])
    await untilReadinessIs({ status: 'ready', parts: { core: { up: true }, nonces: { up: true } } })
  })
})

describe('a Redis that has its generation but may have lost the last nonces', () => {
  test('after a restart from a snapshot: requests that were accepted before are rejected', async () => {
    const snapshots = await startRedis({ dir: await makeTempDir('snapshots') })
    const gateway = await systemOn(snapshots.url)
    await untilReady(gateway)
    await accepted(gateway)
    await command(snapshots.url, 'SAVE')
    const lost = await accepted(gateway)
    await snapshots.kill()
    await snapshots.restart()
    await untilReady(gateway)
    expect(await command(snapshots.url, 'DBSIZE')).toBe(1 + offsets.length)
    await expectFenced(gateway, lost)
    await snapshots.stop()
  })

  test('after a failover to a replica: requests that were accepted before are rejected', async () => {
    const [primary, replica] = [await startRedis(), await startRedis()]
    const proxy = await startFaultProxy(primary.port)
    const gateway = await systemOn(proxy.through(primary.url))
    await untilReady(gateway)
    await accepted(gateway)
    await command(replica.url, 'REPLICAOF', '127.0.0.1', String(primary.port))
    const info = async () => String(await command(replica.url, 'INFO', 'replication'))
    await until('the replica is in sync', async () => (await info()).includes('master_link_status:up'))
    replica.freeze()
    const lost = await accepted(gateway)
    await primary.kill()
    replica.thaw()
    await command(replica.url, 'REPLICAOF', 'NO', 'ONE')
    proxy.pointTo(replica.port)
    await untilReady(gateway)
    expect(await command(replica.url, 'KEYS', 'nonces:generation:*')).toHaveLength(1)
    await expectFenced(gateway, lost)
    proxy.cut()
    await replica.stop()
    await primary.stop()
  })
})

test('after a restart of a durable Redis, the generation continues and requests are served at once', async () => {
  const gateway = await systemOn(durable.url)
  await untilReady(gateway)
  const requests = await accepted(gateway)
  await durable.kill()
  await durable.restart()
  await untilServed(gateway)
  for (const request of requests) expect((await send(gateway, request)).body.code).toBe('GA2013')
})

/** A gateway may not have noticed yet that Redis was restarted. */
async function untilServed(at: At): Promise<void> {
  await until('requests are served', async () => (await send(at, fresh())).body.code === '2000')
}

test('a durable Redis that a gateway asks while it is loading its data is not taken for one that is not durable', async () => {
  const redis = await startRedis({
    appendonly: 'yes',
    appendfsync: 'always',
    dir: await makeTempDir('redis'),
    // Loading takes a second: a millisecond for each of the keys below. It answers meanwhile.
    'key-load-delay': '1000',
    'loading-process-events-interval-bytes': '1024',
  })
  const proxy = await startFaultProxy(Number(new URL(redis.url).port))
  const gateway = await systemOn(proxy.through(redis.url))
  await untilServed(gateway)
  const generation = async () => {
    const [key] = (await command(redis.url, 'KEYS', 'nonces:generation:*')) as string[]
    return String(await command(redis.url, 'GET', key!)).split(' ')[2]
  }
  const before = await generation()
  await command(
    redis.url,
    'EVAL',
    "for i = 1, 1000 do redis.call('SET', 'filler:' .. i, string.rep('x', 100)) end",
    '0',
  )
  await command(redis.url, 'BGREWRITEAOF')
  const info = async () => String(await command(redis.url, 'INFO', 'persistence'))
  await until(
    'the keys are in the base file',
    async () => /aof_rewrite_in_progress:0\r/.test(await info()) && /aof_rewrites:1\r/.test(await info()),
  )
  await redis.kill()
  // The gateway has read whether Redis is durable, and goes on when Redis has loaded its data.
  const asked = proxy.fail({ in: 'request', at: 'SCRIPT', passes: 'none', by: 'freeze' })
  await Promise.all([redis.restart(), asked])
  proxy.thaw()
  await untilServed(gateway)
  expect(await generation()).toBe(before)
  proxy.cut()
  await redis.stop()
})

test('another Redis is a new generation, and the audit records each generation', async () => {
  const [first, second] = [await startRedis(), await startRedis()]
  const own = await systemOn(first.url)
  await untilReady(own)
  const requests = await accepted(own)
  await expectFenced(await gatewayOn(second.url, own), requests)
  const sql = "select actor, target from audit where action = 'nonces.begin'"
  const rows = await query(own.database.ownerUrl, sql)
  expect(new Set(rows.map(({ target }) => target)).size).toBe(rows.length)
  for (const { actor } of rows) expect(actor).toBe('gateway:g')
  await first.stop()
  await second.stop()
})

test('gateways that return to a Redis after they have used another one reject what the other may have accepted', async () => {
  const own = await startSystem({ gateways: 0 })
  const earlier = await gatewayOn(durable.url, own)
  await untilReady(earlier)
  await earlier.stop()
  const other = await startRedis()
  const meanwhile = await gatewayOn(other.url, own)
  await untilReady(meanwhile)
  await age(other.url)
  const requests = await accepted(meanwhile)
  await meanwhile.stop()
  const returned = await gatewayOn(durable.url, own)
  await untilReady(returned)
  await expectFenced(returned, [...requests, fresh()])
  await own.stop()
  await other.stop()
})

// During a network partition, the former primary and the new one can both be primaries.
test('gateways reject requests in a Redis soon after another one has become the primary, until nobody can replay what it has accepted', async () => {
  const [former, next] = [await startRedis(), await startRedis()]
  const own = await systemOn(former.url)
  await untilReady(own)
  const requests = await accepted(own)
  const promoted = await gatewayOn(next.url, own)
  await until('the gateway at the former primary rejects requests', async () => {
    const request = fresh(60)
    requests.push(request)
    return (await send(own, request)).body.code === 'S002'
  })
  await expectFenced(promoted, requests)
  await former.stop()
  await next.stop()
})

test('nonces in a file survive a restart and a crash; after its deletion, earlier requests are rejected', async () => {
  // A database of its own: the file is its first generation, which rejects nothing.
  const alone = await startSystem({ gateways: 0 })
  const file = join(await makeTempDir('nonces'), 'nonces.db')
  const start = async () => {
    const gateway = await alone.startGateway({ NONCE_FILE: file, REDIS_URL: undefined })
    const { apiKey, apiSecret } = alone
    return { ...gateway, baseUrl: gateway.url, apiKey, apiSecret }
  }
  const first = await start()
  const requests = await accepted(first)
  await first.stop()
  const second = await start()
  for (const request of requests) expect((await send(second, request)).body.code).toBe('GA2013')
  expect((await send(second, fresh())).body.code).toBe('2000')
  await second.kill('SIGKILL')
  const third = await start()
  for (const request of requests) expect((await send(third, request)).body.code).toBe('GA2013')
  const last = await accepted(third)
  await rm(file)
  await third.kill('SIGKILL')
  const fourth = await start()
  await expectFenced(fourth, [...last, fresh()])
  await until('the log reports it', () => fourth.output().includes('the nonce file was lost'))
  await alone.stop()
})

test('a nonce file on a full disk: S002, and readiness and log give the reason, until there is space again', async () => {
  const disk = await mountSmallDisk()
  if (!disk) return console.log('disk full: this user may not mount a disk; not tested')
  try {
    const own = await startSystem({ gateways: 0 })
    onTestFinished(() => own.stop())
    const gateway = await own.startGateway({
      NONCE_FILE: join(disk.path, 'nonces.db'),
      REDIS_URL: undefined,
    })
    const { url, internalUrl } = gateway
    const nonceStore = async () => ((await (await fetch(`${internalUrl}/readyz`)).json()) as Readiness).parts.nonces!
    await until('the nonce file can be used', async () => (await nonceStore()).up)
    await disk.fill()
    const full = await until('the disk is full', async () => {
      const found = await nonceStore()
      return !found.up && found.reason.includes('cannot be used: database or disk is full') && found
    })
    await until('the gateway is not ready', async () => (await fetch(`${url}/readyz`)).status === 503)
    expect((await send({ ...own, baseUrl: url }, fresh())).body.code).toBe('S002')
    await disk.empty()
    await until('there is space', async () => (await nonceStore()).up)
    await until('the log reports it', () => gateway.output().includes('nonce store is available again'))
    const lost = logLines(gateway).filter(line => line.reason === full.reason)
    expect(new Set(lost.map(({ msg }) => msg))).toEqual(new Set(['nonce store is unavailable']))
  } finally {
    await disk.unmount()
  }
})
