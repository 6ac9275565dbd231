import { setMaxListeners } from 'node:events'
import { TRPCClientError } from '@trpc/client'
import type { ProcedureType } from '@trpc/server'
import { Pool } from 'undici'
import {
  type BatchAnswer,
  type BatchCall,
  batchByteLimit,
  batchCallLimit,
  batchPath,
  batchType,
  FairQueue,
  packBatch,
  unpackBatch,
  type Waiting,
} from '../contract/index.ts'

/**
 * No answer came. `sent` tells whether the call may have been carried out all the same, `departedAtMs` when it left at
 * the latest, on the clock of `performance.now()`: calls may wait here first.
 */
export class CoreUnreachable extends Error {
  override readonly name = 'CoreUnreachable'
  readonly sent: boolean
  readonly departedAtMs: number

  constructor(sent: boolean, cause?: unknown, departedAtMs = performance.now()) {
    super(sent ? 'core was asked and did not answer' : 'core is out of reach', { cause })
    this.sent = sent
    this.departedAtMs = departedAtMs
  }
}

type WaitingCall = Waiting & {
  call: BatchCall
  resolve: (data: unknown) => void
  reject: (error: Error) => void
}

/** How calls of one kind travel. */
type Route = {
  /** Flights that may be in the air at once; what comes meanwhile gathers for the next. */
  flights: number
  callsPerFlight: number
  /** How long a call waits for its flight: under overload its caller hears soon that it was not done. */
  waitMs: number
  timeoutMs: number
}

const connectTimeoutMs = 1_000
/** Calls that wait for a flight; beyond it the caller is told at once. */
const waitingLimit = 10_000
/** A core that could not be reached is asked last for a while. */
const shunMs = 1_000
/** A core that owes answers and gives none for so many ticks is asked whether it is there at all. */
const tickMs = 250
const quietTicks = 4
const probeTimeoutMs = 1_000

/**
 * Creates, point reads, what gateways ask about keys, and everything else travel apart: a slow list holds up neither
 * money nor the news of a key, and a thousand concurrent reads are a few requests.
 */
const routes = {
  creates: { flights: 3, callsPerFlight: batchCallLimit, waitMs: 3_000, timeoutMs: 8_000 },
  reads: { flights: 2, callsPerFlight: batchCallLimit, waitMs: 3_000, timeoutMs: 3_000 },
  access: { flights: 2, callsPerFlight: 1, waitMs: 15_000, timeoutMs: 2_000 },
  others: { flights: 64, callsPerFlight: 1, waitMs: 15_000, timeoutMs: 15_000 },
} as const satisfies Record<string, Route>

const routeOfPath: Record<string, keyof typeof routes> = {
  'access.beginNonces': 'access',
  'access.changes': 'access',
  'access.lookup': 'access',
  'transfers.create': 'creates',
  'transfers.get': 'reads',
  'wallets.get': 'reads',
  'wallets.balance': 'reads',
}

/** Calls on their way, and cores that owe answers and do not answer. */
export type CoreLoad = { waiting: number; inTheAir: number; silentCores: number }

/** The way to a set of cores. */
export class CoreLink {
  readonly #cores: Core[]
  readonly #lines: Record<keyof typeof routes, Line>
  readonly #timer: NodeJS.Timeout

  constructor(urls: string[], token: string) {
    this.#cores = urls.map(url => new Core(url, token, core => this.#leave(core)))
    this.#lines = {
      creates: new Line(this.#cores, routes.creates),
      reads: new Line(this.#cores, routes.reads),
      access: new Line(this.#cores, routes.access),
      others: new Line(this.#cores, routes.others),
    }
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  /** @throws TRPCClientError */
  call(path: string, type: ProcedureType, input: unknown): Promise<unknown> {
    return this.#lines[routeOfPath[path] ?? 'others'].add({ path, type, input })
  }

  get load(): CoreLoad {
    const lines = Object.values(this.#lines)
    return {
      waiting: lines.reduce((sum, line) => sum + line.waiting, 0),
      inTheAir: lines.reduce((sum, line) => sum + line.inTheAir, 0),
      silentCores: this.#cores.filter(({ isSilent }) => isSilent).length,
    }
  }

  #tick(): void {
    for (const core of this.#cores) core.listen()
    for (const line of Object.values(this.#lines)) line.sweep()
  }

  /** The circuit of a silent core is open: its calls go to another one or, where none is left, nothing waits for it. */
  #leave(core: Core): void {
    if (this.#cores.some(({ isSilent }) => !isSilent)) core.abandon()
    else for (const line of Object.values(this.#lines)) line.shed()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#cores.map(core => core.close()))
  }
}

/** A queue of calls of one kind, and the flights that carry them. */
class Line {
  readonly #cores: Core[]
  readonly #route: Route
  readonly #queue = new FairQueue<WaitingCall>(waitingLimit)
  inTheAir = 0
  #scheduled = false

  constructor(cores: Core[], route: Route) {
    this.#cores = cores
    this.#route = route
  }

  get waiting(): number {
    return this.#queue.size
  }

  add(call: BatchCall): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const deadlineMs = performance.now() + this.#route.waitMs
    const tooLate = () => reject(TRPCClientError.from(new CoreUnreachable(false)))
    const isOpen = this.#cores.some(({ isSilent }) => !isSilent)
    if (!isOpen || !this.#queue.add(workspaceOf(call), { call, deadlineMs, resolve, reject, tooLate })) {
      tooLate()
      return promise
    }
    if (!this.#scheduled) {
      this.#scheduled = true
      // What is called in the same turn of the event loop leaves together.
      setImmediate(() => {
        this.#scheduled = false
        this.#takeOff()
      })
    }
    return promise
  }

  /** Those who have waited long enough are told that nothing of theirs was sent. */
  sweep(): void {
    this.#queue.sweep()
  }

  /** So is everybody else. */
  shed(): void {
    for (const { tooLate } of this.#queue.take(this.#queue.size)) tooLate()
  }

  #takeOff(): void {
    while (this.#queue.size > 0 && this.inTheAir < this.#route.flights) {
      const load = this.#queue.take(this.#route.callsPerFlight)
      if (load.length === 0) return
      for (const { calls, body } of boarded(load)) {
        this.inTheAir++
        void this.#fly(calls, body).finally(() => {
          this.inTheAir--
          this.#takeOff()
        })
      }
    }
  }

  /** Tries one core after the other: queries always, mutations for as long as they surely were not begun. */
  async #fly(load: WaitingCall[], body: Buffer): Promise<void> {
    const isRepeatable = load.every(({ call }) => call.type === 'query')
    let failure: CoreUnreachable | undefined
    for (const core of this.#inOrder()) {
      try {
        const answers = await core.ask(body, this.#route.timeoutMs)
        for (const [at, entry] of load.entries()) settle(entry, answers[at])
        return
      } catch (error) {
        failure = error instanceof CoreUnreachable ? error : new CoreUnreachable(true, error)
        if (failure.sent && !isRepeatable) break
      }
    }
    for (const { reject } of load) reject(TRPCClientError.from(failure ?? new CoreUnreachable(false)))
  }

  /** Cores in turn, those that failed a moment ago last, without silent ones. */
  #inOrder(): Core[] {
    if (this.#cores.length > 1) this.#cores.push(this.#cores.shift()!)
    const now = performance.now()
    const answering = this.#cores.filter(({ isSilent }) => !isSilent)
    return answering.toSorted((a, b) => Number(a.shunnedUntil > now) - Number(b.shunnedUntil > now))
  }
}

/** One flight, or several where core would refuse it as too heavy, and the light calls in it with the heavy. */
function boarded(calls: WaitingCall[]): { calls: WaitingCall[]; body: Buffer }[] {
  const body = packBatch(calls.map(({ call }) => call))
  if (body.length <= batchByteLimit || calls.length === 1) return [{ calls, body }]
  const middle = calls.length >> 1
  return [...boarded(calls.slice(0, middle)), ...boarded(calls.slice(middle))]
}

/** Calls of one workspace share a turn; those of none, another. */
function workspaceOf({ input }: BatchCall): string {
  return String((input as { workspaceId?: unknown } | undefined)?.workspaceId ?? '')
}

function settle({ resolve, reject }: WaitingCall, answer: BatchAnswer | undefined): void {
  if (!answer) reject(TRPCClientError.from(new CoreUnreachable(true)))
  else if ('error' in answer) reject(TRPCClientError.from({ error: answer.error as never }))
  else resolve(answer.data)
}

/** One core, over kept-alive connections. */
class Core {
  shunnedUntil = 0
  /** It owes answers, and did not even say that it is there. Asked for again and again, until it does. */
  isSilent = false
  readonly #pool: Pool
  readonly #headers: Record<string, string>
  readonly #onSilent: (core: Core) => void
  #owed = 0
  /** Ticks since it was heard, counted and not measured: when it is us who stood still, it is not to blame. */
  #quiet = 0
  #isProbed = false
  #abandoned = new AbortController()

  constructor(url: string, token: string, onSilent: (core: Core) => void) {
    this.#pool = new Pool(new URL(url).origin, { connections: 96, connect: { timeout: connectTimeoutMs } })
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': batchType }
    this.#onSilent = onSilent
    setMaxListeners(0, this.#abandoned.signal)
  }

  /** @throws CoreUnreachable when no answers came */
  async ask(body: Buffer, timeoutMs: number): Promise<BatchAnswer[]> {
    const departedAtMs = performance.now()
    let response: Awaited<ReturnType<Pool['request']>>
    this.#owed++
    try {
      response = await this.#pool.request({
        method: 'POST',
        path: batchPath,
        headers: this.#headers,
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: this.#abandoned.signal,
      })
      this.#quiet = 0
    } catch (error) {
      const sent = !wasNeverSent(error)
      if (!sent) this.shunnedUntil = performance.now() + shunMs
      throw new CoreUnreachable(sent, error, departedAtMs)
    } finally {
      this.#owed--
    }
    if (response.statusCode === 200) return unpackBatch(await response.body.bytes()) as BatchAnswer[]
    const text = await response.body.text()
    // A flight that is refused as a whole was not begun; a 500 may have come at any time.
    throw new CoreUnreachable(
      response.statusCode >= 500 && response.statusCode !== 503,
      new Error(`core answered ${response.statusCode}: ${text.slice(0, 200)}`),
    )
  }

  /** Waits for nothing that was asked so far. */
  abandon(): void {
    this.#abandoned.abort(new Error('core is silent'))
    this.#abandoned = new AbortController()
    setMaxListeners(0, this.#abandoned.signal)
  }

  /** Called at every tick. */
  listen(): void {
    this.#quiet = this.#owed > 0 ? this.#quiet + 1 : 0
    if ((this.isSilent || this.#quiet >= quietTicks) && !this.#isProbed) void this.#probe()
  }

  async #probe(): Promise<void> {
    this.#isProbed = true
    const wasSilent = this.isSilent
    this.isSilent = await this.#isDeaf()
    this.#isProbed = false
    this.#quiet = 0
    if (this.isSilent && !wasSilent) this.#onSilent(this)
  }

  /** One that refuses connections, or resets them, is not: it will not keep anybody waiting. */
  async #isDeaf(): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(probeTimeoutMs)
      const { body } = await this.#pool.request({ method: 'GET', path: '/healthz', signal })
      await body.dump()
      return false
    } catch (error) {
      const { name, code } = error as { name?: string; code?: string }
      return name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT'
    }
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}

/**
 * Whether a request failed before a byte of it left. What a connection that stood can fail with too (a host that is out
 * of reach, a time-out) counts only when it came of connecting.
 */
export function wasNeverSent(error: unknown): boolean {
  const { code, syscall, errors } = error as { code?: string; syscall?: string; errors?: unknown[] }
  // A name that has several addresses.
  if (errors) return errors.every(wasNeverSent)
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
