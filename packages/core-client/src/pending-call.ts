import type { Span } from '@opentelemetry/api'
import { type OperationResultEnvelope, TRPCClientError } from '@trpc/client'
import type { Observer } from '@trpc/server/observable'
import type { BatchCall } from '@workspace-wallet/contract'
import type { QueueItem } from '@workspace-wallet/runtime/fair-queue'
import { endSpan, traceparentOf } from '@workspace-wallet/runtime/tracing'
import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'
import { failCallSpan } from './call-span.ts'
import { CallAborted, CoreUnreachable, mayBeExecuted } from './errors.ts'

const noAnswer = `core returned no valid answer to this call: check that core and this client have the same version; ${mayBeExecuted}`
/** Maximum length of an answer that is one text, or bytes. */
const longestText = 4_096
/** Maximum length of all texts in one list of an answer. Fields may be longer, such as pages of events. */
const longestTextsOfList = 65_536
export const overloaded = 'the call was not sent, because too many calls wait for core: retry it later'

type CallObserver = Observer<OperationResultEnvelope<unknown, TRPCClientError<AppRouter>>, TRPCClientError<AppRouter>>

/**
 * A call and its state: `queued` until a batch includes it, `sent` while that batch may reach a core, `settled` once its
 * caller has a result or an error. A settled call ignores everything that follows.
 */
export class PendingCall implements QueueItem {
  readonly request: BatchCall
  /** Undefined if the caller is not traced, and once the call is settled. */
  span: Span | undefined
  /** Calls without a workspace share ''. */
  readonly workspaceId: string
  state: 'queued' | 'sent' | 'settled' = 'queued'
  /** When it expires in the queue, on the clock of `performance.now()`. */
  deadlineMs = 0
  readonly weight = 1
  onSettled: (() => void) | null = null
  /** When its batch was sent, on the same clock. */
  #sentAtMs: number | undefined
  #observer: CallObserver | null

  constructor(request: BatchCall, observer: CallObserver, span: Span | undefined) {
    this.request = span ? { ...request, traceparent: traceparentOf(span) } : request
    this.span = span
    this.workspaceId = String((request.input as { workspaceId?: unknown } | undefined)?.workspaceId ?? '')
    this.#observer = observer
  }

  markSent(sentAtMs: number): void {
    this.state = 'sent'
    this.#sentAtMs = sentAtMs
  }

  /** Settles the call with core's response. Anything else fails it. */
  answer(answer: unknown): void {
    if (!isAnswer(answer)) this.fail(new CoreUnreachable(noAnswer, true, this.#sentAtMs))
    else if ('error' in answer) this.fail(answer)
    else this.#succeed(answer.data)
  }

  /**
   * Passes on the result and does not complete the observable. The promises of tRPC's client resolve with the first value;
   * at completion, they would abort an AbortController, whose error costs as much as the rest of the call.
   */
  #succeed(data: unknown): void {
    if (this.span) endSpan(this.span, null)
    this.#settle()?.next({ result: { type: 'data', data } })
  }

  /** @param cause an error, or a response of core with tRPC's error shape in `error` */
  fail(cause: object): void {
    failCallSpan(this.span, cause)
    this.#settle()?.error(TRPCClientError.from(cause))
  }

  /** Returns the observer, the first time. Keeps nothing of the caller: V8 often frees batches, and so their calls, late. */
  #settle(): CallObserver | null {
    const observer = this.#observer
    this.#observer = null
    this.span = undefined
    this.state = 'settled'
    this.onSettled?.()
    this.onSettled = null
    return observer
  }

  abort(reason: unknown): void {
    this.fail(new CallAborted(reason, this.state === 'sent', this.#sentAtMs))
  }

  /** Fails the call because no batch took it in time. */
  expire(): void {
    this.fail(new CoreUnreachable(overloaded, false))
  }
}

function isAnswer(answer: unknown): answer is { data: unknown } | { error: unknown } {
  if (typeof answer !== 'object' || answer === null) return false
  return 'data' in answer ? !hasTextsForRecords(answer.data) : 'error' in answer
}

/**
 * Whether texts or bytes that are too long take the place of records. Callers copy the fields of records: a core that was taken
 * over could stop a gateway for seconds with texts of megabytes, which are copied character by character.
 */
function hasTextsForRecords(data: unknown): boolean {
  if (typeof data === 'string' || ArrayBuffer.isView(data)) return textLength(data) > longestText
  if (typeof data !== 'object' || data === null) return false
  return [data, ...Object.values(data)].some(
    list => Array.isArray(list) && list.reduce((sum, item) => sum + textLength(item), 0) > longestTextsOfList,
  )
}

function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  return ArrayBuffer.isView(value) ? value.byteLength : 0
}
