import { randomUUID } from 'node:crypto'
import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/gateway/signing'

export type Credentials = { baseUrl: string; apiKey: string; apiSecret: string }

export type Envelope = {
  version: string
  timestamp: number
  success: boolean
  code: string
  message: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what the server sent
  data: any
  detail?: string
}

export type Answer = { status: number; headers: Headers; body: Envelope }

export type Overrides = {
  /** Sent as they are; null leaves one out. Applied after signing. */
  headers?: Record<string, string | null>
  /** What is signed, where it differs from what is sent. */
  signed?: Partial<Parameters<typeof canonicalMessage>[0]>
  timestamp?: string
  nonce?: string
  secret?: string
}

/** The headers of section 5.1 for one request. */
export function signedHeaders(
  { apiKey, apiSecret }: Credentials,
  method: string,
  target: string,
  body: string | undefined,
  overrides: Overrides = {},
): Record<string, string> {
  const timestamp = overrides.timestamp ?? String(Math.floor(Date.now() / 1000))
  const nonce = overrides.nonce ?? randomUUID()
  const message = canonicalMessage({
    method,
    path: target.split('?', 1)[0]!,
    timestamp,
    nonce,
    bodyHash: bodyHash(body ?? ''),
    ...overrides.signed,
  })
  const headers: Record<string, string> = {
    'X-Api-Key': apiKey,
    'X-Timestamp': timestamp,
    'X-Nonce': nonce,
    'X-Signature': sign(overrides.secret ?? apiSecret, message),
  }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  for (const [name, value] of Object.entries(overrides.headers ?? {}))
    if (value === null) delete headers[name]
    else headers[name] = value
  return headers
}

/** Signs and sends one request. */
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
    headers: signedHeaders(credentials, method, target, text, overrides),
    ...(text === undefined ? {} : { body: text }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Envelope }
}

export const createPath = '/api/v1/transfer/command/create'
