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
  /** How many postings may wait in one shard. */
  queueLimit: number
  post: (postings: Posting[]) => Promise<PostingResult[]>
}

/** The most postings in one batch: past this a batch gains nothing and only makes its first ones wait. */
const batchLimit = 256
/** How often a shard looks for postings whose time is up, while its batch is stuck. */
const sweepMs = 500

/**
 * Group commit. Postings queue per shard (a hash of the workspace); while one batch of a shard is in flight the next
 * one gathers, and an idle shard starts at once: no timers. Workspaces of a shard take turns, and none may fill more
 * than half of its queue, so that a greedy one cannot starve its neighbours.
 */
export class Shards {
  readonly #shards: Shard[]
  #closed = false

  constructor({ shards, queueLimit, post }: ShardOptions) {
    this.#shards = Array.from({ length: shards }, () => new Shard(queueLimit, post))
  }

  /**
   * Posts one posting durably. One whose deadline has passed is dropped before it starts.
   *
   * @throws DomainError the ledger's refusal, or S002 when the queue is full or the time is up
   */
  post(posting: Posting): Promise<Transfer> {
    if (this.#closed) return Promise.reject(notNow())
    return this.#shards[hashText(posting.workspaceId) % this.#shards.length]!.add(posting)
  }

  /** How many postings wait, and how many are in batches under way. */
  get depth(): { waiting: number; posting: number } {
    return {
      waiting: this.#shards.reduce((sum, shard) => sum + shard.waiting, 0),
      posting: this.#shards.reduce((sum, shard) => sum + shard.posting, 0),
    }
  }

  /** Takes no more postings; returns when all that were taken have their answer. */
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
    const expire = () => reject(notNow())
    if (!this.#queue.add(workspaceId, { posting, deadlineMs, resolve, reject, expire })) {
      expire()
      return promise
    }
    this.#run ??= this.#work()
    // A batch may be stuck for longer than those behind it will wait.
    this.#sweeper ??= setInterval(() => this.#queue.sweep(), sweepMs)
    return promise
  }

  async idle(): Promise<void> {
    await this.#run
  }

  async #work(): Promise<void> {
    // What arrives in the same turn of the event loop belongs into the first batch.
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

function notNow(): DomainError {
  return new DomainError('S002', { retryAfterSeconds: 1 })
}
