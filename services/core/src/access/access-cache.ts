import type { KeyObject } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type AccessPosition,
  accessLeaseMs,
  accessMaxAgeMs,
  accessPollMs,
  atBatchIndex,
  DomainError,
  type Scope,
} from '@workspace-wallet/contract'
import { Availability, type Log, pause } from '@workspace-wallet/runtime'
import { batched } from '../database/batched.ts'
import { CoreUnavailable } from '../database/errors.ts'
import type { Queryable } from '../database/statement.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { notHere } from '../places/claims.ts'
import { type ClaimedAccess, findAccess } from './access.ts'
import { findAccessChanges } from './queries.ts'

/** What a key may do, as stored. */
type Access = Omit<ClaimedAccess, 'secrets' | 'ipAllowlist'>
/** `revision`, `now`: the access revision and the time of PostgreSQL at which it was read. */
type ReadAccess = Access & { revision: number; now: Date }
/** `readAtMs`: when the statement was sent. */
type CachedAccess = { access: Access; readAtMs: number }

/** Calls that may wait for a change: more than there are gateways. Each takes about 10 KB. */
const maxWaiting = 256

type Options = {
  /** A monotonic clock. */
  elapsedMs?: () => number
  /** Maximum number of cached keys. */
  limit?: number
}

/**
 * The keys for which gateways call, so that core checks each call itself. Gateways have such a cache of their own, which follows
 * the same changes (docs/decisions/0003).
 *
 * Nothing is rejected because of a cached key: the key is read again first, so that nobody is rejected because of an
 * outdated row. A cached key is used only if the last successful poll for changes began less than `accessLeaseMs` ago, and if it was
 * read less than `accessMaxAgeMs` ago: the numbers by which polls find changes have no MAC.
 */
export class AccessCache {
  readonly #reads: Queryable
  readonly #read: (apiKey: string) => Promise<ReadAccess | null>
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #availability: Availability
  readonly #elapsedMs: () => number
  readonly #limit: number
  readonly #keys = new Map<string, CachedAccess>()
  /** The access revision of the last successful poll, and its epoch; the time of PostgreSQL at it. */
  #revision = 0
  #epoch: string | null = null
  #polledAt = new Date(0)
  /** When that poll was sent. */
  #polledAtMs = Number.NEGATIVE_INFINITY
  /** A poll that was sent earlier may not know the last change that this core made. */
  #changedAtMs = Number.NEGATIVE_INFINITY
  /** How often the cache was cleared. */
  #clearCount = 0
  #moves = 0
  /** Who waits for a change. */
  readonly #waiting = new Set<() => void>()

  constructor(
    { reads, ...parts }: { reads: Queryable; number: number; chainKey: KeyObject; log: Log; metrics: Metrics },
    { elapsedMs = () => performance.now(), limit = 100_000 }: Options = {},
  ) {
    this.#reads = reads
    this.#log = parts.log
    this.#metrics = parts.metrics
    this.#elapsedMs = elapsedMs
    this.#limit = limit
    this.#availability = new Availability('the access revision', parts.log)
    const readMany = async (db: Queryable, apiKeys: readonly string[]): Promise<ReadAccess[]> => {
      const { revision, now, keys } = await findAccess({ reads: db, ...parts }, apiKeys)
      return keys.map(({ secrets, ipAllowlist, ...access }) => ({ ...access, revision, now }))
    }
    const read = batched({
      readMany,
      nameOf: { key: (apiKey: string) => apiKey, row: ({ apiKey }) => apiKey },
      resultOf: (_, access) => access,
    })
    this.#read = apiKey => read(reads, apiKey)
  }

  get size(): number {
    return this.#keys.size
  }

  /** How often polls have found that workspaces have arrived in this place or begun to leave it. */
  get moves(): number {
    return this.#moves
  }

  /** Polls for changes until `stopping`. */
  async follow(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      await this.poll().then(
        () => this.#availability.restored(),
        error => this.#availability.lost(error),
      )
      await pause(accessPollMs, stopping)
    }
  }

  /** Drops the keys that have changed since the last poll. */
  async poll(): Promise<void> {
    const askedAtMs = this.#elapsedMs()
    const since = { since: this.#revision, epoch: this.#epoch }
    const { revision, epoch, now, complete, hasMoves, apiKeys } = await findAccessChanges(this.#reads, since)
    if (!complete) this.#clear()
    if (hasMoves) this.#moves++
    for (const apiKey of apiKeys) this.#keys.delete(apiKey)
    if (revision !== this.#revision || epoch !== this.#epoch) for (const callback of this.#waiting) callback()
    this.#revision = revision
    this.#epoch = epoch
    this.#polledAt = now
    this.#polledAtMs = askedAtMs
  }

  /** Whether one more call may wait for a change: each takes memory of core. */
  get mayWait(): boolean {
    return this.#waiting.size < maxWaiting
  }

  /** Calls back whenever a poll has found a change, until the returned function is called. */
  onChange(callback: () => void): () => void {
    this.#waiting.add(callback)
    return () => this.#waiting.delete(callback)
  }

  /** Whether the last successful poll was sent at this time or later, and has found this position. */
  hasPolled({ revision, epoch }: AccessPosition, sinceMs: number): boolean {
    const isNow = revision === this.#revision && epoch === this.#epoch
    return isNow && this.#polledAtMs >= sinceMs && this.#polledAtMs > this.#changedAtMs
  }

  /** Uses no cached key until the next poll, because this core may have changed what keys may do. */
  expire(): void {
    this.#changedAtMs = this.#elapsedMs()
  }

  /**
   * Checks that a key may make a call now: steps 1, 2, 3 and 8 of section 5.3, in this order.
   *
   * @param index the place of the item of a batch that needs the scope
   * @returns the workspace of the key
   * @throws DomainError GA2011, GA2021, GA2032, GA2034, GA2024; S002 if the key cannot be read in time, or is not in this place now
   */
  async require(apiKey: string, scope: Scope, index?: number): Promise<string> {
    const cached = this.#cached(apiKey)
    if (cached && cached.claim !== notHere && !faultOf(cached, scope, this.#nowMs)) return cached.workspaceId
    const access = await this.#lookUp(apiKey)
    if (!access) throw new DomainError('GA2011')
    if (access.claim === notHere) throw new DomainError('S002', { retryAfterSeconds: 1 })
    const fault = faultOf(access, scope, access.now.getTime())
    if (!fault) return access.workspaceId
    throw index === undefined ? fault : atBatchIndex(fault, index)
  }

  #cached(apiKey: string): Access | undefined {
    if (!this.isCurrent) return undefined
    const cached = this.#keys.get(apiKey)
    return cached && this.#elapsedMs() - cached.readAtMs < accessMaxAgeMs ? cached.access : undefined
  }

  /** Whether the last successful poll is recent enough to use what was read before it. */
  get isCurrent(): boolean {
    return this.#polledAtMs > this.#changedAtMs && this.#elapsedMs() - this.#polledAtMs < accessLeaseMs
  }

  /** The time of PostgreSQL, or a little later: it counts from when the poll was sent, not from when it was answered. */
  get #nowMs(): number {
    return this.#polledAt.getTime() + this.#elapsedMs() - this.#polledAtMs
  }

  async #lookUp(apiKey: string): Promise<ReadAccess | null> {
    const askedAtMs = this.#elapsedMs()
    const clearCount = this.#clearCount
    const access = await this.#read(apiKey)
    // A late response is as outdated as a key that was cached for as long.
    if (this.#elapsedMs() - askedAtMs >= accessLeaseMs) throw new CoreUnavailable()
    // A poll that was answered meanwhile may have dropped the key because of a later change.
    if (access && access.revision >= this.#revision && clearCount === this.#clearCount) this.#store(access, askedAtMs)
    return access
  }

  #store({ revision, now, ...access }: ReadAccess, readAtMs: number): void {
    const { apiKey } = access
    const earlier = this.#keys.get(apiKey)
    // The polls have found all changes up to this revision, and would have dropped the key.
    if (earlier && revision === this.#revision && !isDeepStrictEqual(earlier.access, access)) {
      this.#metrics.modifiedRow('api_key')
      this.#log.fatal({ apiKey }, 'a change of an API key was hidden from the polls for changes: run ledger verify')
    }
    if (this.#keys.size >= this.#limit) this.#keys.clear()
    this.#keys.set(apiKey, { access, readAtMs })
  }

  #clear(): void {
    this.#clearCount++
    this.#keys.clear()
  }
}

/** Why a key may not make a call that needs this scope; null if it may. */
function faultOf(access: Access, scope: Scope, nowMs: number): DomainError | null {
  const { status, expiresAt, workspaceExists, ownerIsMember, scopes } = access
  if (status !== 'ACTIVE') return new DomainError('GA2021', { reason: 'DISABLED' })
  if (expiresAt && expiresAt.getTime() <= nowMs) return new DomainError('GA2021', { reason: 'EXPIRED' })
  if (!workspaceExists) return new DomainError('GA2032')
  if (!ownerIsMember) return new DomainError('GA2034')
  if (!scopes.includes(scope)) return new DomainError('GA2024', { scope })
  return null
}
