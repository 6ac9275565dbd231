import { DomainError, FairQueue, hashText, type QueueItem } from '@workspace-wallet/contract'
import type { Transfer } from '../chain/transfer.ts'
import type { Posting, PostingResult } from './posting.ts'

type WaitingPosting = QueueItem & {
  posting: Posting
  resolve: (transfer: Transfer) => void
  reject: (error: unknown) => void
}

export type ShardOptions = {
  shards: number
  /** Maximum number of postings that wait in one shard. */
  queueLimit: number
  post: (postings: Posting[]) => Promise<PostingResult[]>
}

/** Maximum number of postings in a batch. Larger batches add latency without adding throughput. */
const batchLimit = 256
/** How often a shard rejects waiting postings whose deadline has passed, even while its batch is stuck. */
const sweepMs = 500

/**
 * Group commit. Each workspace belongs to one shard, by hash. A shard has one batch in flight; postings that arrive
 * meanwhile form the next batch, and an idle shard starts immediately, so no timer delays a posting. The workspaces of a
 * shard take turns, and none can fill more than half of the queue, so a busy workspace cannot starve the others.
 */
export class Shards {
  readonly #shards: Shard[]
  #closed = false

  constructor({ shards, queueLimit, post }: ShardOptions) {
    this.#shards = Array.from({ length: shards }, () => new Shard(queueLimit, post))
  }

  /**
   * Queues one posting. Resolves when it is durable.
   *
   * @throws DomainError the ledger's refusal, or S002 when the queue is full, the deadline passed before the posting was
   *   taken into a batch, or the shards are closed
   */
  post(posting: Posting): Promise<Transfer> {
    if (this.#closed) return Promise.reject(unavailable())
    return this.#shards[hashText(posting.workspaceId) % this.#shards.length]!.add(posting)
  }

  /** How many postings wait, and how many are in batches in flight. */
  get depth(): { waiting: number; posting: number } {
    return {
      waiting: this.#shards.reduce((sum, shard) => sum + shard.waiting, 0),
      posting: this.#shards.reduce((sum, shard) => sum + shard.posting, 0),
    }
  }

  /** Accepts no more postings. Resolves when every accepted posting has a result. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#shards.map(shard => shard.idle()))
  }
}

class Shard {
  readonly #post: ShardOptions['post']
  readonly #queue: FairQueue<WaitingPosting>
  #run: Promise<void> | undefined
  #sweeper: NodeJS.Timeout | undefined
  posting = 0

  constructor(queueLimit: number, post: ShardOptions['post']) {
    this.#queue = new FairQueue(queueLimit)
    this.#post = post
  }

  get waiting(): number {
    return this.#queue.size
  }

  add(posting: Posting): Promise<Transfer> {
    const { promise, resolve, reject } = Promise.withResolvers<Transfer>()
    const { workspaceId, deadlineMs } = posting
    const expire = () => reject(unavailable())
    if (!this.#queue.add(workspaceId, { posting, deadlineMs, resolve, reject, expire })) {
      expire()
      return promise
    }
    this.#run ??= this.#work()
    // The batch in flight may take longer than the deadlines of the postings behind it.
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
      this.posting = batch.length
      if (batch.length > 0) await this.#postAll(batch)
      this.posting = 0
    }
    this.#run = undefined
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }

  async #postAll(batch: WaitingPosting[]): Promise<void> {
    try {
      const results = await this.#post(batch.map(({ posting }) => posting))
      for (const [at, { resolve, reject }] of batch.entries()) {
        const result = results[at]!
        if (result.kind === 'refused') reject(result.error)
        else resolve(result.transfer)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

function unavailable(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
