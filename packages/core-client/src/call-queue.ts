import { batchByteLimit, FairQueue, packBatch } from '@workspace-wallet/contract'
import type { Call } from './call.ts'
import type { CoreConnection } from './core-connection.ts'
import { CoreUnreachable, type NoAnswerError } from './errors.ts'

/** How calls of one kind travel. */
export type QueueLimits = {
  /** Batches that may be in flight at once; what is called meanwhile gathers for the next. */
  batches: number
  callsPerBatch: number
  /** How long a call waits for its batch: under overload its caller hears soon that it was not done. */
  waitMs: number
  /** How long a core may take to answer a batch. */
  timeoutMs: number
}

type Batch = { calls: Call[]; body: Buffer }

/** Calls that wait for a batch; beyond it the caller is told at once. */
const waitingLimit = 10_000

/** A queue of calls of one kind, and the batches that carry them to the cores. */
export class CallQueue {
  readonly #cores: readonly CoreConnection[]
  readonly #limits: QueueLimits
  readonly #waiting = new FairQueue<Call>(waitingLimit)
  #inFlight = 0
  #isScheduled = false
  /** Which core is first for the next batch: each queue takes turns for itself. */
  #turn = 0

  constructor(cores: readonly CoreConnection[], limits: QueueLimits) {
    this.#cores = cores
    this.#limits = limits
  }

  /** Calls that wait for a batch. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Batches without an answer. */
  get inFlight(): number {
    return this.#inFlight
  }

  add(call: Call): void {
    call.deadlineMs = performance.now() + this.#limits.waitMs
    const isOpen = this.#cores.some(({ isUnhealthy }) => !isUnhealthy)
    if (!isOpen || !this.#waiting.add(workspaceOf(call), call)) call.tooLate()
    else this.#schedule()
  }

  /** A queued call leaves the queue; one that was sent is abandoned: its answer is ignored. */
  abort(call: Call, reason: unknown): void {
    if (call.state === 'queued') this.#waiting.remove(workspaceOf(call), call)
    call.abort(reason)
  }

  /** Fails calls that have waited long enough. Nothing of them was sent. */
  sweep(): void {
    this.#waiting.sweep()
  }

  /** Fails all calls that wait. Nothing of them was sent. */
  shed(): void {
    for (const call of this.#waiting.take(this.#waiting.size)) call.tooLate()
  }

  /** What is called in the same turn of the event loop is sent together. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#send()
    })
  }

  #send(): void {
    while (this.#waiting.size > 0 && this.#inFlight < this.#limits.batches) {
      for (const batch of split(this.#waiting.take(this.#limits.callsPerBatch))) {
        this.#inFlight++
        void this.#deliver(batch).finally(() => {
          this.#inFlight--
          this.#send()
        })
      }
    }
  }

  /** Tries one core after the other: queries always, mutations for as long as they certainly were not begun. */
  async #deliver({ calls, body }: Batch): Promise<void> {
    let [left, bytes] = [calls, body]
    let failure: NoAnswerError = new CoreUnreachable(false)
    for (const core of this.#inRotation()) {
      const sentAtMs = performance.now()
      for (const call of left) call.send(sentAtMs)
      try {
        const answers = await core.send(bytes, this.#limits.timeoutMs)
        for (const [at, call] of left.entries()) call.answer(answers[at])
        return
      } catch (error) {
        failure = error as NoAnswerError
      }
      if (failure.sent && left.some(({ request }) => request.type !== 'query')) break
      const waiting = left.filter(({ state }) => state !== 'settled')
      // What was aborted meanwhile goes to no other core.
      if (waiting.length < left.length) [left, bytes] = [waiting, pack(waiting)]
      if (left.length === 0) return
    }
    for (const call of left) call.fail(failure)
  }

  /** Healthy cores in turn; those that could not be reached a moment ago last. */
  #inRotation(): CoreConnection[] {
    this.#turn = (this.#turn + 1) % this.#cores.length
    return [...this.#cores.slice(this.#turn), ...this.#cores.slice(0, this.#turn)]
      .filter(({ isUnhealthy }) => !isUnhealthy)
      .toSorted((a, b) => Number(a.isCoolingDown) - Number(b.isCoolingDown))
  }
}

/**
 * One batch, or several where core would refuse it as too large, and the small calls in it with the large. A call that
 * cannot be written as MessagePack fails, and none with it.
 */
function split(calls: Call[]): Batch[] {
  if (calls.length === 0) return []
  try {
    const body = pack(calls)
    if (body.length <= batchByteLimit || calls.length === 1) return [{ calls, body }]
  } catch (error) {
    if (calls.length === 1) {
      calls[0]!.fail(error as Error)
      return []
    }
  }
  const middle = calls.length >> 1
  return [...split(calls.slice(0, middle)), ...split(calls.slice(middle))]
}

function pack(calls: Call[]): Buffer {
  return packBatch(calls.map(({ request }) => request))
}

/** Calls of one workspace share a turn; those of none, another. */
function workspaceOf({ request: { input } }: Call): string {
  return String((input as { workspaceId?: unknown } | undefined)?.workspaceId ?? '')
}
