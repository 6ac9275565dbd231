import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { batchIndexOf, type DomainError, errorTable } from '@workspace-wallet/contract'
import { JsonText } from '../api/json-text.ts'
import { localize } from '../locales/localize.ts'
import { requestedLocale } from '../locales/requested-locale.ts'

/** The version of the response format (section 9). */
export const formatVersion = '1.3.0'

/** A new request ID. It is in X-Request-Id, in the logs and in the ledger. */
export function mintRequestId(): string {
  return `req_${randomUUID()}`
}

/** The success envelope of section 2.1, as text. */
export function successBody(data: unknown): string {
  const envelope = { version: formatVersion, timestamp: Date.now(), success: true, code: '2000', message: 'SUCCESS' }
  if (data instanceof JsonText) return `${JSON.stringify(envelope).slice(0, -1)},"data":${data.text}}`
  return JSON.stringify({ ...envelope, data })
}

/** The failure envelope of sections 2.1 and 7, as text. `detail`: a localized sentence, if the client asked for a language. */
export function failureBody(error: DomainError, detail?: string): string {
  return JSON.stringify({
    version: formatVersion,
    timestamp: Date.now(),
    success: false,
    code: error.code,
    message: errorTable[error.code].message,
    data: null,
    detail,
  })
}

/** Returns the size of the body, in bytes. */
export function sendSuccess(response: ServerResponse, requestId: string, data: unknown): number {
  return send(response, 200, requestId, successBody(data))
}

/**
 * Sends an error, with a sentence in the language that the request asks for. Such responses need no Vary, because no cache may
 * store them.
 */
export function sendFailure(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  error: DomainError,
): void {
  const locale = requestedLocale(request.headers)
  if (locale) response.setHeader('Content-Language', locale.tag)
  const { details } = error
  if (details && 'retryAfterSeconds' in details) response.setHeader('Retry-After', String(details.retryAfterSeconds))
  if (details && 'transferId' in details) response.setHeader('X-Transfer-Id', details.transferId)
  const index = batchIndexOf(error)
  if (index !== undefined) response.setHeader('X-Batch-Index', String(index))
  send(response, errorTable[error.code].http, requestId, failureBody(error, locale && localize(error, locale)))
}

function send(response: ServerResponse, status: number, requestId: string, body: string): number {
  const bytes = Buffer.byteLength(body)
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': bytes,
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
  })
  response.end(body)
  return bytes
}
