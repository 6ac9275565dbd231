import { type Attributes, serverAttributes } from '@workspace-wallet/runtime/tracing'
import type { AnswerLimits } from './answer-limits.ts'
import type { CoreLink } from './core-link.ts'
import type { NoAnswerError } from './errors.ts'
import { Exchange, type ExchangeBatch } from './exchange.ts'
import { openLink } from './open-link.ts'
import { answeredTooLate, closedAtOnce, closedClient, connectionLost } from './request-failures.ts'

/** How often `tick` is called. */
export const tickMs = 250
/** How long a core that did not answer, or is not available, is tried last. */
const coolDownMs = 1_000
/** After this many ticks with pending exchanges and no response, the core's health is checked. */
const missedTicksLimit = 4
/** How many ticks a health check may take. */
const healthTicksLimit = 4
/** After this many ticks without a byte, a connection to a healthy core is lost. It was pinged in time. */
const lostTicks = 9

/**
 * Exchanges of different channels have different connections, so that the long answers of one delay no other: commands, single reads,
 * and the rest.
 */
export type Channel = 'commands' | 'reads' | 'others'
type Opening = { exchanges: Exchange[]; controller: AbortController }

/** The connections to one core, and its health. */
export class CoreConnection {
  readonly url: string
  /** Of the spans of its exchanges. */
  readonly attributes: Attributes
  /** Whether exchanges are pending and a health check got no response either. It is checked at every tick until it answers. */
  isUnhealthy = false
  readonly #access: { token: string; answers: AnswerLimits }
  readonly #onUnhealthy: (core: CoreConnection) => void
  /** The connections that take exchanges. */
  readonly #links = new Map<Channel, CoreLink>()
  /** These, and those that only wait for their last answers. */
  readonly #allLinks = new Set<CoreLink>()
  /** The connections that are being opened, and what waits for them. */
  readonly #openings = new Map<Channel, Opening>()
  readonly #pending = new Set<Exchange>()
  /** Ticks are counted, not time: if this process stalls, its cores do not become unhealthy. */
  #missedTicks = 0
  #check: { ticks: number; controller: AbortController } | undefined
  #coolingDownUntilMs = 0
  #isClosed = false

  constructor(
    url: string,
    access: { token: string; answers: AnswerLimits },
    onUnhealthy: (core: CoreConnection) => void,
  ) {
    this.url = new URL(url).origin
    this.attributes = serverAttributes(new URL(url))
    this.#access = access
    this.#onUnhealthy = onUnhealthy
  }

  get isCoolingDown(): boolean {
    return this.#coolingDownUntilMs > performance.now()
  }

  /** Records that the core did not answer, or is not available. */
  startCoolDown(): void {
    this.#coolingDownUntilMs = performance.now() + coolDownMs
  }

  /** Sends a batch. `done` fails with CoreUnreachable or CoreRejected if core does not answer all of it. */
  send(batch: ExchangeBatch, channel: Channel, timeoutMs: number): Exchange {
    const onAnswer = (at: number, answer: unknown) => {
      this.#missedTicks = 0
      batch.onAnswer(at, answer)
    }
    const exchange = new Exchange({ ...batch, onAnswer }, Math.ceil(timeoutMs / tickMs), this.#onSettled)
    this.#pending.add(exchange)
    const link = this.#links.get(channel)
    if (link?.isOpen) link.send(exchange)
    else if (this.#isClosed) exchange.fail(closedClient())
    else this.#sendWhenOpen(channel, exchange)
    return exchange
  }

  readonly #onSettled = (exchange: Exchange): void => {
    this.#pending.delete(exchange)
    exchange.link?.forget(exchange)
  }

  #sendWhenOpen(channel: Channel, exchange: Exchange): void {
    const opening = this.#openings.get(channel)
    if (opening) return void opening.exchanges.push(exchange)
    const opened = { exchanges: [exchange], controller: new AbortController() }
    this.#openings.set(channel, opened)
    void this.#open(channel, opened)
  }

  async #open(channel: Channel, { exchanges, controller }: Opening): Promise<void> {
    let failure = closedAtOnce(this.url)
    try {
      const link = await openLink(this.url, this.#access, controller.signal)
      this.#allLinks.add(link)
      this.#links.set(channel, link)
    } catch (error) {
      failure = error as NoAnswerError
    }
    this.#openings.delete(channel)
    for (const exchange of exchanges) {
      const link = this.#links.get(channel)
      if (exchange.isSettled) continue
      if (link?.isOpen) link.send(exchange)
      else exchange.fail(failure)
    }
  }

  /** Ends all pending exchanges, and the connections. */
  abortPending(): void {
    for (const { controller } of this.#openings.values()) controller.abort()
    for (const link of this.#allLinks) link.destroy(exchange => connectionLost(this.url, exchange))
  }

  /** Call it every `tickMs`. */
  tick(): void {
    for (const exchange of this.#pending) if (exchange.ticks-- <= 0) this.#timeOut(exchange)
    for (const link of this.#allLinks) this.#tickLink(link)
    this.#missedTicks = this.#pending.size > 0 ? this.#missedTicks + 1 : 0
    if (!this.#check) {
      if (this.isUnhealthy || this.#missedTicks >= missedTicksLimit) void this.#checkHealth()
    } else if (++this.#check.ticks >= healthTicksLimit) this.#check.controller.abort()
  }

  /** A core that sends a byte now and then must not keep the few batches that may be in flight, or delay the answers behind them. */
  #timeOut(exchange: Exchange): void {
    const { link, framesBefore } = exchange
    exchange.fail(answeredTooLate(this.url, exchange))
    if (link?.frames === framesBefore && !this.isUnhealthy) link.destroy(each => connectionLost(this.url, each))
  }

  #tickLink(link: CoreLink): void {
    link.tick()
    // The core answers health checks, so it is the connection that is lost.
    const isLost = link.isBusy && link.silentTicks >= lostTicks && !this.isUnhealthy && !this.#check
    if (isLost) link.destroy(exchange => connectionLost(this.url, exchange))
    if (link.isClosed) this.#allLinks.delete(link)
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
    // It was frozen, and its connections with it.
    if (wasUnhealthy && !this.isUnhealthy) for (const link of this.#allLinks) link.silentTicks = 0
    if (this.isUnhealthy && !wasUnhealthy) this.#onUnhealthy(this)
  }

  /** A core that refuses or resets connections is not unresponsive: calls fail fast and go to another core. */
  async #isUnresponsive(signal: AbortSignal): Promise<boolean> {
    try {
      const { body } = await fetch(new URL('/healthz', this.url), { signal, redirect: 'manual' })
      await body?.cancel()
      return false
    } catch {
      return signal.aborted
    }
  }

  /** Waits for pending exchanges, but not for a health check, which no tick would end any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#check?.controller.abort()
    await Promise.allSettled([...this.#pending].map(({ done }) => done))
    for (const { controller } of this.#openings.values()) controller.abort()
    for (const link of this.#allLinks) link.end()
  }
}
