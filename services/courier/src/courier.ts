import { setTimeout as sleep } from 'node:timers/promises'
import {
  type DeliveryReport,
  deliveryReportAnswer,
  type LeasedWebhook,
  type LeaseName,
  lease as leaseAnswer,
  maxLeasedWebhooks,
  maxWebhooks,
} from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { Availability, errorSummary, type Log } from '@workspace-wallet/runtime'
import type { z } from 'zod'
import { AttemptSlots, shareOf } from './attempt-slots.ts'
import { type DeliverOptions, deliver } from './deliver.ts'

/** The pause after a call that leased fewer webhooks than it asked for, unless a lease ends earlier, or the next call may find more. */
const pollMs = 200
/**
 * The shortest such pause, in times the duration of the call, up to `pollMs`: core reads a row for each active webhook, so
 * with many of them, a call for each lease that ends would keep the database busy.
 */
const pausePerCall = 10
/** A few attempts are shared by more webhooks than one workspace can have. */
const minLeases = 64
/** The pause after a failed call of core. */
const retryMs = 1_000

/** `ending`: aborted when no further attempt may begin. `done`: resolves when the lease is reported. */
type HeldLease = LeaseName & { workspaceId: string; ending: AbortController; done: Promise<void> }

export type CourierOptions = {
  core: CoreClient
  /** Maximum number of attempts in progress, and of leased webhooks if it is more than `minLeases`. */
  limit: number
  attempt: DeliverOptions['attempt']
  log: Log
}

/**
 * Leases webhooks that have events to deliver, delivers them, and reports the outcomes to core. It keeps no state: if it is
 * killed, its leases end, and the events that it has not reported are delivered again.
 */
export class Courier {
  readonly #core: CoreClient
  readonly #maxLeases: number
  readonly #attempt: DeliverOptions['attempt']
  readonly #log: Log
  readonly #slots: AttemptSlots
  readonly #stopping = new AbortController()
  readonly #leases = new Set<HeldLease>()
  readonly #availability: Availability
  #fault: string | null = 'core has not answered yet'
  #running: Promise<void> | undefined
  /** Resolves when a lease has ended since the last lease call began, or the courier stops. */
  #ended = Promise.withResolvers<void>()

  constructor({ core, limit, attempt, log }: CourierOptions) {
    this.#core = core
    this.#maxLeases = Math.max(limit, minLeases)
    this.#attempt = attempt
    this.#log = log
    this.#slots = new AttemptSlots(limit)
    this.#availability = new Availability('core', log)
  }

  /** Why core is unavailable; null if its last response was successful. */
  get fault(): string | null {
    return this.#fault
  }

  get load(): { leases: number; attempts: number; waiting: number } {
    return { leases: this.#leases.size, attempts: this.#slots.inUse, waiting: this.#slots.waiting }
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Begins no further attempt. Resolves when the attempts in progress have ended and are reported. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const { ending } of this.#leases) ending.abort()
    this.#ended.resolve()
    await this.#running
    await Promise.all([...this.#leases].map(({ done }) => done))
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const { size, except } = this.#wanted()
      this.#ended = Promise.withResolvers()
      const calledAtMs = performance.now()
      const found = await this.#lease(size, except)
      const tookMs = performance.now() - calledAtMs
      // With `except`, a call leases one webhook of each workspace: the next one may find more.
      if (except || found < size) await this.#wait(tookMs, except !== null && found > 0)
    }
  }

  /**
   * How many webhooks to lease. If a workspace may not have a lease for each of its webhooks, the call leaves out those that have their share,
   * and leases one webhook of each other one: webhooks that wait for an attempt could otherwise take all leases.
   */
  #wanted(): { size: number; except: string[] | null } {
    const free = this.#maxLeases - this.#leases.size
    const share = shareOf(free)
    if (share >= maxWebhooks) return { size: Math.min(maxLeasedWebhooks, free), except: null }
    const ofWorkspaces = Map.groupBy(this.#leases, ({ workspaceId }) => workspaceId)
    const except = [...ofWorkspaces].flatMap(([id, leases]) => (leases.length < share ? [] : id))
    // Each lease makes the share smaller, so a call does not take all that are free.
    return { size: Math.min(maxLeasedWebhooks, Math.ceil(free / 2)), except }
  }

  /** Pauses after a call that took `tookMs`. Unless `mayFindMore`, waits on until a lease has ended, the courier stops, or the time is over. */
  async #wait(tookMs: number, mayFindMore: boolean): Promise<void> {
    const pauseMs = Math.min(pollMs, pausePerCall * tookMs)
    await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
    if (mayFindMore) return
    const timer = setTimeout(this.#ended.resolve, (this.#fault === null ? pollMs : retryMs) - pauseMs)
    await this.#ended.promise
    clearTimeout(timer)
  }

  /** Leases webhooks and begins to deliver, and stops delivering those that are revoked. Resolves with the number of new ones. */
  async #lease(size: number, except: string[] | null): Promise<number> {
    const calledAtMs = performance.now()
    const held = [...this.#leases]
    const names = held.map(({ webhookId, generation }) => ({ webhookId, generation }))
    const answer = await this.#call(() => this.#core.courier.lease.mutate({ size, except, held: names }), leaseAnswer)
    for (const { webhookId, generation } of answer?.revoked ?? [])
      held.find(each => each.webhookId === webhookId && each.generation === generation)?.ending.abort()
    const webhooks = answer?.webhooks.slice(0, size) ?? []
    for (const webhook of webhooks) this.#hold(webhook, calledAtMs + webhook.leaseMs)
    return webhooks.length
  }

  #hold(webhook: LeasedWebhook, endsAtMs: number): void {
    const { webhookId, workspaceId, generation } = webhook
    const ending = new AbortController()
    if (this.#stopping.signal.aborted) ending.abort()
    const done = this.#deliver(webhook, endsAtMs, ending.signal).finally(() => {
      this.#leases.delete(lease)
      this.#ended.resolve()
    })
    const lease = { webhookId, workspaceId, generation, ending, done }
    this.#leases.add(lease)
  }

  async #deliver(webhook: LeasedWebhook, endsAtMs: number, ending: AbortSignal): Promise<void> {
    const leftMs = () => endsAtMs - performance.now()
    const report = await deliver(webhook, {
      slots: this.#slots,
      attempt: this.#attempt,
      leftMs,
      ending,
    })
    await this.#report(report, leftMs)
  }

  /** Repeats the report until core has answered, or the lease is over. */
  async #report(report: DeliveryReport, leftMs: () => number): Promise<void> {
    do {
      const answer = await this.#call(() => this.#core.courier.report.mutate(report), deliveryReportAnswer)
      if (answer) {
        if (!answer.accepted)
          this.#log.debug(
            { webhookId: report.webhookId },
            'a report had no effect: the webhook was changed or leased again',
          )
        return
      }
      await sleep(retryMs)
    } while (leftMs() > 0)
  }

  /** The response of core; undefined if it is unavailable, or answers something else, which must not end the courier. */
  async #call<Answer>(call: () => Promise<unknown>, schema: z.ZodType<Answer>): Promise<Answer | undefined> {
    try {
      const { data: answer } = schema.safeParse(await call())
      if (answer === undefined)
        throw new Error('core sent something else than an answer: check that it has the same version')
      this.#availability.restored()
      this.#fault = null
      return answer
    } catch (error) {
      this.#availability.lost(error)
      this.#fault = errorSummary(error)
      return undefined
    }
  }
}
