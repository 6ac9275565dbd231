/** Redis with replicas, for tests and the chaos test: a primary that Sentinels watch, and a Redis Cluster. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, SocketClosedUnexpectedlyError } from 'redis'
import { pickFreePort } from './ports.ts'
import { type Redis, startRedis } from './redis.ts'

export type RedisSet = {
  /** For REDIS_URL. */
  url: string
  /** The servers that store data, the first primaries first. */
  nodes: Redis[]
  /** Empty for a cluster. */
  sentinels: Redis[]
  /** The servers that are primaries and that Sentinels or the other servers take for them, in the order of their hash slots. */
  primaries(): Promise<Redis[]>
  stop(): Promise<void>
}

type Settings = Record<string, string>

const pollMs = 20
const startTimeoutMs = 30_000
const primaryName = 'wallet'

/** Sends one command to one server. */
export async function redisCommand<Reply>(server: Pick<Redis, 'port'>, ...args: string[]): Promise<Reply> {
  try {
    return await sendCommand(server, args)
  } catch (error) {
    // A Sentinel closes the connections of a server when it makes it a primary or a replica.
    const isReset = (error as NodeJS.ErrnoException).code === 'ECONNRESET'
    if (!isReset && !(error instanceof SocketClosedUnexpectedlyError)) throw error
    return sendCommand(server, args)
  }
}

async function sendCommand<Reply>({ port }: Pick<Redis, 'port'>, args: string[]): Promise<Reply> {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.sendCommand<Reply>(args)
  } finally {
    if (client.isOpen) client.destroy()
  }
}

/** A Sentinel that watches a primary, without others so far. */
export function startSentinel(primary: Redis): Promise<Redis> {
  return startRedis(
    {},
    `sentinel monitor ${primaryName} 127.0.0.1 ${primary.port} 2
sentinel down-after-milliseconds ${primaryName} 1000
sentinel failover-timeout ${primaryName} 3000
`,
  )
}

/** A primary, two replicas and three Sentinels, which replace a primary that has not responded for a second. */
export async function startSentinelSet(settings: Settings = {}): Promise<RedisSet> {
  const started: Redis[] = []
  const stop = () => stopAll(started)
  try {
    const nodes = await startNodes(3, () => settings, started)
    const [primary, ...replicas] = nodes
    for (const replica of replicas) await redisCommand(replica, 'REPLICAOF', '127.0.0.1', String(primary!.port))
    for (const replica of replicas)
      await untilTrue('a replica is in sync', async () =>
        (await redisCommand<string>(replica, 'INFO', 'replication')).includes('master_link_status:up'),
      )
    const sentinels: Redis[] = []
    for (let count = 0; count < 3; count++) {
      const sentinel = await startSentinel(primary!)
      started.push(sentinel)
      sentinels.push(sentinel)
    }
    // Without the others, a Sentinel cannot replace a primary.
    for (const sentinel of sentinels)
      await untilTrue('a Sentinel knows the others and the replicas', async () => {
        const [state] = await redisCommand<Record<string, string>[]>(sentinel, 'SENTINEL', 'MASTERS')
        return state!['num-other-sentinels'] === '2' && state!['num-slaves'] === '2'
      })
    return {
      url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join()}/${primaryName}`,
      nodes,
      sentinels,
      async primaries() {
        const named = await redisCommand<string[]>(sentinels[0]!, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primaryName)
        return nodes.filter(({ port }) => String(port) === named[1])
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Three primaries, which have a third of the hash slots each, with one replica each. */
export async function startRedisCluster(settings: Settings = {}): Promise<RedisSet> {
  const started: Redis[] = []
  // A server that restarts without its configuration of the cluster would no longer belong to it.
  const directories = await Promise.all(Array.from({ length: 6 }, () => mkdtemp(join(tmpdir(), 'wallet-redis-'))))
  const stop = async () => {
    await stopAll(started)
    for (const directory of directories) await rm(directory, { recursive: true, force: true })
  }
  try {
    const busPorts = await Promise.all(Array.from({ length: 6 }, pickFreePort))
    const clustered = (at: number) => ({
      'cluster-enabled': 'yes',
      'cluster-port': String(busPorts[at]),
      dir: directories[at]!,
      'cluster-node-timeout': '1000',
      // Without one primary, the others serve.
      'cluster-require-full-coverage': 'no',
      ...settings,
    })
    const nodes = await startNodes(6, clustered, started)
    const [first, ...rest] = nodes
    for (const [at, node] of nodes.slice(0, 3).entries()) {
      const [from, to] = [Math.ceil((at * 16_384) / 3), Math.ceil(((at + 1) * 16_384) / 3) - 1]
      await redisCommand(node, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
      await redisCommand(node, 'CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))
    }
    for (const [at, node] of rest.entries())
      await redisCommand(first!, 'CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(busPorts[at + 1]))
    const isComplete = async (node: Redis) =>
      /cluster_state:ok(.|\n|\r)*cluster_known_nodes:6/.test(await redisCommand<string>(node, 'CLUSTER', 'INFO'))
    for (const node of nodes) await untilTrue('a server knows the others', () => isComplete(node))
    for (const [at, replica] of nodes.slice(3).entries()) {
      const id = await redisCommand<string>(nodes[at]!, 'CLUSTER', 'MYID')
      await redisCommand(replica, 'CLUSTER', 'REPLICATE', id)
    }
    for (const replica of nodes.slice(3))
      await untilTrue('a replica is in sync', async () =>
        (await redisCommand<string>(replica, 'INFO', 'replication')).includes('master_link_status:up'),
      )
    return {
      url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}`,
      nodes,
      sentinels: [],
      async primaries() {
        for (const node of nodes) {
          const ranges = await readSlots(node)
          if (ranges) return ranges.map(([, , [, port]]) => nodes.find(node => node.port === port)!)
        }
        throw new Error('no server of the cluster answers')
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Moves a hash slot with its keys to another primary, as `redis-cli --cluster reshard` does. */
export async function moveSlot(slot: number, source: Redis, target: Redis): Promise<void> {
  const [sourceId, targetId] = await Promise.all([
    redisCommand<string>(source, 'CLUSTER', 'MYID'),
    redisCommand<string>(target, 'CLUSTER', 'MYID'),
  ])
  await redisCommand(target, 'CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId)
  await redisCommand(source, 'CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId)
  for (;;) {
    const names = await redisCommand<string[]>(source, 'CLUSTER', 'GETKEYSINSLOT', String(slot), '10')
    if (names.length === 0) break
    await redisCommand(source, 'MIGRATE', '127.0.0.1', String(target.port), '', '0', '5000', 'KEYS', ...names)
  }
  for (const node of [target, source]) await redisCommand(node, 'CLUSTER', 'SETSLOT', String(slot), 'NODE', targetId)
}

type SlotRange = [from: number, to: number, primary: [host: string, port: number]]

/** Null if the server does not answer: a test may have suspended it. */
async function readSlots(node: Redis): Promise<SlotRange[] | null> {
  const answer = redisCommand<SlotRange[]>(node, 'CLUSTER', 'SLOTS').catch(() => null)
  return Promise.race([answer, sleep(500, null)])
}

async function startNodes(count: number, settingsOf: (at: number) => Settings, started: Redis[]): Promise<Redis[]> {
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const node = await startRedis(settingsOf(at))
      started.push(node)
      return node
    }),
  )
  return nodes
}

async function untilTrue(what: string, ask: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + startTimeoutMs
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`Waited ${startTimeoutMs / 1000} s in vain: ${what}`)
    await sleep(pollMs)
  }
}

async function stopAll(servers: readonly Redis[]): Promise<void> {
  for (const server of servers) await server.stop()
}
