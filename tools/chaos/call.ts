/** Sends one signed request as a client does. Every outcome is a value, not an exception. */
import { type Credentials, signedHeaders } from '@workspace-wallet/client'

/** `unsent`: the connection was refused. `lost`: the request was sent, and no response arrived in time. */
export type Answer =
  | { kind: 'answer'; code: string; data: Record<string, unknown> | null; retryAfterMs: number }
  | { kind: 'unsent' }
  | { kind: 'lost' }

export async function send(
  signer: Credentials,
  baseUrl: string,
  method: 'GET' | 'POST',
  target: string,
  timeoutMs: number,
  body?: object,
  /** By default the current time and a new nonce. */
  sent: { timestamp?: string; nonce?: string } = {},
): Promise<Answer> {
  const text = body ? JSON.stringify(body) : ''
  try {
    const response = await fetch(baseUrl + target, {
      method,
      headers: {
        ...(await signedHeaders(signer, { method, target, body: text, ...sent })),
        ...(body && { 'Content-Type': 'application/json' }),
      },
      ...(body && { body: text }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const { code, data } = (await response.json()) as { code: string; data: Record<string, unknown> | null }
    return { kind: 'answer', code, data, retryAfterMs: 1000 * Number(response.headers.get('retry-after') ?? 0) }
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    return { kind: code === 'ECONNREFUSED' ? 'unsent' : 'lost' }
  }
}
