import { ApiError, HistoryReplacedError, RequestError } from './errors.ts'
import { pause } from './pause.ts'
import { segment } from './queries.ts'
import type { EventPage, EventType, ReadEventsQuery } from './records.ts'
import { type CallOptions, retryDelayMs, type Send } from './request.ts'

/** A place in the event log: a position, or `head` for its end. */
export type Position = number | 'head'

export type FollowOptions = CallOptions & {
  /** Where to begin: `last` of the last page that you applied, 0 for the first event, or `head` for new events only. */
  after: Position
  /** `lastEventId` of that page. With it, a replaced history is also detected between two runs of your program. */
  afterEventId?: string | null | undefined
  /** Only events of these types. Default: all. */
  types?: readonly EventType[] | undefined
  /** Events on a page: 1 to 500. Default: 100. */
  size?: number | undefined
  /** Ends at the end of the log, instead of waiting for new events. Default: false. */
  untilEnd?: boolean | undefined
  /** How long to wait at the end of the log before it is read again, in milliseconds. Default: 1,000. */
  pollMs?: number | undefined
  /** Called with each failure that is retried, for your log. */
  onRetry?: ((error: RequestError) => void) | undefined
}

/** The event log of the workspace: everything that happened, in order, without gaps. Needs the scope `event:read`. */
export class Events {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /** One page of the events after a position. With `head` it has no events, and `last` is the end of the log. */
  async read(after: Position, query: ReadEventsQuery = {}, options: CallOptions = {}): Promise<EventPage> {
    const path = `/api/v1/event/query/events/${segment(after)}`
    return this.#send('GET', path, { ...options, query })
  }

  /**
   * Follows the log: yields pages as events appear, until the signal is aborted or the loop ends. It yields pages and not
   * single events because a page has the cursor. To apply each event exactly once, store `last` and `lastEventId` in the
   * same commit as the effects of `content`, and begin with them after a restart. With `types`, a page can have no events:
   * its cursor has passed those of other types.
   *
   * A read that fails is retried without a limit, after pauses of at most 10 seconds.
   *
   * @throws HistoryReplacedError if the log does not continue what was read
   * @throws AbortedError when the signal is aborted
   * @throws ApiError for a failure that a retry does not resolve, such as a missing scope
   */
  async *follow({ after, afterEventId, ...options }: FollowOptions): AsyncGenerator<EventPage, void, void> {
    const { types, size, untilEnd = false, pollMs = 1_000, onRetry, ...call } = options
    let cursor: Cursor = { after, eventId: afterEventId }
    for (;;) {
      const page = await this.#readAfter(cursor, { type: types, size }, call, onRetry)
      const isNew = page.last !== cursor.after
      cursor = { after: page.last, eventId: page.lastEventId }
      if (isNew) yield page
      if (untilEnd && !page.more) return
      // A page that did not move the cursor would be read again and again without a pause.
      if (!page.more || !isNew) await pause(pollMs, call.signal)
    }
  }

  /** Reads one page after a cursor, and checks that its event is still the one that was read there. */
  async #readAfter(
    { after, eventId }: Cursor,
    query: ReadEventsQuery,
    call: CallOptions,
    onRetry?: (error: RequestError) => void,
  ): Promise<EventPage> {
    for (let failures = 0; ; failures++)
      try {
        const page = await this.read(after, query, call)
        if (after !== 'head' && eventId !== undefined && page.afterEventId !== eventId)
          throw new HistoryReplacedError(after, eventId, page.afterEventId)
        return page
      } catch (error) {
        if (error instanceof ApiError && error.code === 'E001')
          throw new HistoryReplacedError(Number(after), eventId, undefined, error)
        const delayMs = error instanceof RequestError ? retryDelayMs(error, failures) : null
        if (delayMs === null) throw error
        onRetry?.(error as RequestError)
        await pause(delayMs, call.signal)
      }
  }
}

/** `eventId`: the event at the position, null at 0, undefined if it is not known. */
type Cursor = { after: Position; eventId: string | null | undefined }
