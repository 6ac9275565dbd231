import { isDomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Deadline } from '../deadline.ts'
import { checkFence, nonceLifeMs } from '../store.ts'
import { elapsedMs, type Moment, never } from './moment.ts'
import type { PartitionGroup } from './partitions.ts'

const queriesPerCall = 200
/** How often a batch is tried if the generation ends while it is in flight. */
const batchAttempts = 3
/**
 * For how long requests are accepted in a generation after core has confirmed it. Another server may have become the primary
 * meanwhile, where requests that were signed up to this time after its start are rejected, if the clocks differ by 5 s at most.
 */
const leaseMs = 5_000
const clockWarningMs = 10_000

/** See scripts.ts for the operations and their results. */
export type Operation = 'C' | 'K' | 'L' | 'F' | 'P'
type PendingQuery = {
  operation: Operation
  keys: string[]
  /** Of the request; undefined for operations that are not about a nonce. */
  timestamp: number | undefined
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}
export type Result = number | number[]

/**
 * `key`, `value`: the key of the generation and what it contains, its server and when it began. It does not expire, so it is
 * missing only if Redis lost data. `evicted`: how many keys the server had evicted when it was joined.
 */
export type JoinedGeneration = {
  id: string
  key: string
  value: string
  evicted: string
  scriptHash: string
  fence: number
  /** When the last call was sent to which core has answered that this generation is the latest. */
  confirmedAt: Moment
}

/** The primary of some groups: see RedisServer. */
export interface PrimaryServer {
  readonly groups: Set<NonceGroup>
  join(group: NonceGroup): Promise<JoinedGeneration>
  send<Reply>(args: string[]): Promise<Reply>
  lost(error: unknown): void
}

type Parts = {
  deadline: Deadline
  /** Interval and burst of the limits, as the script expects them. */
  rates: readonly string[]
  log: Log
  /** A batch failed: the server may not be the primary any more. */
  failed(): void
}

/**
 * The queries of a group of partitions. All queries of one turn of the event loop are one command. A result is valid only for the
 * generation that the gateway has joined: see scripts.ts and docs/decisions/0007.
 */
export class NonceGroup {
  readonly group: PartitionGroup
  readonly #parts: Parts
  /** The primary of the group; undefined while it is unknown. */
  server: PrimaryServer | undefined
  joined: JoinedGeneration | undefined
  #queries: PendingQuery[] = []
  #clockWarnedAtMs = Number.NEGATIVE_INFINITY

  constructor(group: PartitionGroup, parts: Parts) {
    this.group = group
    this.#parts = parts
  }

  query(operation: Operation, keys: string[], timestamp?: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#queries.push({ operation, keys, timestamp, resolve, reject }) === 1) setImmediate(() => this.#flush())
    })
  }

  /** No request is accepted until a generation has been joined. */
  leave(): void {
    // Also those whose claims are in flight.
    if (this.joined) this.joined.confirmedAt = never
    this.joined = undefined
  }

  #flush(): void {
    const queries = this.#queries
    this.#queries = []
    for (let at = 0; at < queries.length; at += queriesPerCall)
      void this.#settle(queries.slice(at, at + queriesPerCall))
  }

  async #settle(batch: PendingQuery[]): Promise<void> {
    const { server } = this
    try {
      if (!server) throw new Error('no Redis server is known to be the primary')
      const { joined, nowSeconds, results } = await this.#parts.deadline.inTime(this.#runBatch(server, batch))
      if (elapsedMs(joined.confirmedAt) > leaseMs)
        throw new Error(`no core has confirmed for ${leaseMs / 1000} s that Redis has all nonces`)
      for (const [at, { timestamp, resolve, reject }] of batch.entries())
        try {
          if (timestamp !== undefined) checkFence(timestamp, joined.fence, nowSeconds)
          resolve(results[at]!)
        } catch (error) {
          if (!isDomainError(error)) this.#warnOfClocks(error)
          reject(error)
        }
    } catch (error) {
      server?.lost(error)
      this.#parts.failed()
      for (const { reject } of batch) reject(error)
    }
  }

  async #runBatch(server: PrimaryServer, batch: PendingQuery[]) {
    for (let attempt = 0; attempt < batchAttempts; attempt++) {
      const joined = this.joined ?? (await server.join(this))
      const reply = await this.#runScript(server, joined, batch)
      if (reply) return { joined, nowSeconds: reply[0] as number, results: reply.slice(1) }
      if (this.joined === joined) this.leave()
    }
    throw new Error('the generation of the nonce store changed during every attempt')
  }

  /** Null if the server has another generation. */
  async #runScript(server: PrimaryServer, joined: JoinedGeneration, batch: PendingQuery[]): Promise<Result[] | null> {
    const keys = [joined.key, claimKeyOf(this.group), ...batch.flatMap(({ keys }) => keys)]
    const operations = batch.map(({ operation }) => operation).join('')
    const command = ['EVALSHA', joined.scriptHash, String(keys.length), ...keys]
    const parameters = [joined.value, String(nonceLifeMs), operations, ...this.#parts.rates]
    try {
      return await server.send<Result[] | null>([...command, ...parameters])
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return null
      throw error
    }
  }

  /** Logs at most every `clockWarningMs`. Not an outage: only some requests are affected. */
  #warnOfClocks(error: unknown): void {
    if (performance.now() - this.#clockWarnedAtMs < clockWarningMs) return
    this.#clockWarnedAtMs = performance.now()
    this.#parts.log.warn({ err: error }, 'a request was rejected because the clocks differ')
  }
}

/** The key that each claim makes and renames. It exists within a script, or after a claim of a used nonce. */
function claimKeyOf({ tag }: PartitionGroup): string {
  return `nonces:claim:${tag}`
}
