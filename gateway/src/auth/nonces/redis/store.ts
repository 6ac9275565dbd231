import { setTimeout as sleep } from 'node:timers/promises'
import { Availability, errorSummary, type Log } from '@workspace-wallet/runtime'
import type { Limits, Rate, Tally } from '../../limits/rate.ts'
import { Deadline } from '../deadline.ts'
import { type Generations, includesAll } from '../generations.ts'
import type { Claim, NonceStore } from '../store.ts'
import { NonceGroup } from './group.ts'
import { currentMoment } from './moment.ts'
import { partitionOf } from './partitions.ts'
import { RedisServer } from './server.ts'
import { topologyOf } from './topology.ts'
import type { RedisTarget } from './url.ts'

/** Redis answers in well under a millisecond. One that takes this long hangs or is gone. */
const deadlineMs = 700
/** How often the servers and their settings are checked, and core is asked for the latest generations. */
const checkMs = 1_000
/** How long after one search for the primaries the next one may begin that a failure causes. */
const relocateMs = 100
/** How long the start waits for Redis. After that, the gateway listens, but is not ready. */
const startMs = 1_000

/** A nonce store in Redis, shared by all gateways (docs/decisions/0007 and 0040). */
export async function openRedisNonces(
  target: RedisTarget,
  generations: Generations,
  limits: Limits,
  log: Log,
): Promise<NonceStore> {
  const store = new RedisNonces(target, generations, limits, log)
  await Promise.race([store.start(), sleep(startMs, undefined, { ref: false })])
  return store.methods()
}

class RedisNonces {
  readonly #generations: Generations
  readonly #limits: Limits
  readonly #log: Log
  readonly #deadline = new Deadline(deadlineMs, 'Redis did not answer in time')
  readonly #topology
  readonly #groups: readonly NonceGroup[]
  readonly #servers = new Map<string, RedisServer>()
  /** By the name of the server; they outlive its connections. */
  readonly #availability = new Map<string, Availability>()
  #locating: Promise<void> | undefined
  #locatedAtMs = Number.NEGATIVE_INFINITY
  /** Why the primaries are unknown. */
  #locateError: unknown
  #timer: NodeJS.Timeout | undefined
  /** Resolved when a server was checked for the first time. */
  readonly #firstCheck = Promise.withResolvers<void>()
  #isClosed = false

  constructor(target: RedisTarget, generations: Generations, limits: Limits, log: Log) {
    this.#generations = generations
    this.#limits = limits
    this.#log = log
    this.#topology = topologyOf(target, this.#deadline)
    const rates = [limits.key, limits.failures].flatMap(rateArguments)
    const failed = () => this.#relocate()
    this.#groups = this.#topology.groups.map(
      group => new NonceGroup(group, { deadline: this.#deadline, rates, log, failed }),
    )
  }

  /** Resolves when a server was checked for the first time. */
  start(): Promise<void> {
    this.#timer = setInterval(() => void this.#check(), checkMs).unref()
    void this.#locate()
    return this.#firstCheck.promise
  }

  methods(): NonceStore {
    const { key: keyRate } = this.#limits
    return {
      claim: async (apiKey, nonce, timestamp) => {
        const group = this.#groupOf(apiKey)
        const name = nonceKey(group, apiKey, nonce)
        if (!keyRate) return (await group.query('C', [name], timestamp)) === 1 ? newClaim : usedClaim
        const result = await group.query('K', [name, `limit:key:${group.group.tag}${apiKey}`], timestamp)
        const [isNew, ...tally] = result as number[]
        return isNew === 1 ? { isNew: true, tally: toTally(tally) } : usedClaim
      },
      isUsed: async (apiKey, nonce, timestamp) => {
        const group = this.#groupOf(apiKey)
        return (await group.query('L', [nonceKey(group, apiKey, nonce)], timestamp)) === 0
      },
      countFailure: async address => {
        const group = this.#groupOf(address)
        return toTally((await group.query('F', [`limit:address:${group.group.tag}${address}`])) as number[])
      },
      fault: () => this.fault(),
      close: async () => {
        this.#isClosed = true
        clearInterval(this.#timer)
        this.#topology.close()
        for (const server of this.#servers.values()) server.close()
      },
    }
  }

  /**
   * Checks that Redis keeps every nonce and can write. If only some servers do, the gateway is ready: requests of the other keys
   * fail at every gateway.
   */
  async fault(): Promise<string | null> {
    const faults = await Promise.all(Array.from(this.#servers.values(), server => this.#faultOf(server)))
    if (faults.includes(null)) return null
    return faults[0] ?? errorSummary(this.#locateError ?? 'the primary of Redis is not known yet')
  }

  async #faultOf(server: RedisServer): Promise<string | null> {
    try {
      await this.#deadline.inTime(server.inspect())
      const writes = await Promise.allSettled(Array.from(server.groups, group => group.query('P', [])))
      const failed = writes.find(({ status }) => status === 'rejected')
      if (!failed) server.restored()
      if (failed && !writes.some(({ status }) => status === 'fulfilled'))
        return errorSummary((failed as PromiseRejectedResult).reason)
      return null
    } catch (error) {
      server.lost(error)
      return errorSummary(error)
    }
  }

  async #check(): Promise<void> {
    for (const server of this.#servers.values()) server.checking()
    await Promise.all([this.#locate(), this.#confirm(), this.fault()])
  }

  /**
   * Asks core whether the generations are still the latest. Otherwise requests were accepted in another store meanwhile: another
   * server that became the primary, for example.
   */
  async #confirm(): Promise<void> {
    const askedAt = currentMoment()
    try {
      const latest = await this.#generations.latest()
      for (const group of this.#groups) {
        const { joined } = group
        // Joined after core was asked.
        if (!joined || joined.confirmedAt.monotonicMs > askedAt.monotonicMs) continue
        if (includesAll(latest[joined.id], group.group.partitions)) joined.confirmedAt = askedAt
        else group.leave()
      }
    } catch {
      // The key cache reports that no core answers. Requests are rejected when the last confirmation is too old.
    }
  }

  #relocate(): void {
    if (performance.now() - this.#locatedAtMs > relocateMs) void this.#locate()
  }

  /** Finds the primaries. One search at a time. */
  #locate(): Promise<void> {
    this.#locating ??= this.#connectToPrimaries().finally(() => {
      this.#locating = undefined
      this.#locatedAtMs = performance.now()
    })
    return this.#locating
  }

  async #connectToPrimaries(): Promise<void> {
    let addresses: (string | undefined)[]
    try {
      addresses = await this.#topology.locate()
    } catch (error) {
      // The servers that were the primaries are used for as long as they can write and core confirms their generations.
      this.#locateError = error
      if (this.#servers.size === 0 && !this.#isClosed) this.#availabilityOf('').lost(error)
      return
    }
    if (this.#isClosed) return
    this.#locateError = undefined
    for (const [at, group] of this.#groups.entries()) this.#assign(group, addresses[at])
    for (const [address, server] of this.#servers)
      if (server.groups.size === 0) {
        server.close()
        this.#servers.delete(address)
      }
  }

  #assign(group: NonceGroup, address: string | undefined): void {
    const server = address === undefined ? undefined : this.#serverAt(address)
    if (group.server === server) return
    group.server?.groups.delete(group)
    group.leave()
    group.server = server
    server?.groups.add(group)
  }

  #serverAt(address: string): RedisServer {
    const existing = this.#servers.get(address)
    if (existing) return existing
    if (this.#servers.size > 0 || address) this.#log.info({ address }, 'connecting to a primary of Redis')
    const server = new RedisServer(this.#topology.optionsOf(address), {
      generations: this.#generations,
      availability: this.#availabilityOf(this.#groups.length > 1 ? address : ''),
      log: this.#log,
      survivesRestarts: this.#topology.survivesRestarts,
      connected: () => void this.fault().then(() => this.#firstCheck.resolve()),
      failed: () => this.#relocate(),
    })
    this.#servers.set(address, server)
    return server
  }

  #availabilityOf(address: string): Availability {
    const availability =
      this.#availability.get(address) ?? new Availability(address ? `Redis at ${address}` : 'Redis', this.#log)
    this.#availability.set(address, availability)
    return availability
  }

  #groupOf(text: string): NonceGroup {
    return this.#groups.length === 1 ? this.#groups[0]! : this.#groups[partitionOf(text)]!
  }
}

const newClaim: Claim = { isNew: true }
const usedClaim: Claim = { isNew: false }

function toTally([remaining, waitMs, fullMs]: number[]): Tally {
  return { remaining: remaining!, waitMs: waitMs!, fullMs: fullMs! }
}

function rateArguments(rate: Rate | undefined): string[] {
  return rate ? [String(rate.intervalMicros), String(rate.burst)] : ['0', '0']
}

function nonceKey({ group }: NonceGroup, apiKey: string, nonce: string): string {
  return `nonce:${group.tag}${apiKey}:${nonce}`
}
