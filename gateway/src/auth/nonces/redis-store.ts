import { hash, randomUUID } from 'node:crypto'
import { isDomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { createClient } from 'redis'
import { Availability, errorSummary } from '../../observability/availability.ts'
import type { Fault } from '../../observability/readiness.ts'
import type { Limits, Rate, Tally } from '../limits/rate.ts'
import { Deadline } from './deadline.ts'
import { checkScript, joinScript } from './redis-scripts.ts'
import { type Claim, checkFence, fenceOf, type IsFirstGeneration, type NonceStore, nonceLifeMs } from './store.ts'

/** Redis answers in well under a millisecond; one that takes this long is frozen or gone. */
const deadlineMs = 700
const asksPerCall = 200
/** How often a command is retried when the generation ends while it is on its way. */
const askAttempts = 3
/** How often Redis is asked whether it still keeps everything. */
const inspectMs = 1_000
const clockWarningMs = 10_000
/** Identifies the generation: its server and when it began. The key does not expire: it is missing only when it was lost. */
const generationKey = 'nonces:generation'

/** See scripts.ts for the letters and their answers. */
type Ask = {
  letter: 'C' | 'K' | 'L' | 'F' | 'P'
  keys: string[]
  /** Of the request; a failure has none. */
  timestamp: number | undefined
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}
type Answer = number | number[]
/** `value`: what the key holds. `evicted`: how many keys its server had evicted when it began. */
type Generation = { value: string; evicted: string; checkHash: string; fence: number }

/**
 * Nonces in Redis, shared by all gateways. What is asked in one turn of the event loop is one round trip, and one
 * command. Every answer is valid for the generation that the gateway has joined: see scripts.ts.
 */
export function openRedisNonces(url: string, isFirst: IsFirstGeneration, limits: Limits, log: Log): NonceStore {
  const client = createClient({
    url,
    // Without a connection a command fails at once, instead of waiting for one.
    disableOfflineQueue: true,
    socket: { connectTimeout: 1_000, reconnectStrategy: attempts => Math.min(50 * 2 ** attempts, 1_000) },
    pingInterval: 5_000,
    // CLIENT SETINFO: the gateway's user may send only what it needs (see deploy/containers/secrets.ts).
    disableClientInfo: true,
    // Its own deadline is a timer and a signal for each command; ours is below.
    commandOptions: { timeout: 0 },
  })
  const deadline = new Deadline(deadlineMs, 'Redis did not answer in time')
  const rates = [limits.key, limits.failures].flatMap(rateArguments)
  let asks: Ask[] = []
  let generation: Generation | undefined
  let joining: Promise<Generation> | undefined
  let isClosed = false
  let clockWarnedAtMs = Number.NEGATIVE_INFINITY
  const availability = new Availability('Redis', log)
  client.on('error', error => availability.lost(error))
  // The server that comes back may be another one.
  client.on('reconnecting', () => (generation = undefined))
  // Never settles while Redis is down: the client goes on trying by itself.
  client.connect().then(fault, error => availability.lost(error))
  const timer = setInterval(fault, inspectMs).unref()

  function ask(letter: Ask['letter'], keys: string[], timestamp?: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (asks.push({ letter, keys, timestamp, resolve, reject }) === 1) setImmediate(flush)
    })
  }

  function flush(): void {
    for (let at = 0; at < asks.length; at += asksPerCall) void settle(asks.slice(at, at + asksPerCall))
    asks = []
  }

  async function settle(batch: Ask[]): Promise<void> {
    try {
      const { fence, nowSeconds, answers } = await deadline.inTime(check(batch))
      for (const [at, { timestamp, resolve, reject }] of batch.entries())
        try {
          if (timestamp !== undefined) checkFence(timestamp, fence, nowSeconds)
          resolve(answers[at]!)
        } catch (error) {
          if (!isDomainError(error)) warnOfClocks(error)
          reject(error)
        }
    } catch (error) {
      availability.lost(error)
      for (const { reject } of batch) reject(error)
    }
  }

  /** At most once in a while: the clocks are apart for some requests and not for others. */
  function warnOfClocks(error: unknown): void {
    if (performance.now() - clockWarnedAtMs < clockWarningMs) return
    clockWarnedAtMs = performance.now()
    log.warn({ err: error }, 'a request was refused because of the clocks')
  }

  async function check(batch: Ask[]) {
    for (let attempt = 0; attempt < askAttempts; attempt++) {
      const current = generation ?? (await joined())
      const reply = await callCheck(current, batch)
      if (reply) return { fence: current.fence, nowSeconds: reply[0] as number, answers: reply.slice(1) }
      if (generation === current) generation = undefined
    }
    throw new Error('the generation of the nonce store changed during every attempt')
  }

  /** Null when the server holds another generation. */
  async function callCheck({ value, checkHash }: Generation, batch: Ask[]): Promise<Answer[] | null> {
    const keys = batch.flatMap(({ keys }) => keys)
    const letters = batch.map(({ letter }) => letter).join('')
    const command = ['EVALSHA', checkHash, String(keys.length + 1), generationKey, ...keys]
    try {
      return await client.sendCommand<Answer[] | null>([...command, value, String(nonceLifeMs), letters, ...rates])
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return null
      throw error
    }
  }

  function joined(): Promise<Generation> {
    joining ??= join().finally(() => (joining = undefined))
    return joining
  }

  async function join(): Promise<Generation> {
    const info = await client.sendCommand<string>(['INFO'])
    refuseEviction(info)
    const runId = field(info, 'run_id')
    const script = checkScript(runId)
    await client.sendCommand(['SCRIPT', 'LOAD', script])
    const isDurable = field(info, 'aof_enabled') === '1' && (await readSetting('appendfsync')) === 'always'
    const newId = randomUUID()
    const command = ['EVAL', joinScript, '1', generationKey, runId, isDurable ? '1' : '0', newId]
    const value = await client.sendCommand<string>(command)
    const [server, , id, beganAt] = value.split(' ')
    const isTheFirst = await isFirst(id!)
    if (id === newId && !isTheFirst)
      log.error('Redis has lost its nonces: what may have been accepted before is refused for about a minute (S002)')
    generation = {
      value,
      evicted: server!.split(':')[2]!,
      checkHash: hash('sha1', script),
      fence: fenceOf(Number(beganAt), isTheFirst),
    }
    return generation
  }

  /**
   * Whether the server that was joined still keeps every nonce: its settings may have been changed since.
   *
   * @throws Error when it may evict
   */
  async function inspect(): Promise<void> {
    const info = await client.sendCommand<string>(['INFO'])
    try {
      refuseEviction(info)
    } catch (error) {
      // Nothing is accepted until the server can be joined again.
      generation = undefined
      throw error
    }
    if (generation && generation.evicted !== field(info, 'evicted_keys')) generation = undefined
  }

  /** Looks whether Redis keeps every nonce, and whether it can write one. */
  async function fault(): Promise<Fault> {
    try {
      await Promise.all([deadline.inTime(inspect()), ask('P', [generationKey])])
      availability.back()
      return null
    } catch (error) {
      if (!isClosed) availability.lost(error)
      return errorSummary(error)
    }
  }

  /** Null where the server does not tell: a managed one, for example. */
  async function readSetting(name: string): Promise<string | null> {
    try {
      return (await client.configGet(name))[name] ?? null
    } catch {
      return null
    }
  }

  return {
    async claim(apiKey, nonce, timestamp) {
      if (!limits.key) return (await ask('C', [keyOf(apiKey, nonce)], timestamp)) === 1 ? newClaim : usedClaim
      const answer = await ask('K', [keyOf(apiKey, nonce), `limit:key:${apiKey}`], timestamp)
      const [isNew, ...tally] = answer as number[]
      return isNew === 1 ? { isNew: true, tally: toTally(tally) } : usedClaim
    },
    async isUsed(apiKey, nonce, timestamp) {
      return (await ask('L', [keyOf(apiKey, nonce)], timestamp)) === 0
    },
    async countFailure(address) {
      return toTally((await ask('F', [`limit:address:${address}`])) as number[])
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

function keyOf(apiKey: string, nonce: string): string {
  return `nonce:${apiKey}:${nonce}`
}

/** An evicted nonce could be used again, and nobody would notice. */
function refuseEviction(info: string): void {
  const policy = field(info, 'maxmemory_policy')
  if (field(info, 'maxmemory') !== '0' && policy !== 'noeviction')
    throw new Error(`Redis may evict nonces: its maxmemory-policy is ${policy}, set it to noeviction`)
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
}
