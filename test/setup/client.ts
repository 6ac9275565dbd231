import { signedHeaders as authenticationHeaders, type Credentials as Signer } from '@workspace-wallet/client'
import { describeRunningPrograms } from '../../cli/processes/program.ts'

export type Credentials = Signer & { baseUrl: string }

export type Envelope = {
  version: string
  timestamp: number
  success: boolean
  code: string
  message: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of an answer
  data: any
  detail?: string
}

export type Answer = { status: number; headers: Headers; body: Envelope }

export type Overrides = {
  /** In seconds; by default the current time. */
  timestamp?: string
  /** By default a new one. */
  nonce?: string
  /** Set after signing; null removes a header. */
  headers?: Record<string, string | null>
  /** Signs with another secret than that of the key. */
  secret?: string
}

/** All headers of section 5.1 for one request. */
export async function signedHeaders(
  { apiKey, apiSecret }: Credentials,
  method: string,
  target: string,
  body: string | undefined,
  overrides: Overrides = {},
): Promise<Record<string, string>> {
  const signer = { apiKey, apiSecret: overrides.secret ?? apiSecret }
  const { timestamp, nonce } = overrides
  const headers: Record<string, string> = await authenticationHeaders(signer, {
    method,
    target,
    body,
    timestamp,
    nonce,
  })
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  for (const [name, value] of Object.entries(overrides.headers ?? {}))
    if (value === null) delete headers[name]
    else headers[name] = value
  return headers
}

/** Every answer takes seconds at most. This only ends what hangs. */
const hangMs = 60_000

/** Signs and sends one request. @throws Error after a minute without an answer */
export async function call(
  credentials: Credentials,
  method: string,
  target: string,
  body?: unknown,
  overrides: Overrides = {},
): Promise<Answer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(credentials.baseUrl + target, {
    method,
    signal: AbortSignal.timeout(hangMs),
    headers: await signedHeaders(credentials, method, target, text, overrides),
    ...(text === undefined ? {} : { body: text }),
  }).catch(error => {
    if (error.name !== 'TimeoutError') throw error
    throw new Error(`no answer to ${method} ${credentials.baseUrl}${target}\n${describeRunningPrograms()}`)
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Envelope }
}

export const createPath = '/api/v1/transfer/command/create'
export const batchPath = '/api/v1/transfer/command/batch'
