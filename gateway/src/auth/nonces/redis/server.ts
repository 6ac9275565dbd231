import { hash, randomUUID } from 'node:crypto'
import type { Availability, Log } from '@workspace-wallet/runtime'
import { type Generations, includesAll, nonceMac } from '../generations.ts'
import { fenceOf } from '../store.ts'
import { type ConnectionOptions, RedisConnection } from './connection.ts'
import type { JoinedGeneration, NonceGroup, PrimaryServer } from './group.ts'
import { currentMoment } from './moment.ts'
import { batchScript, joinScript } from './scripts.ts'

/** How often joining is tried if another generation begins meanwhile. */
const joinAttempts = 3

type Parts = {
  generations: Generations
  availability: Availability
  log: Log
  /** Whether it continues its generation after a restart in which it lost nothing. */
  survivesRestarts: boolean
  /** The first connection was established. */
  connected(): void
  /** The server failed: it may not be the primary any more. */
  failed(): void
}

/** What a server says about itself when it is joined. */
type Identity = { secret: string; runId: string; scriptHash: string; isDurable: boolean }
/** A generation that the server stores. `beganAt`: in seconds; null before core has recorded it. */
type StoredGeneration = { group: NonceGroup; key: string; value: string; id: string; beganAt: number | null }

/** The sections that gateways read. Another one, which can become huge, has an entry for each error code that scripts have returned. */
const infoCommand = ['INFO', 'server', 'memory', 'persistence', 'stats']

/** A Redis server that is the primary of some groups of partitions. */
export class RedisServer implements PrimaryServer {
  readonly groups = new Set<NonceGroup>()
  readonly #parts: Parts
  readonly #connection: RedisConnection
  /** Why groups could not be joined. */
  #joining: Promise<Map<NonceGroup, unknown>> | undefined
  #isClosed = false

  constructor(options: ConnectionOptions, parts: Parts) {
    this.#parts = parts
    this.#connection = new RedisConnection(options, {
      connected: () => parts.connected(),
      failed: error => {
        this.lost(error)
        parts.failed()
      },
      reset: () => this.#leave(),
    })
  }

  send<Reply>(args: string[]): Promise<Reply> {
    return this.#connection.send<Reply>(args)
  }

  lost(error: unknown): void {
    if (!this.#isClosed) this.#parts.availability.lost(error)
  }

  restored(): void {
    if (!this.#isClosed) this.#parts.availability.restored()
  }

  checking(): void {
    this.#connection.checking()
  }

  /**
   * Checks that the server still keeps every nonce: its settings may have changed since it was joined.
   *
   * @throws Error if it may evict keys
   */
  async inspect(): Promise<void> {
    const info = await this.send<string>(infoCommand)
    this.#connection.answered()
    try {
      rejectEviction(info)
    } catch (error) {
      // No request is accepted until the server can be joined again.
      this.#leave()
      throw error
    }
    const evicted = field(info, 'evicted_keys')
    for (const group of this.groups) if (group.joined && group.joined.evicted !== evicted) group.leave()
  }

  close(): void {
    this.#isClosed = true
    this.#leave()
    this.#connection.close()
  }

  /** Joins the generation of a group, together with the other groups that wait for it. */
  async join(group: NonceGroup): Promise<JoinedGeneration> {
    this.#joining ??= this.#join([...this.groups].filter(({ joined }) => !joined)).finally(
      () => (this.#joining = undefined),
    )
    const failures = await this.#joining
    if (group.joined && group.server === this) return group.joined
    throw failures.get(group) ?? new Error('the nonces of a request are on another Redis server now')
  }

  #leave(): void {
    for (const group of this.groups) group.leave()
  }

  async #join(groups: readonly NonceGroup[]): Promise<Map<NonceGroup, unknown>> {
    const identity = await this.#identify()
    const failures = new Map<NonceGroup, unknown>()
    let followed = new Map(groups.map(group => [group, '']))
    for (let attempt = 0; attempt < joinAttempts && followed.size > 0; attempt++) {
      const newId = randomUUID()
      const stored: StoredGeneration[] = []
      await Promise.all(
        Array.from(followed, async ([group, id]) => {
          try {
            stored.push(await this.#read(group, identity, { newId, followed: id }))
          } catch (error) {
            // In Redis Cluster, a slot may be on its way to another server.
            failures.set(group, error)
          }
        }),
      )
      followed = new Map()
      for (const [id, members] of Map.groupBy(stored, ({ id }) => id))
        for (const group of await this.#begin(id, members, identity, newId)) followed.set(group, id)
    }
    for (const group of followed.keys())
      failures.set(
        group,
        new Error('gateways of the same core use several nonce stores at once: give them the same REDIS_URL'),
      )
    return failures
  }

  async #identify(): Promise<Identity> {
    const secret = await this.#parts.generations.readKey()
    const info = await this.send<string>(infoCommand)
    // Meanwhile, Redis says that it writes no append-only file, and would count as not durable.
    if (field(info, 'loading') === '1') throw new Error('Redis is loading its data')
    rejectEviction(info)
    const runId = field(info, 'run_id')
    const script = batchScript(nonceMac(secret, `server ${runId}`))
    await this.send(['SCRIPT', 'LOAD', script])
    const isDurable =
      this.#parts.survivesRestarts &&
      field(info, 'aof_enabled') === '1' &&
      (await this.#readSetting('appendfsync')) === 'always'
    return { secret, runId, scriptHash: hash('sha1', script), isDurable }
  }

  /** Reads the generation of a group, or makes a new one. */
  async #read(
    group: NonceGroup,
    { secret, runId, isDurable }: Identity,
    { newId, followed = '', recorded = '' }: { newId: string; followed?: string; recorded?: string },
  ): Promise<StoredGeneration> {
    // Without the secret, nobody can name this key, and so nobody can restore it after a loss.
    const key = `nonces:generation:${group.group.tag}${nonceMac(secret, 'generation')}`
    const command = ['EVAL', joinScript, '1', key, runId, isDurable ? '1' : '0', newId, followed, recorded]
    const value = await this.send<string>(command)
    const [, , id, beganAt] = value.split(' ')
    return { group, key, value, id: id!, beganAt: beganAt === '-' ? null : Number(beganAt) }
  }

  /**
   * Records a generation and joins it.
   *
   * @returns the groups for which it is not the latest: requests were accepted in another store meanwhile, whose nonces this server
   *   does not have
   */
  async #begin(
    id: string,
    members: readonly StoredGeneration[],
    identity: Identity,
    newId: string,
  ): Promise<NonceGroup[]> {
    const confirmedAt = currentMoment()
    const partitions = members.flatMap(({ group }) => group.group.partitions)
    const { first, latest } = await this.#parts.generations.begin(id, partitions)
    const isFirst = includesAll(first, partitions)
    if (id === newId && !isFirst)
      this.#parts.log.error(
        { partitions: partitions.length },
        'Redis has lost its nonces: requests that may have been accepted before are rejected with S002 for about a minute',
      )
    const followed: NonceGroup[] = []
    await Promise.all(
      members.map(async member => {
        const { group } = member
        const begun = member.beganAt === null ? await this.#read(group, identity, { newId, recorded: id }) : member
        const isLatest = begun.id === id && includesAll(latest, group.group.partitions)
        if (!isLatest) return followed.push(group)
        // It is on another server now.
        if (group.server !== this) return
        const { key, value, beganAt } = begun
        const isFirst = includesAll(first, group.group.partitions)
        group.joined = {
          id,
          key,
          value,
          evicted: value.split(' ')[0]!.split(':')[2]!,
          scriptHash: identity.scriptHash,
          fence: fenceOf(beganAt!, isFirst),
          confirmedAt,
        }
      }),
    )
    return followed
  }

  /** Null if the server does not allow CONFIG, like many managed ones. */
  async #readSetting(name: string): Promise<string | null> {
    try {
      const settings = await this.send<Record<string, string>>(['CONFIG', 'GET', name])
      return settings[name] ?? null
    } catch {
      return null
    }
  }
}

/** @throws Error if Redis may evict nonces, which could then be used again */
function rejectEviction(info: string): void {
  const policy = field(info, 'maxmemory_policy')
  if (field(info, 'maxmemory') !== '0' && policy !== 'noeviction')
    throw new Error(`Redis may evict nonces: its maxmemory-policy is ${policy}, set it to noeviction`)
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
}
