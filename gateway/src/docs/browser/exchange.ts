import { bodyHash, type Credentials, canonicalMessage, signedHeaders } from '@workspace-wallet/client/signing'

/** The envelope of section 2.1. */
export type Envelope = {
  timestamp: number
  success: boolean
  code: string
  message: string
  data: unknown
  detail?: string
}

/** A request that was sent, and its response. */
export type Exchange = {
  method: string
  target: string
  sentHeaders: Record<string, string>
  body: string | undefined
  canonicalMessage: string
  status: number
  statusText: string
  headers: Headers
  /** The body of the response as received. */
  text: string
  /** Undefined if something other than the gateway answered. */
  envelope: Envelope | undefined
  milliseconds: number
}

/** The server's clock minus this machine's, in milliseconds. 0 until a response shows that they differ. */
let clockOffsetMs = 0
/** A smaller change of the offset does not explain GA2013. */
const toleranceMs = 30_000

/**
 * Signs a request and sends it to the server that the page came from. If the clock of this machine is wrong, it signs the
 * request again with the server's time and sends it once more.
 *
 * @throws TypeError if the server cannot be reached
 */
export async function exchange(
  credentials: Credentials,
  method: string,
  target: string,
  body?: string,
): Promise<Exchange> {
  const first = await exchangeOnce(credentials, method, target, body)
  if (first.envelope?.code !== 'GA2013') return first
  const offsetMs = first.envelope.timestamp - Date.now()
  if (Math.abs(offsetMs - clockOffsetMs) < toleranceMs) return first
  clockOffsetMs = offsetMs
  return exchangeOnce(credentials, method, target, body)
}

async function exchangeOnce(
  credentials: Credentials,
  method: string,
  wanted: string,
  body: string | undefined,
): Promise<Exchange> {
  // The browser sends the target in this form, and the signature is that of the path as sent.
  const { pathname, search } = new URL(wanted, location.origin)
  const target = pathname + search
  const timestamp = String(Math.floor((Date.now() + clockOffsetMs) / 1000))
  const signed = await signedHeaders(credentials, { method, target, body, timestamp })
  const sentHeaders: Record<string, string> = { ...signed, 'X-LOCALE': 'en-US' }
  if (body !== undefined) sentHeaders['Content-Type'] = 'application/json'
  const startedAt = performance.now()
  const response = await fetch(target, {
    method,
    headers: sentHeaders,
    ...(body === undefined ? {} : { body }),
    credentials: 'omit',
    cache: 'no-store',
    redirect: 'error',
  })
  const text = await response.text()
  return {
    method,
    target,
    sentHeaders,
    body,
    canonicalMessage: canonicalMessage({
      method,
      path: pathname,
      timestamp,
      nonce: signed['X-Nonce'],
      bodyHash: await bodyHash(body ?? ''),
    }),
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
    text,
    envelope: parseEnvelope(text),
    milliseconds: Math.round(performance.now() - startedAt),
  }
}

function parseEnvelope(text: string): Envelope | undefined {
  try {
    const value = JSON.parse(text) as Partial<Envelope> | null
    return typeof value?.code === 'string' ? (value as Envelope) : undefined
  } catch {
    return undefined
  }
}
