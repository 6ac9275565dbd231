import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Redis, startRedis } from '../cli/processes/redis.ts'
import {
  moveSlot,
  type RedisSet,
  redisCommand,
  startRedisCluster,
  startSentinel,
  startSentinelSet,
} from '../cli/processes/redis-sets.ts'
import { clusterGroups, partitionOf } from '../gateway/src/auth/nonces/redis/partitions.ts'
import { type Credentials, call } from './setup/client.ts'
import { root } from './setup/images.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** No request is accepted twice while Redis fails over, with Sentinel and in Redis Cluster. */

const list = '/api/v1/wallets'
/** Seconds between the clock and the timestamps of requests: both sides of the 60 s window. */
const offsets = [-50, -30, 0, 30, 60]

type Sent = { key: Credentials; nonce: string; timestamp: string }

function fresh(key: Credentials, offset: number): Sent {
  return { key, nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000) + offset) }
}

async function send({ key, nonce, timestamp }: Sent, baseUrl = key.baseUrl): Promise<string> {
  return (await call({ ...key, baseUrl }, 'GET', list, undefined, { nonce, timestamp })).body.code
}

/** The same under load, when a gateway may close a connection that was idle while a request is sent on it. */
const sendUnderLoad = (sent: Sent, baseUrl?: string) => send(sent, baseUrl).catch(() => 'no answer')

/** Clients that send requests all the time, each with a key of its own, and that send each accepted one again. */
class Load {
  readonly accepted: Sent[] = []
  readonly codes = new Set<string>()
  readonly replayed: Sent[] = []
  readonly #gateways: string[]
  readonly #clients: Promise<void>[]
  #isRunning = true

  constructor(keys: readonly Credentials[], gateways: string[]) {
    this.#gateways = gateways
    this.#clients = keys.map((key, at) => this.#client(key, at))
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#clients)
  }

  /** Sends every request again that was accepted, to every gateway. */
  async replayAll(): Promise<void> {
    const waiting = [...this.accepted]
    const replay = async () => {
      for (let sent = waiting.pop(); sent; sent = waiting.pop()) await this.#replay(sent)
    }
    await Promise.all(Array.from({ length: 20 }, replay))
  }

  async #client(key: Credentials, at: number): Promise<void> {
    for (let count = at; this.#isRunning; count++) {
      const sent = fresh(key, offsets[count % offsets.length]!)
      const code = await sendUnderLoad(sent, this.#gateways[count % this.#gateways.length])
      this.codes.add(code)
      if (code === '2000') this.accepted.push(sent)
      // One from before a failover as well as the last one.
      const earlier = this.accepted[Math.floor(Math.random() * this.accepted.length)]
      if (earlier) await this.#replay(earlier)
      await sleep(20)
    }
  }

  async #replay(sent: Sent): Promise<void> {
    for (const gateway of this.#gateways) {
      const code = await sendUnderLoad(sent, gateway)
      if (code === '2000') this.replayed.push(sent)
      else this.codes.add(code)
    }
  }
}

/** The names of the nonces of requests that a server does not have. */
async function missingAt(server: Redis, requests: readonly Sent[]): Promise<string[]> {
  const names = await redisCommand<string[]>(server, 'KEYS', 'nonce:*')
  return requests.map(({ nonce }) => nonce).filter(nonce => !names.some(name => name.endsWith(nonce)))
}

async function isPrimary(server: Redis): Promise<boolean> {
  return (await redisCommand<string>(server, 'INFO', 'replication')).includes('role:master')
}

const password = 'p@ss:w/o%rd'
let set: RedisSet
/** With the user and password of the gateways. */
let url: string
let system: System
let keys: Credentials[]

/** The rules of docs/operations.md for the user of the gateways, for a Redis with replicas. */
async function gatewayRules(isCluster: boolean): Promise<string[]> {
  const text = await readFile(join(root, 'docs/operations.md'), 'utf8')
  const rules = /^user gateway on >PASSWORD (.+)$/m.exec(text)![1]!
  // A selector in parentheses is one argument.
  const words = rules.match(/\([^)]*\)|\S+/g)!.filter(word => word !== '+config|get')
  return [`>${password}`, ...words, ...(isCluster ? ['+cluster|slots'] : [])]
}

function withLogin(setUrl: string): string {
  const login = encodeURIComponent(password)
  const withUser = setUrl.replace('://', `://gateway:${login}@`)
  return set.sentinels.length > 0 ? `${withUser}?sentinelUsername=gateway&sentinelPassword=${login}` : withUser
}

async function start(started: RedisSet): Promise<void> {
  set = started
  const isCluster = set.sentinels.length === 0
  for (const node of set.nodes)
    await redisCommand(node, 'ACL', 'SETUSER', 'gateway', 'on', ...(await gatewayRules(isCluster)))
  const sentinelRules = `reset on >${password} -@all +ping +sentinel|get-master-addr-by-name`.split(' ')
  for (const sentinel of set.sentinels) await redisCommand(sentinel, 'ACL', 'SETUSER', 'gateway', ...sentinelRules)
  url = withLogin(set.url)
  system = await startSystem({ gateways: 2, gatewayEnvironment: { REDIS_URL: url } })
  keys = await Promise.all(Array.from({ length: 12 }, () => createKey(system)))
  for (const key of keys) await untilServed(key)
}

/** Moves the beginning of every generation into the past, as if the time of rejections were over. */
async function endRejections(): Promise<void> {
  for (const primary of await set.primaries())
    for (const name of await redisCommand<string[]>(primary, 'KEYS', 'nonces:generation:*')) {
      const [server, durable, id] = (await redisCommand<string>(primary, 'GET', name)).split(' ')
      await redisCommand(primary, 'SET', name, `${server} ${durable} ${id} 1`)
    }
  for (const { url } of system.gateways)
    await until('the gateway is ready', async () => (await fetch(`${url}/readyz`)).ok)
  for (const key of keys) await untilServed(key)
}

async function untilServed(key: Credentials): Promise<void> {
  for (const { url } of system.gateways)
    await until('requests are accepted', async () => (await send(fresh(key, 60), url)) === '2000')
}

function startLoad(): Load {
  return new Load(
    keys,
    system.gateways.map(({ url }) => url),
  )
}

/** Ends the load when no accepted request was accepted again. */
async function expectNoReplay(load: Load): Promise<void> {
  await load.stop()
  await load.replayAll()
  expect(load.accepted.length).toBeGreaterThan(0)
  expect(load.replayed).toEqual([])
  expect([...load.codes].sort()).toEqual(expect.arrayContaining(['GA2013', 'S002']))
  // No error of ours, whatever Redis does.
  for (const code of load.codes) expect(['2000', 'GA2013', 'S002', 'no answer']).toContain(code)
}

/** Accepts requests whose nonces are not replicated, ends the primary, and sends them to the replica that replaces it. */
async function expectLossToBeNoticed(primary: Redis, replicas: readonly Redis[], key: Credentials): Promise<void> {
  for (const replica of replicas)
    await until('the replica is in sync', async () =>
      (await redisCommand<string>(replica, 'INFO', 'replication')).includes('master_link_status:up'),
    )
  for (const replica of replicas) replica.freeze()
  // What the primary has sent would reach them, also after its end.
  await redisCommand(primary, 'CLIENT', 'KILL', 'TYPE', 'replica')
  const lost = offsets.map(offset => fresh(key, offset))
  for (const sent of lost) expect(await send(sent)).toBe('2000')
  await primary.kill()
  for (const replica of replicas) replica.thaw()
  const promoted = await until('a replica is the primary', async () => {
    for (const replica of replicas) if (await isPrimary(replica)) return replica
  })
  const runId = /run_id:(\w+)/.exec(await redisCommand<string>(promoted, 'INFO', 'server'))![1]!
  await until('a gateway has begun a generation there', async () => {
    const names = await redisCommand<string[]>(promoted, 'KEYS', 'nonces:generation:*')
    const values = await Promise.all(names.map(name => redisCommand<string>(promoted, 'GET', name).catch(() => '')))
    return values.some(value => value.startsWith(runId) && !value.endsWith('-'))
  })
  expect(await missingAt(promoted, lost)).toEqual(lost.map(({ nonce }) => nonce))
  for (const sent of lost) for (const { url } of system.gateways) expect(await send(sent, url)).not.toBe('2000')
}

describe('with Sentinel', () => {
  beforeAll(async () => start(await startSentinelSet()))
  afterAll(async () => {
    await system.stop()
    await set.stop()
  })

  test('a Sentinel that names another primary cannot lead gateways there', async () => {
    const impostor = await startRedis()
    const liar = await startSentinel(impostor)
    const [honest, second] = set.sentinels
    const [user, parameters] = [url.slice(0, url.indexOf('@')), url.slice(url.indexOf('/wallet'))]
    const hosts = [liar, honest!, second!].map(({ port }) => `127.0.0.1:${port}`)
    await redisCommand(liar, 'ACL', 'SETUSER', 'gateway', 'on', `>${password}`, '+@all')
    const gateway = await system.startGateway({ REDIS_URL: `${user}@${hosts.join()}${parameters}` })
    const sent = fresh(keys[0]!, 60)
    await until('a request is accepted', async () => (await send(sent, gateway.url)) !== 'S002')
    // The gateways that know the primary from other Sentinels have the nonce.
    expect(await send(sent)).toBe('GA2013')
    const clients = await redisCommand<string>(impostor, 'INFO', 'commandstats')
    expect(clients).not.toMatch(/cmdstat_(eval|script)/)
    // The gateway continues without it.
    await liar.stop()
    await impostor.stop()
  })

  test('a primary that stops responding, and that returns: no request is accepted twice', async () => {
    const [primary] = await set.primaries()
    const load = startLoad()
    await until('requests were accepted', () => load.accepted.length > 100)
    primary!.freeze()
    await until('another server is the primary', async () => (await set.primaries())[0] !== primary)
    await load.replayAll()
    primary!.thaw()
    await load.replayAll()
    await until('the former primary is a replica', async () => !(await isPrimary(primary!)))
    await until('the gateways have joined the new primary', async () => (await fetch(`${system.baseUrl}/readyz`)).ok)
    await expectNoReplay(load)
  })

  test('a replica that lacks the last nonces replaces the primary: requests that were accepted before are rejected', async () => {
    await endRejections()
    const [primary] = await set.primaries()
    const replicas = set.nodes.filter(node => node !== primary)
    await expectLossToBeNoticed(primary!, replicas, keys[0]!)
    expect(await refusedCommands()).toEqual([])
    for (const { output } of system.gateways) expect(output()).not.toContain(password)
  })
})

/** Commands that Redis has refused to the users of gateways. */
async function refusedCommands(): Promise<unknown[]> {
  const logs = await Promise.all(set.nodes.map(node => redisCommand<unknown[]>(node, 'ACL', 'LOG').catch(() => [])))
  return logs.flat()
}

describe('in Redis Cluster', () => {
  beforeAll(async () => start(await startRedisCluster()))
  afterAll(async () => {
    await system.stop()
    await set.stop()
  })

  /** The primary and the place of the group of a key among the hash slots. */
  async function homeOf(key: Credentials): Promise<Redis> {
    const { slot } = clusterGroups[partitionOf(key.apiKey)]!
    for (const node of set.nodes) {
      const error = await redisCommand(node, 'GET', `nonces:claim:${clusterGroups[partitionOf(key.apiKey)]!.tag}`).then(
        () => null,
        (error: Error) => error.message,
      )
      if (!error?.startsWith('MOVED') && (await isPrimary(node))) return node
      expect(error === null || error.startsWith(`MOVED ${slot} `)).toBe(true)
    }
    throw new Error('no server has the slot')
  }

  test('a hash slot that moves under load: no request is accepted twice, and keys elsewhere are served', async () => {
    const [key] = keys
    const source = await homeOf(key!)
    const target = (await set.primaries()).find(node => node !== source)!
    const { slot } = clusterGroups[partitionOf(key!.apiKey)]!
    const load = startLoad()
    await until('requests were accepted', () => load.accepted.length > 100)
    await moveSlot(slot, source, target)
    await until(
      'requests of the moved key are rejected for a minute',
      async () => (await send(fresh(key!, 0))) === 'S002',
    )
    const elsewhere = keys.find(({ apiKey }) => partitionOf(apiKey) !== partitionOf(key!.apiKey))!
    expect(await send(fresh(elsewhere, 0))).toBe('2000')
    await expectNoReplay(load)
  })

  test('a primary that stops responding, and that returns: no request is accepted twice, and keys elsewhere are served', async () => {
    await endRejections()
    const primary = await homeOf(keys.at(-1)!)
    const load = startLoad()
    await until('requests were accepted', () => load.accepted.length > 100)
    primary.freeze()
    await until('another server is the primary', async () => !(await set.primaries()).includes(primary))
    const codes = await Promise.all(keys.map(key => send(fresh(key, 0))))
    expect(codes).toContain('2000')
    await load.replayAll()
    primary.thaw()
    await load.replayAll()
    await until('the former primary is a replica', async () => !(await isPrimary(primary)))
    await expectNoReplay(load)
  })

  test('a replica that lacks the last nonces replaces its primary: requests that were accepted before are rejected', async () => {
    await endRejections()
    const key = keys[0]!
    const primary = await homeOf(key)
    const id = await redisCommand<string>(primary, 'CLUSTER', 'MYID')
    const replicaIds = await redisCommand<string[]>(primary, 'CLUSTER', 'REPLICAS', id)
    const ports = replicaIds.map(line => Number(/:(\d+)@/.exec(line)![1]))
    await expectLossToBeNoticed(
      primary,
      set.nodes.filter(({ port }) => ports.includes(port)),
      key,
    )
    expect(await refusedCommands()).toEqual([])
    for (const { output } of system.gateways) expect(output()).not.toContain(password)
  })
})
