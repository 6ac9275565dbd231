/** One signed request, as any client would send it, and all that can become of it. */
import { randomUUID } from 'node:crypto'
import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/gateway/signing'

export type Signer = { apiKey: string; apiSecret: string }

/** `unsent`: nothing listened. `lost`: it was sent, and no answer came, or none in time. */
export type Answer =
  | { kind: 'answer'; code: string; data: Record<string, unknown> | null; retryAfterMs: number }
  | { kind: 'unsent' }
  | { kind: 'lost' }

export async function send(
  { apiKey, apiSecret }: Signer,
  baseUrl: string,
  method: 'GET' | 'POST',
  target: string,
  timeoutMs: number,
  body?: object,
): Promise<Answer> {
  const text = body ? JSON.stringify(body) : ''
  const timestamp = String(Math.floor(Date.now() / 1000))
  const nonce = randomUUID()
  const path = target.split('?', 1)[0]!
  const message = canonicalMessage({ method, path, timestamp, nonce, bodyHash: bodyHash(text) })
  try {
    const response = await fetch(baseUrl + target, {
      method,
      headers: {
        'X-Api-Key': apiKey,
        'X-Timestamp': timestamp,
        'X-Nonce': nonce,
        'X-Signature': sign(apiSecret, message),
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
