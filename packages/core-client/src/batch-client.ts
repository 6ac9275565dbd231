import { batchCallLimit } from '@workspace-wallet/contract'
import { hashText } from '@workspace-wallet/runtime/text-hash'
import type { ProcedurePath } from '../../../services/core/src/routers/app-router.ts'
import type { AnswerLimits } from './answer-limits.ts'
import { CallQueue, type QueueLimits } from './call-queue.ts'
import { CoreConnection, tickMs } from './core-connection.ts'
import type { PendingCall } from './pending-call.ts'

/**
 * Commands that core posts in batches, other commands on a workspace, single reads, what gateways ask about API keys, and
 * all other calls have separate queues, so that a slow list delays neither a create nor a key change, and a thousand
 * concurrent reads need a few requests. Commands have queues for each core.
 */
const limits = {
  postings: {
    channel: 'commands',
    batches: 2,
    callsPerBatch: batchCallLimit,
    waitMs: 3_000,
    timeoutMs: 8_000,
    gathering: { calls: 16, atMostMs: 25 },
  },
  // One of at most a hundred transfers at a time, because creates wait while core decodes and validates them.
  transferBatches: { channel: 'commands', batches: 10, callsPerBatch: 1, waitMs: 3_000, timeoutMs: 8_000 },
  // A request each: one that waits for a lock delays no posting.
  commands: { channel: 'commands', batches: 16, callsPerBatch: 1, waitMs: 3_000, timeoutMs: 8_000 },
  reads: { channel: 'reads', batches: 2, callsPerBatch: batchCallLimit, waitMs: 3_000, timeoutMs: 3_000 },
  access: { channel: 'reads', batches: 3, callsPerBatch: 1, waitMs: 15_000, timeoutMs: 2_000 },
  others: { channel: 'others', batches: 64, callsPerBatch: 1, waitMs: 15_000, timeoutMs: 15_000 },
} as const satisfies Record<string, QueueLimits>
type Kind = keyof typeof limits
/** The kinds that have a queue for each core. */
const commandKinds = ['postings', 'transferBatches', 'commands'] as const
type CommandKind = (typeof commandKinds)[number]

const kindOfPath: Readonly<Record<string, Kind>> = {
  'access.beginNonceGeneration': 'access',
  'access.changes': 'access',
  'access.latestNonceGenerations': 'access',
  'access.lookup': 'access',
  'access.nonceKey': 'access',
  'holds.create': 'postings',
  'holds.get': 'reads',
  'holds.release': 'postings',
  'transfers.batch': 'transferBatches',
  'transfers.create': 'postings',
  'transfers.get': 'reads',
  'transfers.reverse': 'postings',
  'wallets.balance': 'reads',
  'wallets.changeStatus': 'commands',
  'wallets.create': 'commands',
  'wallets.get': 'reads',
} satisfies Partial<Record<ProcedurePath, Kind>>

/** Calls that wait for a batch, batches in flight, and cores that are out of rotation. */
export type CoreLoad = { waiting: number; inFlight: number; unhealthyCores: number }

/** The connections to the cores that serve one database, and the queues of calls for them. */
export class BatchClient {
  readonly cores: readonly CoreConnection[]
  /** By the core that they prefer. */
  readonly #byCore: Record<CommandKind, ReadonlyMap<CoreConnection, CallQueue>>
  readonly #shared: Record<Exclude<Kind, CommandKind>, CallQueue>
  readonly #queues: readonly CallQueue[]
  readonly #timer: NodeJS.Timeout

  constructor(urls: string[], access: { token: string; answers: AnswerLimits }) {
    const cores = urls.map(url => new CoreConnection(url, access, core => this.#removeFromRotation(core)))
    this.cores = cores
    const queuesOf = (kind: CommandKind) => new Map(cores.map(core => [core, new CallQueue(cores, limits[kind], core)]))
    this.#byCore = {
      postings: queuesOf('postings'),
      transferBatches: queuesOf('transferBatches'),
      commands: queuesOf('commands'),
    }
    this.#shared = {
      reads: new CallQueue(cores, limits.reads),
      access: new CallQueue(cores, limits.access),
      others: new CallQueue(cores, limits.others),
    }
    this.#queues = [
      ...Object.values(this.#byCore).flatMap(byCore => [...byCore.values()]),
      ...Object.values(this.#shared),
    ]
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  /** The queue for a call. */
  queueOf({ request, workspaceId }: PendingCall): CallQueue {
    const kind = kindOfPath[request.path] ?? 'others'
    return isCommandKind(kind) ? this.#queueOfCommands(kind, workspaceId) : this.#shared[kind]
  }

  /**
   * All commands of a workspace go to one core, which posts from memory as long as no other core posts to that workspace
   * (docs/decisions/0021). All clients choose the same core, by rendezvous hashing: while it is unhealthy, or its queue is
   * full, they choose the next one, and other workspaces keep theirs.
   */
  #queueOfCommands(kind: CommandKind, workspaceId: string): CallQueue {
    const healthy = this.cores.filter(({ isUnhealthy }) => !isUnhealthy)
    const rank = (core: CoreConnection) => hashText(core.url + workspaceId)
    const queues = (healthy.length > 0 ? healthy : this.cores)
      .toSorted((a, b) => rank(b) - rank(a))
      .map(core => this.#byCore[kind].get(core)!)
    return queues.find(queue => queue.hasRoom(workspaceId)) ?? queues[0]!
  }

  get load(): CoreLoad {
    return {
      waiting: this.#queues.reduce((sum, queue) => sum + queue.waiting, 0),
      inFlight: this.#queues.reduce((sum, queue) => sum + queue.inFlight, 0),
      unhealthyCores: this.cores.filter(({ isUnhealthy }) => isUnhealthy).length,
    }
  }

  #tick(): void {
    for (const core of this.cores) core.tick()
    for (const queue of this.#queues) queue.sweep()
  }

  /** Aborts its exchanges if a healthy core remains, so that their calls go there. Otherwise fails all waiting calls. */
  #removeFromRotation(core: CoreConnection): void {
    if (this.cores.some(({ isUnhealthy }) => !isUnhealthy)) core.abortPending()
    else for (const queue of this.#queues) queue.shed()
  }

  /** Waits for pending exchanges. */
  async close(): Promise<void> {
    await Promise.all(this.cores.map(core => core.close()))
    clearInterval(this.#timer)
  }
}

function isCommandKind(kind: Kind): kind is CommandKind {
  return commandKinds.includes(kind as CommandKind)
}
