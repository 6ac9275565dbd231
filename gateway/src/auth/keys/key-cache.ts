import { createSecretKey, type KeyObject } from 'node:crypto'
import { accessPollMs, DomainError, isDomainError, type KeyAccess } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { Log } from '@workspace-wallet/runtime'
import { decryptSecret, hasKeyIdChecksum, type KeyRing } from '@workspace-wallet/runtime'
import { type AddressBlock, parseBlock } from '../../network/addresses.ts'
import { Availability, errorSummary } from '../../observability/availability.ts'
import type { Fault } from '../../observability/readiness.ts'
import { SampledLog } from '../../observability/sampled-log.ts'

/** What the pipeline needs of a key. Secrets are held as key objects only. */
export type Key = Pick<KeyAccess, 'apiKey' | 'workspaceId' | 'status' | 'workspaceExists' | 'ownerIsMember'> & {
  expiresAtMs: number
  scopes: ReadonlySet<string>
  ipAllowlist: readonly AddressBlock[]
  secrets: readonly { key: KeyObject; validUntilMs: number }[]
}

/** How long an answer of core holds. Past it no cached key is believed: a gateway that is cut off fails closed. */
const leaseMs = 3_000
/** The first attempt's answer may be older than a change that was polled meanwhile; then it is asked for again. */
const lookupAttempts = 3
const lookupsPerCall = 500
const waitingLimit = 5_000
const keyLimit = 100_000
const unknownLimit = 100_000
const reportUseMs = 5_000

type Waiting = { apiKey: string; resolve: (key: Key | null) => void; reject: (error: unknown) => void }

/**
 * The keys as core knows them, kept in memory. Core counts every change of a key, a membership or a workspace in one
 * revision; a poll learns which keys a change touched and drops them. See docs/decisions.
 */
export class KeyCache {
  readonly #core: CoreClient
  readonly #keyRing: KeyRing
  readonly #log: Log
  readonly #sampled: SampledLog
  readonly #availability: Availability
  readonly #elapsedMs: () => number
  readonly #keys = new Map<string, Key>()
  /** Ids are minted by core, so one that is unknown stays unknown: nobody can guess the next one. */
  readonly #unknown = new Set<string>()
  /** When each key was last used, since the last report. */
  readonly #used = new Map<string, number>()
  readonly #waiting = new Map<string, Waiting[]>()
  #lookingUp = false
  /** Null until core was heard. */
  #checksumKey: string | null = null
  #revision = 0
  /** The epoch of that revision; null before the first. */
  #epoch: string | null = null
  /** Counts how often everything was forgotten. */
  #generation = 0
  #heardAtMs = Number.NEGATIVE_INFINITY
  /** Why the last poll failed. */
  #lastError: unknown
  #timer: NodeJS.Timeout | undefined
  #reportTimer: NodeJS.Timeout | undefined
  #closed = false

  /** @param elapsedMs a clock that never runs back, by which leases end */
  constructor(core: CoreClient, keyRing: KeyRing, log: Log, elapsedMs: () => number = () => performance.now()) {
    this.#core = core
    this.#keyRing = keyRing
    this.#log = log
    this.#sampled = new SampledLog(log)
    this.#availability = new Availability('core', log)
    this.#elapsedMs = elapsedMs
  }

  /** Starts to follow changes. */
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

  /** Whether core was heard within the lease. */
  get isCurrent(): boolean {
    return this.#elapsedMs() - this.#heardAtMs < leaseMs
  }

  /** Why no cached key may be believed now; null when they may. */
  get fault(): Fault {
    if (this.isCurrent) return null
    const sinceMs = this.#elapsedMs() - this.#heardAtMs
    const since = Number.isFinite(sinceMs) ? `for ${Math.floor(sinceMs / 1000)} s` : 'yet'
    return `no core has answered ${since}${this.#lastError === undefined ? '' : `: ${errorSummary(this.#lastError)}`}`
  }

  get counts() {
    return { known: this.#keys.size, unknown: this.#unknown.size, waiting: this.#waiting.size }
  }

  /** Whether `find` would answer at once, with a key. */
  isCached(apiKey: string): boolean {
    return this.isCurrent && this.#keys.has(apiKey)
  }

  /**
   * A key by its id; null when there is none. At once when it is cached, so that the hot path stays synchronous.
   *
   * @throws DomainError S002 when core cannot be asked
   */
  find(apiKey: string): Key | null | Promise<Key | null> {
    if (this.isCurrent) {
      const key = this.#keys.get(apiKey)
      if (key) return key
      if (this.#unknown.has(apiKey)) return null
    }
    return this.#isGuess(apiKey) ? null : this.#lookUp(apiKey)
  }

  /** Notes that a request was accepted under a key; reported to core every few seconds. */
  markUsed(apiKey: string, nowMs: number): void {
    this.#used.set(apiKey, nowMs)
  }

  /** Whether this ID was certainly never issued, so that core need not be asked. A new key never waits behind guesses. */
  #isGuess(apiKey: string): boolean {
    return this.#checksumKey !== null && !hasKeyIdChecksum(this.#checksumKey, apiKey)
  }

  #lookUp(apiKey: string): Promise<Key | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Key | null>()
    const others = this.#waiting.get(apiKey)
    if (!others && this.#waiting.size >= waitingLimit) return Promise.reject(outOfReach())
    if (others) others.push({ apiKey, resolve, reject })
    else this.#waiting.set(apiKey, [{ apiKey, resolve, reject }])
    if (!this.#lookingUp) void this.#work()
    return promise
  }

  /** One look-up at a time; what is asked meanwhile goes with the next. */
  async #work(): Promise<void> {
    this.#lookingUp = true
    await new Promise(setImmediate)
    while (this.#waiting.size > 0) {
      const asked = [...this.#waiting.entries()].slice(0, lookupsPerCall)
      for (const [apiKey] of asked) this.#waiting.delete(apiKey)
      try {
        const found = await this.#ask(asked.map(([apiKey]) => apiKey))
        for (const [apiKey, waiting] of asked) settle(waiting, found.get(apiKey))
      } catch (error) {
        const message = 'keys cannot be looked up: core is out of reach'
        const summary = 'more look-ups of keys failed'
        this.#sampled.write('look-up', { level: 'warn', fields: { err: error }, message, summary })
        for (const [, waiting] of asked) for (const { reject } of waiting) reject(outOfReach())
      }
    }
    this.#lookingUp = false
  }

  async #ask(apiKeys: string[]): Promise<Map<string, Key | DomainError>> {
    for (let attempt = 1; ; attempt++) {
      const askedAtMs = this.#elapsedMs()
      const generation = this.#generation
      const { revision, keys } = await this.#core.access.lookup.query({ apiKeys })
      // An answer is as old as its question: one that took long says no more than a key that was kept as long.
      if (this.#elapsedMs() - askedAtMs >= leaseMs) throw new Error('core took too long to answer')
      // What was read before a change that we have heard of already may be what the change has ended.
      if (revision < this.#revision && attempt < lookupAttempts) continue
      const found = new Map(keys.map(access => [access.apiKey, this.#open(access)] as const))
      if (revision >= this.#revision && generation === this.#generation) this.#remember(apiKeys, found)
      return found
    }
  }

  #remember(asked: string[], found: Map<string, Key | DomainError>): void {
    if (this.#keys.size + found.size > keyLimit) this.#keys.clear()
    if (this.#unknown.size + asked.length > unknownLimit) this.#unknown.clear()
    for (const apiKey of asked) {
      const key = found.get(apiKey)
      if (!key) this.#unknown.add(apiKey)
      else if (!isDomainError(key)) this.#keys.set(apiKey, key)
    }
  }

  /** S001 when a secret does not decrypt: that key's requests fail, nobody else's. */
  #open(access: KeyAccess): Key | DomainError {
    try {
      return openKey(this.#keyRing, access)
    } catch (error) {
      const fields = { err: error, apiKey: access.apiKey }
      const message = "a key's secret cannot be decrypted"
      const summary = `${message}: more requests name it`
      this.#sampled.write(`secret ${access.apiKey}`, { level: 'error', fields, message, summary })
      return new DomainError('S001')
    }
  }

  async #poll(): Promise<void> {
    const askedAtMs = this.#elapsedMs()
    try {
      const since = { since: this.#revision, epoch: this.#epoch }
      const { revision, epoch, complete, apiKeys, checksumKey } = await this.#core.access.changes.query(since)
      if (!complete) this.#forget()
      for (const apiKey of apiKeys) {
        this.#keys.delete(apiKey)
        this.#unknown.delete(apiKey)
      }
      this.#revision = revision
      this.#epoch = epoch
      this.#checksumKey = checksumKey
      this.#heardAtMs = askedAtMs
      this.#availability.back()
    } catch (error) {
      this.#lastError = error
      if (!this.#closed) this.#availability.lost(error)
    }
    if (!this.#closed) this.#timer = setTimeout(() => void this.#poll(), accessPollMs)
  }

  #forget(): void {
    this.#generation++
    this.#keys.clear()
    this.#unknown.clear()
  }

  #reportUse(): void {
    const uses = Array.from(this.#used, ([apiKey, usedAtMs]) => ({ apiKey, usedAt: new Date(usedAtMs) }))
    this.#used.clear()
    for (let at = 0; at < uses.length; at += lookupsPerCall)
      this.#core.access.markUsed
        .mutate({ uses: uses.slice(at, at + lookupsPerCall) })
        .catch(error => this.#log.debug({ err: error }, 'the use of keys was not noted'))
  }
}

function openKey(keyRing: KeyRing, access: KeyAccess): Key {
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
      key: createSecretKey(decryptSecret(keyRing, { apiKey, workspaceId, version }, ciphertext), 'utf8'),
      validUntilMs: validUntil?.getTime() ?? Number.POSITIVE_INFINITY,
    })),
  }
}

function settle(waiting: Waiting[], key: Key | DomainError | undefined): void {
  for (const { resolve, reject } of waiting)
    if (isDomainError(key)) reject(key)
    else resolve(key ?? null)
}

function outOfReach(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
