import { ApiError, type FailedRequest, type Outcome, UnexpectedResponseError } from './errors.ts'

/** A successful response. */
export type Answer<Data> = {
  data: Data
  status: number
  /** Identifies the request in the logs of the service. Quote it when you report a problem. */
  requestId: string | null
  /** The time of the service, in milliseconds since the Unix epoch. */
  timestamp: number
  headers: Headers
}

/** The response envelope (section 2.1). */
type Envelope = {
  success: boolean
  code: string
  message: string
  timestamp: number
  data: unknown
  detail?: string
}

/** The response of the service: a success or an error code. `timestamp`: see `Answer`. */
export type Result<Data> = { answer: Answer<Data> } | { error: ApiError; timestamp: number }

/**
 * Reads the response to an attempt.
 *
 * @param earlier the outcome of the attempts before this one
 * @throws UnexpectedResponseError if it is not a response of the service; the error of fetch if it is incomplete
 */
export async function readAnswer<Data>(
  response: Response,
  request: FailedRequest & { isRead: boolean },
  earlier: Outcome,
): Promise<Result<Data>> {
  const { status, headers } = response
  const mayBeExecuted = !request.isRead && (status < 300 || (status >= 500 && status !== 503))
  const outcome = mayBeExecuted ? 'UNKNOWN' : earlier
  const envelope = parseEnvelope(await readText(response))
  const requestId = headers.get('X-Request-Id')
  const retryAfterSeconds = integerOf(headers, 'Retry-After')
  if (!envelope) {
    const isUnknown = mayBeExecuted || (status === 503 && !request.isRead)
    throw new UnexpectedResponseError(status, retryAfterSeconds, request, isUnknown ? 'UNKNOWN' : earlier)
  }
  const { data, timestamp } = envelope
  if (envelope.success) return { answer: { data: data as Data, status, requestId, timestamp, headers } }
  const failure = {
    status,
    code: envelope.code,
    reason: envelope.message,
    detail: envelope.detail ?? null,
    requestId,
    retryAfterSeconds,
    batchIndex: integerOf(headers, 'X-Batch-Index'),
    transferId: headers.get('X-Transfer-Id'),
  }
  return { error: new ApiError(failure, request, outcome), timestamp }
}

/** More than the service sends. This bounds the memory that another server can make the client use. */
const maxAnswerBytes = 16 * 1024 * 1024

/** The text of a body. Empty if it is longer than a response of the service can be. */
async function readText({ body }: Response): Promise<string> {
  if (!body) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.length
    if (bytes > maxAnswerBytes) {
      await reader.cancel()
      return ''
    }
    text += decoder.decode(value, { stream: true })
  }
}

function parseEnvelope(text: string): Envelope | undefined {
  try {
    const envelope = JSON.parse(text) as Envelope
    const { success, code, message, timestamp, detail = '' } = envelope
    const isEnvelope =
      typeof success === 'boolean' &&
      typeof code === 'string' &&
      typeof message === 'string' &&
      typeof detail === 'string' &&
      Number.isFinite(timestamp)
    return isEnvelope ? envelope : undefined
  } catch {
    return undefined
  }
}

function integerOf(headers: Headers, name: string): number | null {
  const text = headers.get(name)
  return text !== null && /^\d+$/.test(text) ? Number(text) : null
}
