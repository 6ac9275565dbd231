import { batchPath, batchType, unpackBatch } from '@workspace-wallet/contract'
import { type Attributes, serverAttributes } from '@workspace-wallet/runtime/tracing'
import { errors, Pool } from 'undici'
import { CoreRejected, NoAnswerError } from './errors.ts'
import { foreignAnswer, requestFailure } from './request-failures.ts'

/** How often `tick` is called. */
export const tickMs = 250
const connectTimeoutMs = 1_000
/** Core sends less. It bounds the memory that another server can make this client use. */
const maxAnswerBytes = 128 * 1024 * 1024
/** How long a core that did not answer, or is not available, is tried last. */
const coolDownMs = 1_000
/** After this many ticks with pending requests and no response, the core's health is checked. */
const missedTicksLimit = 4
/** How many ticks a health check may take. */
const healthTicksLimit = 4

/** The keep-alive connections to one core, and its health. */
export class CoreConnection {
  readonly url: string
  /** Of the spans of its requests. */
  readonly attributes: Attributes
  /** Whether requests are pending and a health check got no response either. It is checked at every tick until it answers. */
  isUnhealthy = false
  readonly #pool: Pool
  readonly #headers: Record<string, string>
  readonly #onUnhealthy: (core: CoreConnection) => void
  /** By request: how many ticks it may still take. */
  readonly #pending = new Map<AbortController, number>()
  /** Ticks are counted, not time: if this process stalls, its cores do not become unhealthy. */
  #missedTicks = 0
  #check: { ticks: number; controller: AbortController } | undefined
  #coolingDownUntilMs = 0
  #isClosed = false

  constructor(url: string, token: string, onUnhealthy: (core: CoreConnection) => void) {
    this.url = new URL(url).origin
    this.attributes = serverAttributes(new URL(url))
    this.#pool = new Pool(this.url, {
      connections: 96,
      connect: { timeout: connectTimeoutMs },
      maxResponseSize: maxAnswerBytes,
    })
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': batchType }
    this.#onUnhealthy = onUnhealthy
  }

  get isCoolingDown(): boolean {
    return this.#coolingDownUntilMs > performance.now()
  }

  /** Records that the core did not answer, or is not available. */
  startCoolDown(): void {
    this.#coolingDownUntilMs = performance.now() + coolDownMs
  }

  /**
   * Sends a batch and returns its responses.
   *
   * @param body of `packBatch`
   * @param timeoutMs until the response is complete. A core that sends a byte now and then must not keep the few batches that may be
   *   in flight
   * @param request aborts the HTTP request
   * @throws CoreUnreachable, CoreRejected if core returned no responses
   */
  async send(body: Buffer, timeoutMs: number, request: AbortController): Promise<unknown[]> {
    const sentAtMs = performance.now()
    this.#pending.set(request, Math.ceil(timeoutMs / tickMs))
    try {
      const response = await this.#pool.request({
        method: 'POST',
        path: batchPath,
        headers: this.#headers,
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: request.signal,
      })
      this.#missedTicks = 0
      if (response.statusCode !== 200)
        throw new CoreRejected(this.url, response.statusCode, await response.body.text(), sentAtMs)
      const type = [response.headers['content-type']].flat()[0]
      const answers = unpackAnswers(await response.body.bytes())
      if (!answers) throw foreignAnswer(this.url, type, sentAtMs)
      return answers
    } catch (error) {
      throw error instanceof NoAnswerError ? error : requestFailure(this.url, error, sentAtMs)
    } finally {
      this.#pending.delete(request)
    }
  }

  /** Aborts all pending requests. */
  abortPending(): void {
    for (const request of this.#pending.keys()) request.abort(new Error(`${this.url} does not respond`))
  }

  /** Call it every `tickMs`. */
  tick(): void {
    for (const [request, ticks] of this.#pending) {
      if (ticks <= 0) request.abort(new errors.BodyTimeoutError())
      this.#pending.set(request, ticks - 1)
    }
    this.#missedTicks = this.#pending.size > 0 ? this.#missedTicks + 1 : 0
    if (!this.#check) {
      if (this.isUnhealthy || this.#missedTicks >= missedTicksLimit) void this.#checkHealth()
    } else if (++this.#check.ticks >= healthTicksLimit) this.#check.controller.abort()
  }

  async #checkHealth(): Promise<void> {
    const controller = new AbortController()
    this.#check = { ticks: 0, controller }
    const wasUnhealthy = this.isUnhealthy
    const isUnresponsive = await this.#isUnresponsive(controller.signal)
    if (this.#isClosed) return
    this.isUnhealthy = isUnresponsive
    this.#check = undefined
    this.#missedTicks = 0
    if (this.isUnhealthy && !wasUnhealthy) this.#onUnhealthy(this)
  }

  /** A core that refuses or resets connections is not unresponsive: calls fail fast and go to another core. */
  async #isUnresponsive(signal: AbortSignal): Promise<boolean> {
    try {
      const { body } = await this.#pool.request({ method: 'GET', path: '/healthz', signal })
      await body.dump()
      return false
    } catch (error) {
      return signal.aborted || (error as { code?: string }).code === 'UND_ERR_CONNECT_TIMEOUT'
    }
  }

  /** Waits for pending requests, but not for a health check, which no tick would end any more. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#check?.controller.abort()
    return this.#pool.close()
  }
}

/** Null if the body is not the responses to a batch. */
function unpackAnswers(body: Uint8Array): unknown[] | null {
  try {
    const answers = unpackBatch(body)
    return Array.isArray(answers) ? answers : null
  } catch {
    return null
  }
}
