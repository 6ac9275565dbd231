import { batchCallLimit } from '@workspace-wallet/contract'
import { CallQueue, type QueueLimits } from './call-queue.ts'
import { CoreConnection } from './core-connection.ts'

/**
 * Creates, single reads, what gateways ask about API keys, and all other calls have separate queues, so that a slow list
 * delays neither a create nor a key change, and a thousand concurrent reads need a few requests.
 */
const limits = {
  creates: { batches: 3, callsPerBatch: batchCallLimit, waitMs: 3_000, timeoutMs: 8_000 },
  reads: { batches: 2, callsPerBatch: batchCallLimit, waitMs: 3_000, timeoutMs: 3_000 },
  access: { batches: 2, callsPerBatch: 1, waitMs: 15_000, timeoutMs: 2_000 },
  others: { batches: 64, callsPerBatch: 1, waitMs: 15_000, timeoutMs: 15_000 },
} as const satisfies Record<string, QueueLimits>

const queueOfPath: Record<string, keyof typeof limits> = {
  'access.beginNonceGeneration': 'access',
  'access.changes': 'access',
  'access.lookup': 'access',
  'transfers.create': 'creates',
  'transfers.get': 'reads',
  'wallets.get': 'reads',
  'wallets.balance': 'reads',
}

const tickMs = 250

/** Calls that wait for a batch, batches in flight, and cores that are out of rotation. */
export type CoreLoad = { waiting: number; inFlight: number; unhealthyCores: number }

/** The connections to the cores that serve one database, and the queues of calls for them. */
export class BatchClient {
  readonly cores: readonly CoreConnection[]
  readonly #queues: Record<keyof typeof limits, CallQueue>
  readonly #timer: NodeJS.Timeout

  constructor(urls: string[], token: string) {
    const cores = urls.map(url => new CoreConnection(url, token, core => this.#removeFromRotation(core)))
    this.cores = cores
    this.#queues = {
      creates: new CallQueue(cores, limits.creates),
      reads: new CallQueue(cores, limits.reads),
      access: new CallQueue(cores, limits.access),
      others: new CallQueue(cores, limits.others),
    }
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  /** The queue for calls of a procedure. */
  queueOf(path: string): CallQueue {
    return this.#queues[queueOfPath[path] ?? 'others']
  }

  get load(): CoreLoad {
    const queues = Object.values(this.#queues)
    return {
      waiting: queues.reduce((sum, queue) => sum + queue.waiting, 0),
      inFlight: queues.reduce((sum, queue) => sum + queue.inFlight, 0),
      unhealthyCores: this.cores.filter(({ isUnhealthy }) => isUnhealthy).length,
    }
  }

  #tick(): void {
    for (const core of this.cores) core.tick()
    for (const queue of Object.values(this.#queues)) queue.sweep()
  }

  /** Aborts its requests if a healthy core remains, so that their calls go there. Otherwise fails all waiting calls. */
  #removeFromRotation(core: CoreConnection): void {
    if (this.cores.some(({ isUnhealthy }) => !isUnhealthy)) core.abortPending()
    else for (const queue of Object.values(this.#queues)) queue.shed()
  }

  /** Waits for pending requests. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.cores.map(core => core.close()))
  }
}
