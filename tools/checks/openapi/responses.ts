import { createBatchBody, type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { Endpoint } from '../../../gateway/src/api/endpoint.ts'
import { formatVersion } from '../../../gateway/src/http/envelope.ts'
import { type JsonSchema, refTo } from './components.ts'
import { byStatus, commandErrors, commonErrors, errorsOf } from './endpoint-errors.ts'

type Header = { $ref: string } | { description: string; required?: boolean; schema: JsonSchema }
type Response = {
  description: string
  headers: Record<string, Header>
  content: {
    'application/json': { schema: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
  }
}

const text = (description: string, schema: JsonSchema = {}, required = false): Header => ({
  description,
  ...(required && { required }),
  schema: { type: 'string', ...schema },
})

/** Response headers that several responses have. */
export const headers = {
  'X-Request-Id': text(
    'Identifies the request in the logs of the service. Name it when you report a problem.',
    { pattern: '^req_[0-9a-f-]{36}$' },
    true,
  ),
  'Cache-Control': text('No response may be stored.', { const: 'no-store' }, true),
  'Content-Language': text('The language of `detail`, if there is one.', { examples: ['en-US'] }),
  'RateLimit-Policy': text('The rate limit, if the operator set one: its name, `q` requests, per `w` seconds.', {
    examples: ['"key";q=50;w=1'],
  }),
  RateLimit: text(
    'What is left of the rate limit: `r` requests. `t`: the seconds until the next request is allowed, or, if one is allowed now, until the limit is full again.',
    {
      examples: ['"key";r=49;t=1'],
    },
  ),
  'Retry-After': {
    description: 'Retry after this number of seconds.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
} satisfies Record<string, Header>

const transferId = text('The transferId that the transfer has if it was made. For a batch, that of its first transfer.')
const batchIndex: Header = {
  description: 'The zero-based position of the item that was rejected. Absent if the error is not about one item.',
  schema: { type: 'integer', minimum: 0, maximum: 99 },
}
const batchIndexStatuses = [400, 404, 409, 422]

/** The headers that only this operation has with a status. */
function specialHeaders({ path, body }: Endpoint, status: number): Record<string, Header> {
  if (status === 504 && path.startsWith('/api/v1/transfer/')) return { 'X-Transfer-Id': transferId }
  const isBatch = body === createBatchBody
  return isBatch && batchIndexStatuses.includes(status) ? { 'X-Batch-Index': batchIndex } : {}
}

function headersOf(names: (keyof typeof headers)[]): Record<string, Header> {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}

const envelope = (success: boolean, code: JsonSchema, message: JsonSchema, data: JsonSchema): JsonSchema => ({
  type: 'object',
  required: ['version', 'timestamp', 'success', 'code', 'message', 'data'],
  properties: {
    version: { type: 'string', description: 'The version of the response format.', examples: [formatVersion] },
    timestamp: { type: 'integer', description: "The server's time, in milliseconds since the Unix epoch." },
    success: { type: 'boolean', const: success },
    code: { type: 'string', ...code },
    message: { type: 'string', ...message },
    data,
    ...(!success && {
      detail: {
        type: 'string',
        description: 'What is wrong and how to fix it, if the request asks for a language.',
      },
    }),
  },
})

/** When the examples were recorded. */
const recordedAt = Date.parse('2026-11-22T00:20:20.000Z')
const example = (success: boolean, code: string, message: string, data: unknown) => ({
  version: formatVersion,
  timestamp: recordedAt,
  success,
  code,
  message,
  data,
})

/** The envelope of all failures, with any code. */
export const failureSchema = envelope(
  false,
  { description: 'The error code. Treat one that you do not know by its HTTP status.', examples: ['S012'] },
  { description: 'The symbolic name of the code.', examples: ['INVALID_PARAMETER'] },
  { type: 'null' },
)

function successResponse({ title, answer, example: { data } }: Endpoint): Response {
  return {
    description: `Success: ${title}.`,
    headers: headersOf(['X-Request-Id', 'Cache-Control', 'RateLimit-Policy', 'RateLimit']),
    content: {
      'application/json': {
        schema: envelope(true, { const: '2000' }, { const: 'SUCCESS' }, refTo(answer)),
        example: example(true, '2000', 'SUCCESS', data),
      },
    },
  }
}

/** The responses of an endpoint, by status. */
export function responsesOf(endpoint: Endpoint): Record<string, Response | { $ref: string }> {
  const failures = byStatus(errorsOf(endpoint)).map(([status, codes]) => {
    const special = specialHeaders(endpoint, status)
    const isCommon = Object.keys(special).length === 0 && String(codes) === String(codesOfCommon[status])
    if (isCommon) return [status, { $ref: `#/components/responses/${commonNames[status]}` }]
    const response = failureResponse(status, codes)
    return [status, { ...response, headers: { ...response.headers, ...special } }]
  })
  return Object.fromEntries([[200, successResponse(endpoint)], ...failures])
}

/** The responses that several endpoints share. */
export function commonResponses(): Record<string, Response> {
  return Object.fromEntries(
    Object.entries(commonNames).map(([status, name]) => [
      name,
      failureResponse(Number(status), codesOfCommon[status]!),
    ]),
  )
}

const commonNames: Record<string, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'WorkspaceNotFound',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
  504: 'OutcomeUnknown',
}
const codesOfCommon: Record<string, ErrorCode[]> = Object.fromEntries(byStatus([...commonErrors, ...commandErrors]))

function failureResponse(status: number, codes: readonly ErrorCode[]): Response {
  const messages = [...new Set(codes.map(code => errorTable[code].message))]
  const isRetriable = status === 429 || status === 503
  return {
    description: codes.map(code => `\`${code}\` ${errorTable[code].when}`).join('\n\n'),
    headers: headersOf([
      'X-Request-Id',
      'Cache-Control',
      'Content-Language',
      'RateLimit-Policy',
      'RateLimit',
      ...(isRetriable ? (['Retry-After'] as const) : []),
    ]),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Failure' }],
          properties: { code: { enum: [...codes] }, message: { enum: messages } },
        },
        examples: Object.fromEntries(
          codes.map(code => [code, { value: example(false, code, errorTable[code].message, null) }]),
        ),
      },
    },
  }
}
