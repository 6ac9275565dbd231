import { createSecretKey, type KeyObject } from 'node:crypto'
import {
  type AccessPosition,
  accessLeaseMs,
  accessMaxAgeMs,
  accessPollMs,
  DomainError,
  isDomainError,
  type KeyAccess,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import {
  type AddressBlock,
  Availability,
  decryptSecret,
  errorSummary,
  hasKeyIdChecksum,
  type KeyRing,
  type Log,
  parseBlock,
  SampledLog,
} from '@workspace-wallet/runtime'
import { keysPerLookup } from '../../core/answer-limits.ts'

/** An API key as the pipeline needs it. Decrypted secrets exist only as key objects. */
export type Key = Pick<KeyAccess, 'apiKey' | 'workspaceId' | 'status' | 'workspaceExists' | 'ownerIsMember'> & {
  expiresAtMs: number
  scopes: ReadonlySet<string>
  ipAllowlist: readonly AddressBlock[]
  secrets: readonly { key: KeyObject; validUntilMs: number }[]
}

/** What the polls have seen of a place of core (docs/scale.md). */
type SeenPlace = AccessPosition & {
  /** When the last poll was sent that the place has answered. */
  polledAtMs: number
  /** How often its keys were dropped. */
  clearCount: number
}

/** A look-up is repeated if a poll meanwhile returned a newer change. */
const lookupAttempts = 3
/** How many uses one report names at most. */
const usesPerReport = 500
const waitingLimit = 5_000
const keyLimit = 100_000
const unknownLimit = 100_000
const reportUseMs = 5_000

/**
 * A cache of core's API keys (docs/decisions/0003). Core increments one revision for every change of a key, a membership or a
 * workspace. The cache polls for the keys that a change affects and drops them. It reads each key again after `accessMaxAgeMs`.
 */
export class KeyCache {
  readonly #core: CoreClient
  readonly #keyRing: KeyRing
  readonly #log: Log
  readonly #sampled: SampledLog
  readonly #availability: Availability
  readonly #elapsedMs: () => number
  /** `place`: where the key is. `readAtMs`: when the look-up was sent. */
  readonly #keys = new Map<string, CachedKey>()
  /** IDs that do not exist. They stay unknown: only core generates IDs, and they cannot be guessed. */
  readonly #unknown = new Set<string>()
  /** When each key was last used; only keys used since the last report. */
  readonly #used = new Map<string, number>()
  /** Keys that wait for a look-up. */
  readonly #waiting = new Map<string, PromiseWithResolvers<Key | null>>()
  #isLookingUp = false
  /** Null until the first successful poll. */
  #checksumKey: string | null = null
  /** Empty before the first successful poll. */
  #places: readonly SeenPlace[] = []
  /** Why the last poll failed. */
  #lastError: unknown
  #timer: NodeJS.Timeout | undefined
  #reportTimer: NodeJS.Timeout | undefined
  #closed = false

  /** @param elapsedMs a monotonic clock */
  constructor(core: CoreClient, keyRing: KeyRing, log: Log, elapsedMs: () => number = () => performance.now()) {
    this.#core = core
    this.#keyRing = keyRing
    this.#log = log
    this.#sampled = new SampledLog(log)
    this.#availability = new Availability('core', log)
    this.#elapsedMs = elapsedMs
  }

  /** Starts to poll for changes, and to report when keys were used. */
  start(): void {
    void this.#poll()
    this.#reportTimer = setInterval(() => this.#reportUse(), reportUseMs)
    this.#reportTimer.unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    clearInterval(this.#reportTimer)
    this.#sampled.flush()
  }

  /** Whether cached keys of a place may be used: the last successful poll is recent enough. Without one, the gateway fails closed. */
  get isCurrent(): boolean {
    return this.#places.some(place => this.#isCurrent(place))
  }

  #isCurrent(place: SeenPlace | undefined): boolean {
    return place !== undefined && this.#elapsedMs() - place.polledAtMs < accessLeaseMs
  }

  /** Why cached keys may not be used now; null if they may. */
  get fault(): string | null {
    if (this.isCurrent) return null
    const sinceMs = this.#elapsedMs() - Math.max(...this.#places.map(({ polledAtMs }) => polledAtMs))
    const since = Number.isFinite(sinceMs) ? `for ${Math.floor(sinceMs / 1000)} s` : 'yet'
    return `no core has answered ${since}${this.#lastError === undefined ? '' : `: ${errorSummary(this.#lastError)}`}`
  }

  get counts() {
    return { known: this.#keys.size, unknown: this.#unknown.size, waiting: this.#waiting.size }
  }

  /**
   * Finds a key by its ID; null if it does not exist. The result is not a promise if core need not be asked.
   *
   * @throws DomainError S002 if core cannot be asked; S001 if a secret of the key cannot be decrypted
   */
  find(apiKey: string): Key | null | Promise<Key | null> {
    const cached = this.#keys.get(apiKey)
    if (cached) {
      const isUsable = this.#isCurrent(this.#places[cached.place])
      if (isUsable && this.#elapsedMs() - cached.readAtMs < accessMaxAgeMs) return cached.key
    } else if (this.isCurrent && this.#unknown.has(apiKey)) return null
    return this.#canExist(apiKey) ? this.#lookUp(apiKey) : null
  }

  /** Records that a key was used. Core is told every few seconds. */
  markUsed(apiKey: string, nowMs: number): void {
    this.#used.set(apiKey, nowMs)
  }

  /** False for IDs that core certainly never generated, so that guesses cause no look-ups. */
  #canExist(apiKey: string): boolean {
    if (this.#checksumKey === null) return uuidFromId('apiKey', apiKey) !== null
    return hasKeyIdChecksum(this.#checksumKey, apiKey)
  }

  #lookUp(apiKey: string): Promise<Key | null> {
    const waiting = this.#waiting.get(apiKey)
    if (waiting) return waiting.promise
    if (this.#waiting.size >= waitingLimit) return Promise.reject(unavailable())
    const lookUp = Promise.withResolvers<Key | null>()
    this.#waiting.set(apiKey, lookUp)
    if (!this.#isLookingUp) void this.#lookUpWaiting()
    return lookUp.promise
  }

  /** Runs one look-up at a time. Keys requested meanwhile are part of the next one. */
  async #lookUpWaiting(): Promise<void> {
    this.#isLookingUp = true
    await new Promise(setImmediate)
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, keysPerLookup)
      for (const [apiKey] of batch) this.#waiting.delete(apiKey)
      try {
        const found = await this.#askCore(batch.map(([apiKey]) => apiKey))
        for (const [apiKey, { resolve, reject }] of batch) {
          const key = found.get(apiKey)
          if (isDomainError(key)) reject(key)
          else resolve(key?.key ?? null)
        }
      } catch (error) {
        const message = 'a look-up of API keys failed'
        const summary = 'more look-ups of API keys failed'
        this.#sampled.write('look-up', { level: 'warn', fields: { err: error }, message, summary })
        for (const [, { reject }] of batch) reject(unavailable())
      }
    }
    this.#isLookingUp = false
  }

  async #askCore(apiKeys: string[]): Promise<Map<string, FoundKey | DomainError>> {
    for (let attempt = 1; ; attempt++) {
      const askedAtMs = this.#elapsedMs()
      const before = this.#places
      const { revisions, keys, unavailable: unplaced } = await this.#core.access.lookup.query({ apiKeys })
      // The age of a response counts from its request. A late response is as outdated as a key that was cached for as long.
      if (this.#elapsedMs() - askedAtMs >= accessLeaseMs)
        throw new Error(`core did not answer within ${accessLeaseMs} ms`)
      // The response may be older than a change that was polled meanwhile.
      const areOutdated = this.#areOutdated(revisions, before)
      const placeOf = new Map(keys.map(({ apiKey, place }) => [apiKey, place]))
      // Any place may have a key that is not found.
      const isOutdated = (apiKey: string) => areOutdated[placeOf.get(apiKey) ?? -1] ?? areOutdated.includes(true)
      if (apiKeys.some(isOutdated) && attempt < lookupAttempts) continue
      const found = new Map(keys.map(access => [access.apiKey, this.#decrypt(access)] as const))
      // A place that has not answered may have the keys that no other one has.
      const missing = revisions.includes(null) ? apiKeys : unplaced
      for (const apiKey of missing) if (!found.has(apiKey)) found.set(apiKey, unavailable())
      const current = apiKeys.filter(apiKey => !isOutdated(apiKey))
      this.#store(current, found, askedAtMs)
      return found
    }
  }

  /**
   * Of each place, whether a poll has seen a later revision of it, or has dropped its keys, since a look-up. What others write into one
   * place makes the keys of no other one outdated.
   */
  #areOutdated(revisions: readonly (number | null)[], before: readonly SeenPlace[]): boolean[] {
    const now = this.#places
    const isChanged = before.length !== now.length || (now.length > 0 && revisions.length !== now.length)
    if (isChanged) return revisions.map(() => true)
    return revisions.map((revision, index) => {
      const place = now[index]
      if (revision === null || !place) return false
      return revision < place.revision || place.clearCount !== (before[index]?.clearCount ?? 0)
    })
  }

  #store(apiKeys: string[], found: Map<string, FoundKey | DomainError>, readAtMs: number): void {
    if (this.#keys.size + apiKeys.length > keyLimit) this.#keys.clear()
    if (this.#unknown.size + apiKeys.length > unknownLimit) this.#unknown.clear()
    for (const apiKey of apiKeys) {
      const key = found.get(apiKey)
      // What was cached may say otherwise.
      this.#keys.delete(apiKey)
      if (!key) this.#unknown.add(apiKey)
      else if (!isDomainError(key)) this.#keys.set(apiKey, { ...key, readAtMs })
    }
  }

  /** If a secret cannot be decrypted, requests of that key fail with S001. */
  #decrypt({ place, ...access }: KeyAccess & { place: number }): FoundKey | DomainError {
    try {
      return { key: toKey(this.#keyRing, access), place }
    } catch (error) {
      const fields = { err: error, apiKey: access.apiKey }
      const message = 'the secret of an API key cannot be decrypted'
      const summary = `${message}: more look-ups`
      this.#sampled.write(`secret ${access.apiKey}`, { level: 'error', fields, message, summary })
      return new DomainError('S001')
    }
  }

  async #poll(): Promise<void> {
    const startedAtMs = performance.now()
    const askedAtMs = this.#elapsedMs()
    try {
      const since = this.#places.map(({ revision, epoch }) => ({ revision, epoch }))
      const { places, checksumKey } = await this.#core.access.changes.query({ since })
      if (places.length !== this.#places.length) this.#keys.clear()
      // A place that does not answer continues where it was seen last, if the core has the same places.
      const seen = places.length === this.#places.length ? this.#places : []
      this.#places = places.map((changes, index) => {
        const place = seen[index] ?? neverSeen
        if (!changes) return place
        const { revision, epoch } = changes
        this.#drop(index, changes)
        return { revision, epoch, polledAtMs: askedAtMs, clearCount: place.clearCount + (changes.complete ? 0 : 1) }
      })
      this.#checksumKey = checksumKey
      this.#availability.restored()
    } catch (error) {
      this.#lastError = error
      if (!this.#closed) this.#availability.lost(error)
    }
    // Core answers at once if a key has changed.
    const pauseMs = Math.max(0, accessPollMs - (performance.now() - startedAtMs))
    if (!this.#closed) this.#timer = setTimeout(() => void this.#poll(), pauseMs)
  }

  /** Drops the keys of a place that have changed; without a complete list, all of them. */
  #drop(index: number, { complete, apiKeys }: { complete: boolean; apiKeys: readonly string[] }): void {
    const dropped = complete ? apiKeys : this.#keys.keys()
    for (const apiKey of dropped) if (this.#keys.get(apiKey)?.place === index) this.#keys.delete(apiKey)
    if (complete) for (const apiKey of apiKeys) this.#unknown.delete(apiKey)
    else this.#unknown.clear()
  }

  #reportUse(): void {
    const uses = Array.from(this.#used, ([apiKey, usedAtMs]) => ({ apiKey, usedAt: new Date(usedAtMs) }))
    this.#used.clear()
    for (let at = 0; at < uses.length; at += usesPerReport)
      this.#core.access.markUsed
        .mutate({ uses: uses.slice(at, at + usesPerReport) })
        .catch(error => this.#log.debug({ err: error }, 'core did not record when API keys were used'))
  }
}

type FoundKey = { key: Key; place: number }
type CachedKey = FoundKey & { readAtMs: number }

const neverSeen: SeenPlace = { revision: 0, epoch: null, polledAtMs: Number.NEGATIVE_INFINITY, clearCount: 0 }

function toKey(keyRing: KeyRing, access: KeyAccess): Key {
  const { apiKey, workspaceId, status, workspaceExists, ownerIsMember } = access
  return {
    apiKey,
    workspaceId,
    status,
    workspaceExists,
    ownerIsMember,
    expiresAtMs: access.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    scopes: new Set(access.scopes),
    ipAllowlist: access.ipAllowlist.map(parseBlock),
    secrets: access.secrets.map(({ version, ciphertext, validUntil }) => ({
      key: createSecretKey(decryptSecret(keyRing, { id: apiKey, workspaceId, version }, ciphertext), 'utf8'),
      validUntilMs: validUntil?.getTime() ?? Number.POSITIVE_INFINITY,
    })),
  }
}

function unavailable(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
