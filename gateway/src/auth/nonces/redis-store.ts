import { hash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDomainError } from '@workspace-wallet/contract'
import { Availability, errorSummary, type Log } from '@workspace-wallet/runtime'
import { createClient } from 'redis'
import type { Limits, Rate, Tally } from '../limits/rate.ts'
import { Deadline } from './deadline.ts'
import { type Generations, nonceMac } from './generations.ts'
import { batchScript, joinScript } from './redis-scripts.ts'
import { type Claim, checkFence, fenceOf, type NonceStore, nonceLifeMs } from './store.ts'

/** Redis answers in well under a millisecond. One that takes this long hangs or is gone. */
const deadlineMs = 700
const queriesPerCall = 200
/** How often a batch is tried if the generation ends while it is in flight. */
const batchAttempts = 3
/** How often joining is tried if another generation begins meanwhile. */
const joinAttempts = 3
/** How often the settings of Redis are checked. */
const inspectMs = 1_000
/** How many of these checks a connection may leave without any answer, before another one is opened. */
const silentChecksLimit = 5
/** How long the start waits for Redis. After that, the gateway listens, but is not ready. */
const startMs = 1_000
const clockWarningMs = 10_000
/** The key that each claim makes and renames. It exists within a script, or after a claim of a used nonce. */
const claimKey = 'nonces:claim'

/** See redis-scripts.ts for the operations and their results. */
type PendingQuery = {
  operation: 'C' | 'K' | 'L' | 'F' | 'P'
  keys: string[]
  /** Of the request; undefined for operations that are not about a nonce. */
  timestamp: number | undefined
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}
type Result = number | number[]
/**
 * `key`, `value`: the key of the generation and what it contains, its server and when it began. It does not expire, so it is
 * missing only if Redis lost data. `evicted`: how many keys the server had evicted when it was joined.
 */
type JoinedGeneration = { key: string; value: string; evicted: string; scriptHash: string; fence: number }

/**
 * A nonce store in Redis, shared by all gateways. All queries of one turn of the event loop are one command. A result is
 * valid only for the generation that the gateway has joined: see redis-scripts.ts and docs/decisions/0007.
 */
export async function openRedisNonces(
  url: string,
  generations: Generations,
  limits: Limits,
  log: Log,
): Promise<NonceStore> {
  const deadline = new Deadline(deadlineMs, 'Redis did not answer in time')
  const rates = [limits.key, limits.failures].flatMap(rateArguments)
  let queries: PendingQuery[] = []
  let generation: JoinedGeneration | undefined
  let joining: Promise<JoinedGeneration> | undefined
  let isClosed = false
  let clockWarnedAtMs = Number.NEGATIVE_INFINITY
  /** How many checks have begun since Redis has answered or the connection has failed. */
  let silentChecks = 0
  const availability = new Availability('Redis', log)
  let client = newClient()
  const connected = connect()
  const failed = new Promise(resolve => client.once('error', resolve))
  const timer = setInterval(check, inspectMs).unref()

  function newClient() {
    const created = createClient({
      url,
      // Without a connection, a command fails at once instead of waiting for one.
      disableOfflineQueue: true,
      socket: { connectTimeout: 1_000, reconnectStrategy: attempts => Math.min(50 * 2 ** attempts, 1_000) },
      pingInterval: 5_000,
      // Disables CLIENT SETINFO, which the gateway's Redis user may not run (see deploy/containers/secrets.ts).
      disableClientInfo: true,
      // Disables the client's own deadline, which costs a timer and a signal for each command. See `deadline`.
      commandOptions: { timeout: 0 },
    })
    created.on('error', error => {
      silentChecks = 0
      if (!isClosed) availability.lost(error)
    })
    // The client may reconnect to another server.
    created.on('reconnecting', () => {
      silentChecks = 0
      generation = undefined
    })
    return created
  }

  /** While Redis is down, this retries by itself and does not settle. */
  function connect(): Promise<unknown> {
    return client.connect().then(fault, error => {
      if (!isClosed) availability.lost(error)
    })
  }

  /**
   * Checks Redis. A connection that stays open without an answer may lead to a server or a proxy that is gone for good, so another
   * one is opened. The client itself would keep it for ever.
   */
  function check(): void {
    if (++silentChecks > silentChecksLimit) {
      silentChecks = 0
      generation = undefined
      client.destroy()
      client = newClient()
      void connect()
    }
    void fault()
  }

  function query(operation: PendingQuery['operation'], keys: string[], timestamp?: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (queries.push({ operation, keys, timestamp, resolve, reject }) === 1) setImmediate(flush)
    })
  }

  function flush(): void {
    for (let at = 0; at < queries.length; at += queriesPerCall) void settle(queries.slice(at, at + queriesPerCall))
    queries = []
  }

  async function settle(batch: PendingQuery[]): Promise<void> {
    try {
      const { fence, nowSeconds, results } = await deadline.inTime(runBatch(batch))
      for (const [at, { timestamp, resolve, reject }] of batch.entries())
        try {
          if (timestamp !== undefined) checkFence(timestamp, fence, nowSeconds)
          resolve(results[at]!)
        } catch (error) {
          if (!isDomainError(error)) warnOfClocks(error)
          reject(error)
        }
    } catch (error) {
      availability.lost(error)
      for (const { reject } of batch) reject(error)
    }
  }

  /** Logs at most every `clockWarningMs`. Not an outage: only some requests are affected. */
  function warnOfClocks(error: unknown): void {
    if (performance.now() - clockWarnedAtMs < clockWarningMs) return
    clockWarnedAtMs = performance.now()
    log.warn({ err: error }, 'a request was rejected because the clocks differ')
  }

  async function runBatch(batch: PendingQuery[]) {
    for (let attempt = 0; attempt < batchAttempts; attempt++) {
      const current = generation ?? (await joinOnce())
      const reply = await runScript(current, batch)
      if (reply) return { fence: current.fence, nowSeconds: reply[0] as number, results: reply.slice(1) }
      if (generation === current) generation = undefined
    }
    throw new Error('the generation of the nonce store changed during every attempt')
  }

  /** Null if the server has another generation. */
  async function runScript(joined: JoinedGeneration, batch: PendingQuery[]): Promise<Result[] | null> {
    const keys = [joined.key, claimKey, ...batch.flatMap(({ keys }) => keys)]
    const operations = batch.map(({ operation }) => operation).join('')
    const command = ['EVALSHA', joined.scriptHash, String(keys.length), ...keys]
    const parameters = [joined.value, String(nonceLifeMs), operations, ...rates]
    try {
      return await client.sendCommand<Result[] | null>([...command, ...parameters])
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return null
      throw error
    }
  }

  function joinOnce(): Promise<JoinedGeneration> {
    joining ??= join().finally(() => (joining = undefined))
    return joining
  }

  async function join(): Promise<JoinedGeneration> {
    const secret = await generations.readKey()
    // Without the secret, nobody can name this key, and so nobody can restore it after a loss.
    const key = `nonces:generation:${nonceMac(secret, 'generation')}`
    const info = await client.sendCommand<string>(['INFO'])
    rejectEviction(info)
    const runId = field(info, 'run_id')
    const script = batchScript(nonceMac(secret, `server ${runId}`))
    await client.sendCommand(['SCRIPT', 'LOAD', script])
    const isDurable = field(info, 'aof_enabled') === '1' && (await readSetting('appendfsync')) === 'always'
    let followed = ''
    for (let attempt = 0; attempt < joinAttempts; attempt++) {
      const newId = randomUUID()
      const command = ['EVAL', joinScript, '1', key, runId, isDurable ? '1' : '0', newId, followed]
      const value = await client.sendCommand<string>(command)
      const [server, , id, beganAt] = value.split(' ')
      const { isFirst, isLatest } = await generations.begin(id!)
      if (!isLatest) {
        // Requests were accepted in another store meanwhile, whose nonces this server does not have.
        followed = id!
        continue
      }
      if (id === newId && !isFirst)
        log.error(
          'Redis has lost its nonces: requests that may have been accepted before are rejected with S002 for about a minute',
        )
      generation = {
        key,
        value,
        evicted: server!.split(':')[2]!,
        scriptHash: hash('sha1', script),
        fence: fenceOf(Number(beganAt), isFirst),
      }
      return generation
    }
    throw new Error('gateways of the same core use several nonce stores at once: give them the same REDIS_URL')
  }

  /**
   * Checks that the server still keeps every nonce: its settings may have changed since it was joined.
   *
   * @throws Error if it may evict keys
   */
  async function inspect(): Promise<void> {
    const info = await client.sendCommand<string>(['INFO'])
    silentChecks = 0
    try {
      rejectEviction(info)
    } catch (error) {
      // No request is accepted until the server can be joined again.
      generation = undefined
      throw error
    }
    if (generation && generation.evicted !== field(info, 'evicted_keys')) generation = undefined
  }

  /** Checks that Redis keeps every nonce and can write. */
  async function fault(): Promise<string | null> {
    try {
      await Promise.all([deadline.inTime(inspect()), query('P', [])])
      availability.restored()
      return null
    } catch (error) {
      if (!isClosed) availability.lost(error)
      return errorSummary(error)
    }
  }

  /** Null if the server does not allow CONFIG, like many managed ones. */
  async function readSetting(name: string): Promise<string | null> {
    try {
      return (await client.configGet(name))[name] ?? null
    } catch {
      return null
    }
  }

  await Promise.race([connected, failed, sleep(startMs, undefined, { ref: false })])

  return {
    async claim(apiKey, nonce, timestamp) {
      if (!limits.key) return (await query('C', [keyOf(apiKey, nonce)], timestamp)) === 1 ? newClaim : usedClaim
      const result = await query('K', [keyOf(apiKey, nonce), `limit:key:{${apiKey}}`], timestamp)
      const [isNew, ...tally] = result as number[]
      return isNew === 1 ? { isNew: true, tally: toTally(tally) } : usedClaim
    },
    async isUsed(apiKey, nonce, timestamp) {
      return (await query('L', [keyOf(apiKey, nonce)], timestamp)) === 0
    },
    async countFailure(address) {
      return toTally((await query('F', [`limit:address:${address}`])) as number[])
    },
    fault,
    async close() {
      isClosed = true
      clearInterval(timer)
      client.destroy()
    },
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

/** The braces keep what belongs to an API key in one hash slot of Redis Cluster. */
function keyOf(apiKey: string, nonce: string): string {
  return `nonce:{${apiKey}}:${nonce}`
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
