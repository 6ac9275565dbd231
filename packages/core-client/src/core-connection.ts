import { setMaxListeners } from 'node:events'
import { batchPath, batchType, unpackBatch } from '@workspace-wallet/contract'
import { Pool } from 'undici'
import { CoreRejected, CoreUnreachable, wasNeverSent } from './errors.ts'

const connectTimeoutMs = 1_000
/** A core that could not be reached is tried last for a while. */
const coolDownMs = 1_000
/** After this many ticks with requests pending and no answer, the core's health is checked. */
const missedTicksLimit = 4
const healthTimeoutMs = 1_000

/** One core, over kept-alive connections, and its health. */
export class CoreConnection {
  /** It has pending requests and answered not even a health check. It is checked at every tick until it answers. */
  isUnhealthy = false
  readonly #origin: string
  readonly #pool: Pool
  readonly #headers: Record<string, string>
  readonly #onUnhealthy: (core: CoreConnection) => void
  #pending = 0
  /** Counted, not measured: when this process itself stood still, the core is not to blame. */
  #missedTicks = 0
  #isChecking = false
  #coolingDownUntil = 0
  #abandoned = newAbandonment()

  constructor(url: string, token: string, onUnhealthy: (core: CoreConnection) => void) {
    this.#origin = new URL(url).origin
    this.#pool = new Pool(this.#origin, { connections: 96, connect: { timeout: connectTimeoutMs } })
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': batchType }
    this.#onUnhealthy = onUnhealthy
  }

  get isCoolingDown(): boolean {
    return this.#coolingDownUntil > performance.now()
  }

  /**
   * Sends a batch, and returns its answers.
   *
   * @throws CoreUnreachable, CoreRejected when no answers came
   */
  async send(body: Buffer, timeoutMs: number): Promise<unknown[]> {
    const sentAtMs = performance.now()
    try {
      const response = await this.#request(body, timeoutMs)
      if (response.statusCode !== 200)
        throw new CoreRejected(this.#origin, response.statusCode, await response.body.text(), sentAtMs)
      const answers = unpackBatch(await response.body.bytes())
      if (!Array.isArray(answers)) throw new TypeError(`${this.#origin} answered with something else than a batch`)
      return answers
    } catch (error) {
      if (error instanceof CoreRejected) throw error
      const sent = !wasNeverSent(error)
      if (!sent) this.#coolingDownUntil = performance.now() + coolDownMs
      throw new CoreUnreachable(sent, error, sentAtMs)
    }
  }

  async #request(body: Buffer, timeoutMs: number): ReturnType<Pool['request']> {
    this.#pending++
    try {
      const response = await this.#pool.request({
        method: 'POST',
        path: batchPath,
        headers: this.#headers,
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: this.#abandoned.signal,
      })
      this.#missedTicks = 0
      return response
    } finally {
      this.#pending--
    }
  }

  /** Gives up every request that is pending. */
  abandon(): void {
    this.#abandoned.abort(new Error(`${this.#origin} does not respond`))
    this.#abandoned = newAbandonment()
  }

  /** Called several times a second. */
  tick(): void {
    this.#missedTicks = this.#pending > 0 ? this.#missedTicks + 1 : 0
    if ((this.isUnhealthy || this.#missedTicks >= missedTicksLimit) && !this.#isChecking) void this.#check()
  }

  async #check(): Promise<void> {
    this.#isChecking = true
    const wasUnhealthy = this.isUnhealthy
    this.isUnhealthy = await this.#isUnresponsive()
    this.#isChecking = false
    this.#missedTicks = 0
    if (this.isUnhealthy && !wasUnhealthy) this.#onUnhealthy(this)
  }

  /** One that refuses or resets connections is not: it keeps nobody waiting. */
  async #isUnresponsive(): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(healthTimeoutMs)
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

function newAbandonment(): AbortController {
  const abandonment = new AbortController()
  setMaxListeners(0, abandonment.signal)
  return abandonment
}
