import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Readiness } from '../gateway/src/observability/readiness.ts'
import type { Program } from '../tools/services/program.ts'
import { type Redis, startRedis } from '../tools/services/redis.ts'
import { type Answer, type Credentials, call } from './setup/client.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/** What was accepted once is never accepted again, whatever happens to the nonce store. */

const list = '/api/v1/wallets'
/** Both sides of the 60 s window, short of what a slow machine might take out of it. */
const offsets = [-50, -30, 0, 30, 60]

let system: System
let redis: Redis
let keeping: Redis
beforeAll(async () => {
  redis = await startRedis()
  system = await startSystem({ gateways: 2, gatewayEnvironment: { REDIS_URL: redis.url } })
  const durable = { appendonly: 'yes', appendfsync: 'always', dir: await makeTempDir('redis') }
  keeping = await startRedis(durable)
})
afterAll(async () => {
  await system.stop()
  await redis.stop()
  await keeping.stop()
})

type Sent = { nonce: string; timestamp: string }
type At = Pick<Credentials, 'baseUrl'>

function credentialsAt({ baseUrl }: At): Credentials {
  return { baseUrl, apiKey: system.apiKey, apiSecret: system.apiSecret }
}

function send(at: At, sent: Sent): Promise<Answer> {
  return call(credentialsAt(at), 'GET', list, undefined, sent)
}

function fresh(offset = 0): Sent {
  return { nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + offset) }
}

/** Requests that the gateway accepts, over the whole window. */
async function accepted(at: At): Promise<Sent[]> {
  const requests = offsets.map(offset => fresh(offset))
  for (const request of requests) expect((await send(at, request)).body.code).toBe('2000')
  return requests
}

async function expectFenced(at: At, requests: Sent[]): Promise<void> {
  for (const request of requests) {
    const { body, headers, status } = await send(at, request)
    expect([status, body.code]).toEqual([503, 'S002'])
    const seconds = Number(headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(71)
  }
}

/** Until Redis is back the answer is S002 as well; so wait for the readiness of the gateway. */
async function untilReady({ baseUrl }: At): Promise<void> {
  await until('the gateway is ready', async () => (await fetch(`${baseUrl}/readyz`)).status === 200)
}

/** Moves the beginning of the generation into the past, as if the wait were over. For what comes after it only. */
async function age(url: string): Promise<void> {
  const client = await createClient({ url }).connect()
  const [server, durable, id] = (await client.get('nonces:generation'))!.split(' ')
  await client.set('nonces:generation', `${server} ${durable} ${id} 1`)
  client.destroy()
}

async function command(url: string, ...args: string[]): Promise<unknown> {
  const client = await createClient({ url }).connect()
  const answer = await client.sendCommand(args)
  client.destroy()
  return answer
}

async function gatewayOn(redisUrl: string): Promise<At> {
  const { url } = await system.startGateway({ REDIS_URL: redisUrl })
  return { baseUrl: url }
}

test('of many equal requests at two gateways one is accepted', async () => {
  const request = fresh()
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => send({ baseUrl: system.gateways[at % 2]!.url }, request)),
  )
  const codes = answers.map(({ body }) => body.code)
  expect(codes.filter(code => code === '2000')).toHaveLength(1)
  expect(codes.filter(code => code === 'GA2013')).toHaveLength(39)
})

test('a flushed Redis: nothing that was accepted before is accepted again; later requests are', async () => {
  const requests = await accepted(system)
  const wrong = { ...fresh(), secret: 'x' }
  await command(redis.url, 'FLUSHALL')
  for (const { url } of system.gateways) {
    await expectFenced({ baseUrl: url }, [...requests, fresh(), fresh(60)])
    expect((await call(credentialsAt({ baseUrl: url }), 'GET', list, undefined, wrong)).body.code).toBe('S002')
  }
  // The first timestamp that nothing from before can bear.
  await until('a request from after the flush', async () => (await send(system, fresh(60))).body.success)
  for (const { url } of system.gateways)
    for (const request of requests) {
      // The oldest have left the window meanwhile.
      expect(['S002', 'GA2013']).toContain((await send({ baseUrl: url }, request)).body.code)
    }
  await age(redis.url)
})

test('a Redis that was killed and kept nothing: the same', async () => {
  const requests = await accepted(system)
  await redis.kill()
  expect((await send(system, fresh())).body.code).toBe('S002')
  await redis.restart()
  for (const { url } of system.gateways) {
    await untilReady({ baseUrl: url })
    await expectFenced({ baseUrl: url }, [...requests, fresh()])
  }
  await age(redis.url)
  expect((await send(system, fresh())).body.code).toBe('2000')
})

test('a Redis without its scripts goes on in the same generation', async () => {
  const [request] = await accepted(system)
  await command(redis.url, 'SCRIPT', 'FLUSH')
  expect((await send(system, request!)).body.code).toBe('GA2013')
  expect((await send(system, fresh())).body.code).toBe('2000')
})

test('a Redis that may evict nonces is not used', async () => {
  await command(redis.url, 'CONFIG', 'SET', 'maxmemory', '100mb')
  await command(redis.url, 'CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
  const { url, output } = await system.startGateway()
  expect((await send({ baseUrl: url }, fresh())).body.code).toBe('S002')
  await until('the log says why', () => output().includes('maxmemory-policy is volatile-lru, set it to noeviction'))
  await command(redis.url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  expect((await send({ baseUrl: url }, fresh())).body.code).toBe('2000')
})

describe('a Redis whose settings are changed while it is used', () => {
  let changing: Redis
  let gateway: Program
  beforeAll(async () => {
    changing = await startRedis()
    gateway = await system.startGateway({ REDIS_URL: changing.url })
    await send({ baseUrl: gateway.url }, fresh())
    await age(changing.url)
  })
  afterAll(() => changing.stop())
  const set = (...settings: string[]) => command(changing.url, 'CONFIG', 'SET', ...settings)
  const mayEvict = () => set('maxmemory', '1gb', 'maxmemory-policy', 'volatile-lru')
  const mayNotEvict = () => set('maxmemory', '0', 'maxmemory-policy', 'noeviction')
  const readiness = async () => (await fetch(`${gateway.internalUrl}/readyz`)).json() as Promise<Readiness>
  const isServed = async () => (await send({ baseUrl: gateway.url }, fresh())).body.code === '2000'

  test('it may evict: S002, and readiness and the log say why; set right, it goes on in the same generation', async () => {
    const [request] = await accepted({ baseUrl: gateway.url })
    await mayEvict()
    await until('the gateway notices', async () => !(await isServed()))
    const { status, parts } = await readiness()
    expect([status, parts.core]).toEqual(['not ready', { up: true }])
    const reason = 'Redis may evict nonces: its maxmemory-policy is volatile-lru, set it to noeviction'
    expect(parts.nonces).toEqual({ up: false, reason })
    await mayNotEvict()
    await until('the gateway serves', isServed)
    expect((await send({ baseUrl: gateway.url }, request!)).body.code).toBe('GA2013')
    await until('the log says it', () => gateway.output().includes('Redis back'))
    // Once, however many requests were refused.
    expect(linesOf(gateway).filter(line => line.reason === reason)).toMatchObject([{ msg: 'Redis lost' }])
  })

  test('it has evicted: what was accepted before is refused', async () => {
    const requests = await accepted({ baseUrl: gateway.url })
    // Less than it holds: whatever has an end of life goes.
    await set('maxmemory-policy', 'volatile-lru', 'maxmemory', '1')
    await until('it evicts', async () => String(await command(changing.url, 'INFO')).includes('db0:keys=1,'))
    await mayNotEvict()
    await until('the gateway notices', async () => !(await isServed()))
    await expectFenced({ baseUrl: gateway.url }, [...requests, fresh()])
    expect(await readiness()).toEqual({ status: 'ready', parts: { core: { up: true }, nonces: { up: true } } })
  })
})

describe('a Redis that has its marker but may lack the last nonces', () => {
  test('restarted from a snapshot', async () => {
    const snapshots = await startRedis({ dir: await makeTempDir('snapshots') })
    const gateway = await gatewayOn(snapshots.url)
    await send(gateway, fresh())
    await age(snapshots.url)
    await accepted(gateway)
    await command(snapshots.url, 'SAVE')
    const lost = await accepted(gateway)
    await snapshots.kill()
    await snapshots.restart()
    await untilReady(gateway)
    expect(await command(snapshots.url, 'DBSIZE')).toBe(1 + 1 + offsets.length)
    await expectFenced(gateway, lost)
    await snapshots.stop()
  })

  test('a replica that took over', async () => {
    const [primary, replica] = [await startRedis(), await startRedis()]
    const door = await openDoor(primary.port)
    const gateway = await gatewayOn(`redis://127.0.0.1:${door.port}`)
    await send(gateway, fresh())
    await age(primary.url)
    await accepted(gateway)
    await command(replica.url, 'REPLICAOF', '127.0.0.1', String(primary.port))
    const info = async () => String(await command(replica.url, 'INFO', 'replication'))
    await until('the replica has it all', async () => (await info()).includes('master_link_status:up'))
    replica.freeze()
    const lost = await accepted(gateway)
    await primary.kill()
    replica.thaw()
    await command(replica.url, 'REPLICAOF', 'NO', 'ONE')
    door.leadTo(replica.port)
    await untilReady(gateway)
    expect(await command(replica.url, 'EXISTS', 'nonces:generation')).toBe(1)
    await expectFenced(gateway, lost)
    await door.close()
    await replica.stop()
    await primary.stop()
  })
})

test('a Redis that writes to the disk before it answers is in service again as soon as it is back', async () => {
  const gateway = await gatewayOn(keeping.url)
  await send(gateway, fresh())
  await age(keeping.url)
  const requests = await accepted(gateway)
  await keeping.kill()
  await keeping.restart()
  await untilReady(gateway)
  for (const request of requests) expect((await send(gateway, request)).body.code).toBe('GA2013')
  expect((await send(gateway, fresh())).body.code).toBe('2000')
})

test('a move to another Redis is a loss as well; the audit names each', async () => {
  const other = await startRedis()
  const requests = await accepted(system)
  await expectFenced(await gatewayOn(other.url), requests)
  await other.stop()
  const client = new pg.Client({ connectionString: system.database.ownerUrl })
  await client.connect()
  const { rows } = await client.query("select actor, target from audit where action = 'nonces.begin'")
  await client.end()
  expect(new Set(rows.map(({ target }) => target)).size).toBe(rows.length)
  for (const { actor } of rows) expect(actor).toBe('gateway:g')
})

test('nonces in a file: they survive a restart and a crash; a file that is gone is a loss', async () => {
  // A database of its own: its first generation is the file.
  const alone = await startSystem({ gateways: 0 })
  const file = join(await makeTempDir('nonces'), 'nonces.db')
  const start = async () => {
    const gateway = await alone.startGateway({ NONCE_FILE: file, REDIS_URL: undefined })
    const credentials = { ...alone, baseUrl: gateway.url }
    return { ...gateway, send: (sent: Sent) => call(credentials, 'GET', list, undefined, sent) }
  }
  const first = await start()
  const requests = offsets.map(offset => fresh(offset))
  for (const request of requests) expect((await first.send(request)).body.code).toBe('2000')
  await first.stop()
  const second = await start()
  for (const request of requests) expect((await second.send(request)).body.code).toBe('GA2013')
  expect((await second.send(fresh())).body.code).toBe('2000')
  await second.kill('SIGKILL')
  const third = await start()
  for (const request of requests) expect((await third.send(request)).body.code).toBe('GA2013')
  const last = offsets.map(offset => fresh(offset))
  for (const request of last) expect((await third.send(request)).body.code).toBe('2000')
  await rm(file)
  await third.kill('SIGKILL')
  const fourth = await start()
  for (const request of [...last, fresh()]) expect((await fourth.send(request)).body.code).toBe('S002')
  await until('the log says it', () => fourth.output().includes('the nonce file was lost'))
  await alone.stop()
})

test('a nonce file on a full disk: S002, and readiness and the log say why; with space it serves again', async () => {
  const disk = await mountSmallDisk()
  if (!disk) return console.log('disk full: nothing may be mounted here, a directory that is away has to do')
  try {
    const gateway = await system.startGateway({
      NONCE_FILE: join(disk.path, 'nonces.db'),
      REDIS_URL: undefined,
    })
    const { url, internalUrl } = gateway
    const partsOf = async () => ((await (await fetch(`${internalUrl}/readyz`)).json()) as Readiness).parts
    expect((await partsOf()).nonces).toEqual({ up: true })
    await disk.fill()
    const full = await until('the disk is full', async () => {
      const { nonces } = await partsOf()
      return !nonces!.up && nonces
    })
    expect(full.reason).toContain('cannot be used: database or disk is full')
    await until('the gateway is not ready', async () => (await fetch(`${url}/readyz`)).status === 503)
    expect((await send({ baseUrl: url }, fresh())).body.code).toBe('S002')
    await disk.empty()
    await until('there is space', async () => (await partsOf()).nonces!.up)
    await until('the log says it', () => gateway.output().includes('nonce store back'))
    const lost = linesOf(gateway).filter(line => line.reason === full.reason)
    expect(new Set(lost.map(({ msg }) => msg))).toEqual(new Set(['nonce store lost']))
  } finally {
    await disk.unmount()
  }
})

function linesOf(program: Program): { msg: string; reason?: string }[] {
  const whole = program.output().split('\n').slice(0, -1)
  return whole.map(line => JSON.parse(line))
}

/** A port that leads to another one, as a load balancer or a name in DNS does. */
async function openDoor(port: number) {
  let target = port
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const onward = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(next: number) {
      target = next
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
