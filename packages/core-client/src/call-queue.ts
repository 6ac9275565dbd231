import { batchByteLimit, packBatch } from '@workspace-wallet/contract'
import { FairQueue } from '@workspace-wallet/runtime/fair-queue'
import { SpanKind, withSharedSpan } from '@workspace-wallet/runtime/tracing'
import type { Channel, CoreConnection } from './core-connection.ts'
import { CoreRotation } from './core-rotation.ts'
import { CallAborted, type CoreUnreachable, type NoAnswerError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { PendingCall } from './pending-call.ts'
import { unresponsive } from './request-failures.ts'

export type QueueLimits = {
  channel: Channel
  /**
   * Batches that may be in flight at once. Calls made meanwhile are collected for the next batch. A batch whose calls have answers
   * in part, because some take longer, makes room for another one. As many more may be in flight with calls of workspaces that
   * have no other ones in flight: so one workspace keeps no other one waiting.
   */
  batches: number
  callsPerBatch: number
  /** How long a call may wait for a batch. Short, so that a caller soon learns of an overload. */
  waitMs: number
  /** How long a core may take to answer a batch. */
  timeoutMs: number
  /** For batches with a high fixed cost: while one is in flight, calls are gathered for the next one. */
  gathering?: Gathering
}

/** The next batch is sent when this many calls wait, when the batch in flight is answered, or when that one has taken `atMostMs`. */
export type Gathering = { calls: number; atMostMs: number }

/** `exchange`: with the core that the batch was given to last. */
type Batch = { calls: PendingCall[]; body: Buffer; sentAtMs: number; exchange?: Exchange }

/** How many batches with answers in part make room for others. */
const partlyAnsweredLimit = 32

/** Calls that may wait for a batch. Further calls fail at once. */
const waitingLimit = 10_000

/** A queue for calls of one kind. It sends them to the cores in batches. */
export class CallQueue {
  readonly #limits: QueueLimits
  readonly #rotation: CoreRotation
  readonly #waiting = new FairQueue<PendingCall>(waitingLimit)
  readonly #batches = new Set<Batch>()
  /** Those of them whose calls have answers in part. */
  readonly #partlyAnswered = new Set<Batch>()
  #isScheduled = false
  /** While calls are gathered. */
  #gathering: NodeJS.Timeout | undefined

  /** @param preferred the core that batches go to unless it is unhealthy or cooling down. Without it, cores take turns. */
  constructor(cores: readonly CoreConnection[], limits: QueueLimits, preferred?: CoreConnection) {
    this.#limits = limits
    this.#rotation = new CoreRotation(cores, preferred)
  }

  /** Calls that wait for a batch. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Batches that were sent and have no response yet. */
  get inFlight(): number {
    return this.#batches.size
  }

  /** Whether a call for this workspace can wait here. */
  hasRoom(workspaceId: string): boolean {
    return this.#waiting.hasRoom(workspaceId)
  }

  add(call: PendingCall): void {
    call.deadlineMs = performance.now() + this.#limits.waitMs
    if (!this.#rotation.hasHealthyCore) call.fail(this.#unresponsive())
    else if (!this.#waiting.add(call.workspaceId, call)) call.expire()
    else this.#schedule()
  }

  /** Aborts a call, and the exchange of its batch once no call of the batch needs it. */
  abort(call: PendingCall, reason: unknown): void {
    if (call.state === 'queued') this.#waiting.remove(call.workspaceId, call)
    call.abort(reason)
    for (const { calls, exchange } of this.#batches)
      if (calls.every(isSettled)) exchange?.fail(new CallAborted(reason, exchange.sent, exchange.sentAtMs))
  }

  /** Fails calls that have waited too long. They were not sent. */
  sweep(): void {
    this.#waiting.sweep()
  }

  /** Fails all waiting calls, because no core is healthy. They were not sent. */
  shed(): void {
    for (const call of this.#waiting.take(this.#waiting.size)) call.fail(this.#unresponsive())
  }

  #unresponsive(): CoreUnreachable {
    return unresponsive(this.#rotation.urls)
  }

  /** Sends after this turn of the event loop, so that calls made in one turn share a batch. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#send()
    })
  }

  #send(): void {
    while (this.#waiting.size > 0 && !this.#mustGather()) {
      const calls = this.#take()
      if (calls.length === 0) return
      for (const batch of split(calls)) {
        this.#batches.add(batch)
        void this.#deliver(batch).finally(() => {
          this.#batches.delete(batch)
          this.#partlyAnswered.delete(batch)
          this.#send()
        })
      }
    }
  }

  /** Takes the calls of the next batch; none if there is no room for it. */
  #take(): PendingCall[] {
    const { batches, callsPerBatch } = this.#limits
    const open = this.#batches.size - Math.min(this.#partlyAnswered.size, partlyAnsweredLimit)
    if (open < batches) return this.#waiting.take(callsPerBatch)
    if (open >= 2 * batches) return []
    const sent = Array.from(this.#batches, ({ calls }) => calls.filter(call => !isSettled(call))).flat()
    const inFlight = new Set(sent.map(({ workspaceId }) => workspaceId))
    return this.#waiting.take(callsPerBatch, ({ items }) => !inFlight.has(items[0]!.workspaceId))
  }

  /** Whether too few calls wait, and a batch was sent lately whose answers will soon make room for them. */
  #mustGather(): boolean {
    const { gathering } = this.#limits
    if (!gathering || this.#waiting.size >= gathering.calls) return false
    const unanswered = [...this.#batches].filter(batch => !this.#partlyAnswered.has(batch))
    const lastMs = Math.max(...unanswered.map(({ sentAtMs }) => sentAtMs))
    const leftMs = lastMs + gathering.atMostMs - performance.now()
    // Also without any.
    if (leftMs <= 0) return false
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      this.#send()
    }, leftMs).unref()
    return true
  }

  /**
   * Sends a batch to one core after another until one answers. Queries can always be sent again; mutations only if the
   * failed core certainly did not start them.
   */
  async #deliver(batch: Batch): Promise<void> {
    let failure: NoAnswerError | undefined
    for (const core of this.#rotation.next()) {
      const sentAtMs = performance.now()
      for (const call of batch.calls) call.markSent(sentAtMs)
      try {
        if (!(await this.#exchange(core, batch))) core.startCoolDown()
        return
      } catch (error) {
        failure = error as NoAnswerError
      }
      removeSettled(batch)
      if (batch.calls.length === 0) return
      core.startCoolDown()
      if (failure.sent && batch.calls.some(({ request }) => request.type !== 'query')) break
    }
    failure ??= this.#unresponsive()
    for (const call of batch.calls) call.fail(failure)
  }

  /**
   * Sends a batch to one core, which answers its calls. Returns false if it cannot do anything now: it said so, and answered every call
   * with S002.
   */
  async #exchange(core: CoreConnection, batch: Batch): Promise<boolean> {
    const { channel, timeoutMs } = this.#limits
    const { calls, body } = batch
    let hasDone = false
    let isUnavailable = false
    const onAnswer = (at: number, answer: unknown) => {
      const { code, isOfCore } = appErrorOf(answer)
      hasDone ||= code !== 'S002'
      isUnavailable ||= isOfCore === true
      calls[at]!.answer(answer)
    }
    const onPart = () => {
      this.#partlyAnswered.add(batch)
      this.#schedule()
    }
    const exchange = () => {
      batch.exchange = core.send({ body, calls: calls.length, onAnswer, onPart }, channel, timeoutMs)
      return batch.exchange.done
    }
    this.#partlyAnswered.delete(batch)
    // None of them is traced: leave out what only spans need.
    if (!calls.some(each => each.span)) await exchange()
    else {
      const callers = calls.map(each => each.span)
      const attributes = { ...core.attributes, 'wallet.batch.calls': calls.length }
      await withSharedSpan('send batch', { kind: SpanKind.CLIENT, callers, attributes }, exchange)
    }
    return hasDone || !isUnavailable
  }
}

/** Removes calls that were aborted, so that they are not sent to another core. */
function removeSettled(batch: Batch): void {
  if (!batch.calls.some(isSettled)) return
  batch.calls = batch.calls.filter(call => !isSettled(call))
  batch.body = pack(batch.calls)
}

/**
 * Packs calls into one batch, or into several if one would exceed `batchByteLimit`. A call whose input cannot be
 * serialized fails alone.
 */
function split(calls: PendingCall[]): Batch[] {
  if (calls.length === 0) return []
  try {
    const body = pack(calls)
    if (body.length <= batchByteLimit || calls.length === 1) return [{ calls, body, sentAtMs: performance.now() }]
  } catch (error) {
    if (calls.length === 1) {
      calls[0]!.fail(error as Error)
      return []
    }
  }
  const middle = calls.length >> 1
  return [...split(calls.slice(0, middle)), ...split(calls.slice(middle))]
}

function pack(calls: PendingCall[]): Buffer {
  return packBatch(calls.map(({ request }) => request))
}

/** What core says of an error (see `AppError` of core); empty for any other answer. */
function appErrorOf(answer: unknown): { code?: unknown; isOfCore?: unknown } {
  const { error } = (answer ?? {}) as { error?: { data?: { appError?: { code?: unknown; isOfCore?: unknown } } } }
  return error?.data?.appError ?? {}
}

function isSettled({ state }: PendingCall): boolean {
  return state === 'settled'
}
