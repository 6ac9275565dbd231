import { DomainError } from '@workspace-wallet/contract'
import { FairQueue, hashText, type QueueItem, waitAtMost } from '@workspace-wallet/runtime'
import { activeSpan, type Span, withSharedSpan } from '@workspace-wallet/runtime/tracing'
import { apiKeyOf, coreActor } from '../../audit/actors.ts'
import type { Command, LedgerRequest, Made, MadeBy, RequestResult } from '../decide/requests.ts'
import type { KnownWorkspaces } from './known-workspaces.ts'

type WaitingRequest = QueueItem & {
  request: LedgerRequest
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
/** How long a refused request waits until its workspace is halted. It may be one of few batches that a client has in flight. */
const haltWaitMs = 500
/** How often a shard rejects waiting requests whose deadline has passed, even while its batch is stuck. */
const sweepMs = 500

/**
 * Group commit. Each workspace belongs to one shard, by hash. A shard has one batch in flight; requests that arrive
 * meanwhile form the next batch, and an idle shard starts immediately, so no timer delays a request. The workspaces of a
 * shard take turns, and none can fill more than half of the queue, so a busy workspace cannot starve the others. All that one service
 * token posts fills at most half of it as well, in however many workspaces: the others are for API keys.
 */
export class Shards {
  readonly #shards: Shard[]
  readonly #workspaces: ShardOptions['workspaces']
  #closed = false

  constructor({ shards, queueLimit, postBatch, workspaces }: ShardOptions) {
    this.#workspaces = workspaces
    this.#shards = Array.from({ length: shards }, () => new Shard(queueLimit, postBatch))
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
    if (this.#closed) throw unavailable()
    const made = this.#shards[hashText(workspaceId) % this.#shards.length]!.add(request)
    // One record for each command, in order, of the kind that `decide` makes. The queue holds requests of all kinds.
    return made as Promise<MadeBy<Given>>
  }

  /** How many commands wait, and how many are in batches in flight. */
  get depth(): { waiting: number; posting: number } {
    return {
      waiting: this.#shards.reduce((sum, shard) => sum + shard.waiting, 0),
      posting: this.#shards.reduce((sum, shard) => sum + shard.posting, 0),
    }
  }

  /** Accepts no more requests. Resolves when every accepted request has a result. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#shards.map(shard => shard.idle()))
  }
}

class Shard {
  readonly #postBatch: ShardOptions['postBatch']
  readonly #queue: FairQueue<WaitingRequest>
  #run: Promise<void> | undefined
  #sweeper: NodeJS.Timeout | undefined
  posting = 0

  constructor(queueLimit: number, postBatch: ShardOptions['postBatch']) {
    this.#queue = new FairQueue(queueLimit)
    this.#postBatch = postBatch
  }

  get waiting(): number {
    return this.#queue.size
  }

  add(request: LedgerRequest): Promise<Made[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Made[]>()
    const { workspaceId, deadlineMs, commands } = request
    const expire = () => reject(unavailable())
    const span = activeSpan()
    const weight = commands.length
    const sender = senderOf(commands[0]!)
    // A token has turns of its own, so that it takes nothing from the API keys of the workspace.
    const key = sender === null ? workspaceId : `${workspaceId} ${sender}`
    if (!this.#queue.add(key, { request, span, weight, sender, deadlineMs, resolve, reject, expire })) {
      expire()
      return promise
    }
    this.#run ??= this.#work()
    // The batch in flight may take longer than the deadlines of the requests behind it.
    this.#sweeper ??= setInterval(() => this.#queue.sweep(), sweepMs)
    return promise
  }

  async idle(): Promise<void> {
    await this.#run
  }

  async #work(): Promise<void> {
    // Postings that arrive in the same turn of the event loop join the first batch.
    await new Promise(setImmediate)
    while (this.waiting > 0) {
      const batch = this.#queue.take(batchLimit)
      this.posting = batch.reduce((sum, { weight }) => sum + weight, 0)
      if (batch.length > 0) await this.#settle(batch)
      this.posting = 0
    }
    this.#run = undefined
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
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

/** The service token or operator; null for API keys and for core itself. */
function senderOf({ actor }: Command): string | null {
  return actor === coreActor || apiKeyOf(actor) !== null ? null : actor
}

function unavailable(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
