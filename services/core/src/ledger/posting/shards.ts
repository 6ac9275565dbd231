import { DomainError, type Uuid } from '@workspace-wallet/contract'
import { FairQueue, hashText, type QueueItem, type Waiting, waitAtMost } from '@workspace-wallet/runtime'
import { activeSpan, type Span, withSharedSpan } from '@workspace-wallet/runtime/tracing'
import { apiKeyOf, coreActor } from '../../audit/actors.ts'
import { CoreUnavailable } from '../../database/errors.ts'
import type { Command, LedgerRequest, Made, MadeBy, RequestResult } from '../decide/requests.ts'
import { dueHoldLimit } from '../store/queries.ts'
import type { KnownWorkspaces } from './known-workspaces.ts'

type WaitingRequest = QueueItem & {
  request: LedgerRequest
  /** The service token or operator; null for API keys and for core itself. */
  sender: string | null
  /** The span of its call, if that is traced. */
  span: Span | undefined
  resolve: (made: Made[]) => void
  reject: (error: unknown) => void
}

export type ShardOptions = {
  shards: number
  /** Maximum number of commands that wait in one shard. */
  queueLimit: number
  postBatch: (requests: LedgerRequest[]) => Promise<RequestResult[]>
  workspaces: Pick<KnownWorkspaces, 'has' | 'require'>
}

/** Number of commands at which a batch takes no further request. Larger batches add latency without adding throughput. */
const batchLimit = 256
/** The same of a busy workspace or service token: deciding a larger batch would keep the event loop from the others. */
const busyBatchLimit = 100
/**
 * From this many waiting commands on, shards post separately, and so does a workspace or a service token that has as many: below it,
 * the fixed cost of a second batch exceeds its use.
 */
const separateFrom = 64
/** How long the few requests of a shard wait for the batch of another one. */
const gatherMs = 25
/** How long a refused request waits until its workspace is halted. It may be one of few batches that a client has in flight. */
const haltWaitMs = 500
/** How often waiting requests whose deadline has passed are rejected, even while a batch is stuck. */
const sweepMs = 500

/** A batch of one busy workspace or service token, or one of all others. */
type Lane = 'busy' | 'others'

type Shard = {
  readonly queue: FairQueue<WaitingRequest>
  /** The lanes in which it has requests in a batch in flight. */
  readonly posting: Set<Lane>
}

/**
 * Group commit. Each workspace belongs to one shard, by hash. A shard has one batch in flight at a time; requests that arrive
 * meanwhile form the next one. While few requests wait, one batch takes those of all shards, and requests that arrive while it is in
 * flight wait for it, but not long. Without a batch in flight, no timer delays a request.
 *
 * So that nobody waits behind them, the requests of a busy workspace, for which many commands wait, have batches of their own. So do those
 * of a busy service token, in however many workspaces. Each shard has one such batch in flight at a time, beside that of the others. No
 * workspace is in two batches at a time.
 *
 * The workspaces of a shard take turns, and none can fill more than half of the queue, so a busy workspace cannot starve the others. All
 * that one service token posts fills at most half of it as well, in however many workspaces: the others are for API keys.
 */
export class Shards {
  readonly #shards: readonly Shard[]
  readonly #postBatch: ShardOptions['postBatch']
  readonly #workspaces: ShardOptions['workspaces']
  /** Commands in batches in flight. */
  #posting = 0
  /** Workspaces in batches in flight. */
  readonly #inFlight = new Set<Uuid<'workspace'>>()
  #lastStartMs = 0
  #isScheduled = false
  /** While requests wait for a batch in flight. */
  #gathering: NodeJS.Timeout | undefined
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #idle = Promise.withResolvers<void>()

  constructor({ shards, queueLimit, postBatch, workspaces }: ShardOptions) {
    this.#shards = Array.from({ length: shards }, () => ({ queue: new FairQueue(queueLimit), posting: new Set() }))
    this.#postBatch = postBatch
    this.#workspaces = workspaces
  }

  /**
   * Queues a request. Resolves with what its commands made when it is durable.
   *
   * @throws DomainError the ledger's rejection, GA2032 without queueing a request for a workspace that does not exist, or S002 when the queue is full, the deadline passed before the request was
   *   taken into a batch, or the shards are closed
   */
  async post<const Given extends readonly Command[]>(request: LedgerRequest<Given>): Promise<MadeBy<Given>> {
    const { workspaceId } = request
    if (!this.#workspaces.has(workspaceId)) await this.#workspaces.require(workspaceId)
    if (this.#isClosed) throw new CoreUnavailable()
    // One record for each command, in order, of the kind that `decide` makes. The queue holds requests of all kinds.
    return this.#add(request) as Promise<MadeBy<Given>>
  }

  /** How many commands wait, and how many are in batches in flight. Expiries count as in `weightOf`. */
  get depth(): { waiting: number; posting: number } {
    return { waiting: waitingIn(this.#shards), posting: this.#posting }
  }

  /** Accepts no more requests. Resolves when every accepted request has a result. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#startBatches()
    return this.#idle.promise
  }

  #add(request: LedgerRequest): Promise<Made[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Made[]>()
    const { workspaceId, deadlineMs, commands } = request
    const expire = () => reject(unavailable())
    const span = activeSpan()
    const weight = weightOf(commands)
    const sender = senderOf(commands[0]!)
    // A token has turns of its own, so that it takes nothing from the API keys of the workspace.
    const key = sender === null ? workspaceId : `${workspaceId} ${sender}`
    const { queue } = this.#shards[hashText(workspaceId) % this.#shards.length]!
    if (queue.add(key, { request, span, weight, sender, deadlineMs, resolve, reject, expire })) this.#schedule()
    else expire()
    return promise
  }

  /** Starts after this turn of the event loop, so that requests that arrive in one turn share a batch. */
  #schedule(): void {
    // A batch in flight may take longer than the deadlines of the requests behind it.
    this.#sweeper ??= setInterval(() => {
      for (const { queue } of this.#shards) queue.sweep()
    }, sweepMs)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#startBatches()
    })
  }

  #startBatches(): void {
    for (const shard of this.#shards) this.#startBusy(shard)
    this.#startOthers()
    if (this.#posting > 0 || waitingIn(this.#shards) > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
    if (this.#isClosed) this.#idle.resolve()
  }

  /** Starts a batch of the busy workspace or service token whose turn it is. */
  #startBusy(shard: Shard): void {
    while (!shard.posting.has('busy')) {
      const next = shard.queue.waiting.find(waiting => isBusy(shard, waiting) && !this.#isInFlight(waiting))
      if (!next) return
      const { sender } = next.items[0]!
      const isOfSender = ({ items }: Waiting<WaitingRequest>) => items[0]!.sender === sender
      const busy = next.weight >= separateFrom ? [next] : shard.queue.waiting.filter(isOfSender)
      // With what others post to these workspaces, which would otherwise have to wait for batch after batch.
      const workspaces = new Set(busy.map(workspaceOf))
      const isTaken = (waiting: Waiting<WaitingRequest>) =>
        workspaces.has(workspaceOf(waiting)) && !this.#isInFlight(waiting)
      void this.#post('busy', [shard], (_, waiting) => isTaken(waiting))
    }
  }

  /** Starts a batch for the waiting requests of all shards, or for those of each, unless they have to wait. */
  #startOthers(): void {
    const isReady = (shard: Shard, waiting: Waiting<WaitingRequest>) =>
      !isBusy(shard, waiting) && !this.#isInFlight(waiting)
    const ready = this.#shards.filter(
      shard => !shard.posting.has('others') && shard.queue.waiting.some(waiting => isReady(shard, waiting)),
    )
    if (ready.length === 0) return
    if (this.#waitingOfOthers() >= separateFrom) for (const shard of ready) void this.#post('others', [shard], isReady)
    else if (!this.#mustGather()) void this.#post('others', ready, isReady)
  }

  #waitingOfOthers(): number {
    return totalOf(this.#shards.flatMap(shard => shard.queue.waiting.filter(waiting => !isBusy(shard, waiting))))
  }

  /** Whether a batch of several workspaces is in flight that will soon have a result. */
  #mustGather(): boolean {
    const leftMs = this.#lastStartMs + gatherMs - performance.now()
    if (leftMs <= 0 || !this.#shards.some(({ posting }) => posting.has('others'))) return false
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      this.#startBatches()
    }, leftMs)
    return true
  }

  /** Posts one batch of requests of these shards. */
  async #post(
    lane: Lane,
    shards: readonly Shard[],
    isTaken: (shard: Shard, waiting: Waiting<WaitingRequest>) => boolean,
  ): Promise<void> {
    const limit = lane === 'busy' ? busyBatchLimit : batchLimit
    const batch = shards.flatMap(shard => shard.queue.take(limit, waiting => isTaken(shard, waiting)))
    const weight = totalOf(batch)
    // All of them had expired.
    if (weight === 0) return
    const workspaces = new Set(batch.map(({ request }) => request.workspaceId))
    if (lane === 'others') this.#lastStartMs = performance.now()
    this.#posting += weight
    for (const { posting } of shards) posting.add(lane)
    for (const each of workspaces) this.#inFlight.add(each)
    await this.#settle(batch)
    for (const each of workspaces) this.#inFlight.delete(each)
    for (const { posting } of shards) posting.delete(lane)
    this.#posting -= weight
    this.#startBatches()
  }

  #isInFlight(waiting: Waiting<WaitingRequest>): boolean {
    return this.#inFlight.has(workspaceOf(waiting))
  }

  /** Posts a batch, and gives each of its requests its result. */
  async #settle(batch: WaitingRequest[]): Promise<void> {
    try {
      const requests = batch.map(({ request }) => request)
      const span = { callers: batch.map(each => each.span), attributes: { 'wallet.batch.requests': batch.length } }
      const results = await withSharedSpan('post batch', span, () => this.#postBatch(requests))
      for (const [at, { resolve, reject }] of batch.entries()) {
        const result = results[at]!
        if (result.kind !== 'refused') resolve(result.made)
        else if (result.after) void waitAtMost(haltWaitMs, result.after).then(() => reject(result.error))
        else reject(result.error)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

/** How many commands wait in these shards. */
function waitingIn(shards: readonly Shard[]): number {
  return shards.reduce((sum, { queue }) => sum + queue.size, 0)
}

function totalOf(items: readonly { weight: number }[]): number {
  return items.reduce((sum, { weight }) => sum + weight, 0)
}

/** Whether many commands of the workspace wait, or many of the service token in all workspaces of the shard. */
function isBusy({ queue }: Shard, { items, weight }: Waiting<WaitingRequest>): boolean {
  return Math.max(weight, queue.weightOf(items[0]!.sender)) >= separateFrom
}

function workspaceOf({ items }: Waiting<WaitingRequest>): Uuid<'workspace'> {
  return items[0]!.request.workspaceId
}

/** Expiries weigh as many as the holds that a batch expires at most: they share no batch with another shard. */
function weightOf(commands: readonly Command[]): number {
  return commands.some(({ kind }) => kind === 'expiry') ? dueHoldLimit : commands.length
}

/** The service token or operator; null for API keys and for core itself. */
function senderOf({ actor }: Command): string | null {
  return actor === coreActor || apiKeyOf(actor) !== null ? null : actor
}

function unavailable(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
