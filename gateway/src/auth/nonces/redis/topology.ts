import { errorSummary } from '@workspace-wallet/runtime'
import type { Deadline } from '../deadline.ts'
import { type ConnectionOptions, RedisConnection } from './connection.ts'
import { clusterGroups, type PartitionGroup, wholeStore } from './partitions.ts'
import { type Address, addressText, type RedisTarget } from './url.ts'

/** Which Redis servers store the nonces of which partitions. */
export interface Topology {
  groups: readonly PartitionGroup[]
  /**
   * Whether a server continues the generation after a restart in which it lost nothing. With replicas, a restart counts as a loss:
   * another server may have been the primary meanwhile.
   */
  survivesRestarts: boolean
  /**
   * The server of each group, in their order: its address, or undefined for hash slots that no server has.
   *
   * @throws Error if it is unknown
   */
  locate(): Promise<(string | undefined)[]>
  /** How to connect to a server that `locate` has named. */
  optionsOf(address: string): ConnectionOptions
  close(): void
}

export function topologyOf(target: RedisTarget, deadline: Deadline): Topology {
  if (target.mode === 'sentinel') return sentinelTopology(target, deadline)
  if (target.mode === 'cluster') return clusterTopology(target, deadline)
  const { url } = target
  return {
    groups: [wholeStore],
    survivesRestarts: true,
    locate: async () => [''],
    optionsOf: () => ({ url }),
    close() {},
  }
}

type Target<Mode> = Extract<RedisTarget, { mode: Mode }>

/** The primary is the one that most Sentinels of REDIS_URL name: a single Sentinel cannot lead gateways to another server. */
function sentinelTopology(target: Target<'sentinel'>, deadline: Deadline): Topology {
  const { name, seeds, sentinelLogin, isTls, login } = target
  const sentinels = seeds.map(seed => new RedisConnection(options(seed, isTls, sentinelLogin)))
  const majority = Math.floor(sentinels.length / 2) + 1
  return {
    groups: [wholeStore],
    survivesRestarts: false,
    async locate() {
      const command = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]
      const replies = await askAll<[string, string] | null>(sentinels, command, deadline)
      const named = replies.answers.flatMap(({ answer }) =>
        answer ? [addressText({ host: answer[0], port: Number(answer[1]) })] : [],
      )
      const { value, votes } = mostFrequent(named)
      if (votes >= majority) return [value]
      const reason = replies.error === undefined ? '' : `: ${errorSummary(replies.error)}`
      throw new Error(`at most ${votes} of ${sentinels.length} Sentinels agree on a primary of ${name}${reason}`)
    },
    optionsOf: address => options(parseAddress(address), isTls, login),
    close() {
      for (const sentinel of sentinels) sentinel.close()
    },
  }
}

/** First slot, last slot, primary, replicas. A server has its host, port and ID. */
type SlotRange = [from: number, to: number, primary: [string | null, number], ...unknown[]]

/** Each slot is on the server that most servers name: one that a network partition has cut off may have an outdated map. */
function clusterTopology(target: Target<'cluster'>, deadline: Deadline): Topology {
  const { seeds, isTls, login } = target
  const optionsOf = (address: string) => options(parseAddress(address), isTls, login)
  const seedAddresses = seeds.map(addressText)
  const connections = new Map(seedAddresses.map(address => [address, new RedisConnection(optionsOf(address))]))

  /** Asks the servers of REDIS_URL and all primaries, because the former may have been replaced one by one. */
  function askFromNowOn(addresses: ReadonlySet<string>): void {
    for (const [address, connection] of connections)
      if (!addresses.has(address)) {
        connection.close()
        connections.delete(address)
      }
    for (const address of addresses)
      if (!connections.has(address)) connections.set(address, new RedisConnection(optionsOf(address)))
  }

  return {
    groups: clusterGroups,
    survivesRestarts: false,
    async locate() {
      const asked = [...connections.keys()]
      const replies = await askAll<SlotRange[]>([...connections.values()], ['CLUSTER', 'SLOTS'], deadline)
      if (replies.answers.length === 0) throw replies.error
      const maps = replies.answers.map(({ answer, at }) => ({ ranges: answer, asked: parseAddress(asked[at]!) }))
      const addresses = clusterGroups.map(({ slot }) => {
        const named = maps.flatMap(({ ranges, asked }) => {
          const range = ranges.find(([from, to]) => from <= slot && slot <= to)
          // A server without a host in its configuration is the one that was asked.
          return range ? [addressText({ host: range[2][0] || asked.host, port: range[2][1] })] : []
        })
        return mostFrequent(named).value
      })
      askFromNowOn(new Set([...seedAddresses, ...addresses.filter(address => address !== undefined)]))
      return addresses
    },
    optionsOf,
    close: () => askFromNowOn(new Set()),
  }
}

/** The answers that arrive in time, with the places of their connections, and the last error. */
async function askAll<Answer>(connections: readonly RedisConnection[], command: string[], deadline: Deadline) {
  const answers: { answer: Answer; at: number }[] = []
  let error: unknown
  await Promise.all(
    connections.map(async (connection, at) => {
      connection.checking()
      try {
        answers.push({ answer: await deadline.inTime(connection.send<Answer>(command)), at })
        connection.answered()
      } catch (failure) {
        error = failure
      }
    }),
  )
  return { answers, error }
}

function mostFrequent(values: readonly string[]): { value: string | undefined; votes: number } {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  const [most] = [...counts].sort(([, one], [, other]) => other - one)
  return { value: most?.[0], votes: most?.[1] ?? 0 }
}

function options({ host, port }: Address, isTls: boolean, login: object): ConnectionOptions {
  return { ...login, socket: isTls ? { host, port, tls: true } : { host, port } }
}

function parseAddress(text: string): Address {
  const at = text.lastIndexOf(':')
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) }
}
