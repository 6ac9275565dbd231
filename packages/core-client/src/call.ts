import { type OperationResultEnvelope, TRPCClientError } from '@trpc/client'
import type { Observer } from '@trpc/server/observable'
import type { BatchCall, Waiting } from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/router.ts'
import { CallAborted, CoreUnreachable } from './errors.ts'

type CallObserver = Observer<OperationResultEnvelope<unknown, TRPCClientError<AppRouter>>, TRPCClientError<AppRouter>>

/**
 * A call on its way. It is `queued` until a batch takes it, `sent` while the batch may reach a core, and `settled` once
 * its caller has an answer or an error. What comes after that is ignored.
 */
export class Call implements Waiting {
  readonly request: BatchCall
  state: 'queued' | 'sent' | 'settled' = 'queued'
  /** Until when it waits for a batch, and when its batch left, on the clock of `performance.now()`. */
  deadlineMs = 0
  sentAtMs: number | undefined
  readonly #observer: CallObserver

  constructor(request: BatchCall, observer: CallObserver) {
    this.request = request
    this.#observer = observer
  }

  /** A batch leaves with it. */
  send(sentAtMs: number): void {
    this.state = 'sent'
    this.sentAtMs = sentAtMs
  }

  /** Takes what core answered it with, if anything. */
  answer(answer: unknown): void {
    if (!isAnswer(answer)) this.fail(new CoreUnreachable(true, undefined, this.sentAtMs))
    else if ('error' in answer) this.fail(answer)
    else this.#succeed(answer.data)
  }

  #succeed(data: unknown): void {
    if (this.state === 'settled') return
    this.state = 'settled'
    this.#observer.next({ result: { type: 'data', data } })
    this.#observer.complete()
  }

  /** Takes an error, or core's answer that is one. */
  fail(cause: object): void {
    if (this.state === 'settled') return
    this.state = 'settled'
    this.#observer.error(TRPCClientError.from(cause))
  }

  abort(reason: unknown): void {
    this.fail(new CallAborted(reason, this.state === 'sent', this.sentAtMs))
  }

  /** It waited as long as it may: nothing of it was sent. */
  tooLate(): void {
    this.fail(new CoreUnreachable(false))
  }
}

function isAnswer(answer: unknown): answer is { data: unknown } | { error: unknown } {
  return typeof answer === 'object' && answer !== null && ('data' in answer || 'error' in answer)
}
