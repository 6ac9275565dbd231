import { randomUUID } from 'node:crypto'
import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/gateway/signing'

export type Signer = { apiKey: string; apiSecret: string }

type Options = {
  /** In seconds; by default the current time. */
  timestamp?: string
  /** By default a new one. */
  nonce?: string
  /** What is signed, where it differs from what is sent. */
  signed?: Partial<Parameters<typeof canonicalMessage>[0]>
}

/** The authentication headers of one request (section 5.1 of the specification). `target` may have a query. */
export function signedHeaders(
  { apiKey, apiSecret }: Signer,
  method: string,
  target: string,
  body: string | Buffer = '',
  { timestamp = String(Math.floor(Date.now() / 1000)), nonce = randomUUID(), signed }: Options = {},
): Record<string, string> {
  const path = target.split('?', 1)[0]!
  const message = canonicalMessage({ method, path, timestamp, nonce, bodyHash: bodyHash(body), ...signed })
  return {
    'X-Api-Key': apiKey,
    'X-Timestamp': timestamp,
    'X-Nonce': nonce,
    'X-Signature': sign(apiSecret, message),
  }
}
