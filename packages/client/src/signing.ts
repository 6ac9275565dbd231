/**
 * The signature of section 5.2 of the specification, with Web Crypto, which Node and browsers have. Browsers offer it only
 * to pages from HTTPS and from localhost: on other pages, all functions except `canonicalMessage` throw.
 */

/** An API key and its secret. The secret signs requests and is never sent. */
export type Credentials = { apiKey: string; apiSecret: string }

/** The parts of the canonical message. */
export type SignedParts = {
  /** The HTTP method, in any case. */
  method: string
  /** The path as sent, percent-encoding unchanged, without the query string. */
  path: string
  /** The text of X-Timestamp: whole seconds since the Unix epoch. */
  timestamp: string
  /** The text of X-Nonce. */
  nonce: string
  /** See `bodyHash`. */
  bodyHash: string
}

/** A request as it is sent. */
export type RequestToSign = {
  method: string
  /** The path with its query string, exactly as sent. The query string is not signed. */
  target: string
  /** The exact bytes of the body, or their text, which is sent as UTF-8. Default: no body. */
  body?: Uint8Array | string | undefined
  /** Default: the time of this machine, in whole seconds. */
  timestamp?: string | undefined
  /** Default: a random UUID. */
  nonce?: string | undefined
}

/** The four headers that authenticate a request (section 5.1). */
export type SignedHeaders = {
  'X-Api-Key': string
  'X-Timestamp': string
  'X-Nonce': string
  'X-Signature': string
}

/** The SHA-256 of the bytes of a body, in 64 lower-case hexadecimal digits. Without a body: that of the empty string. */
export async function bodyHash(body: Uint8Array | string): Promise<string> {
  const digest = await webCrypto().subtle.digest('SHA-256', bytesOf(body))
  return Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** The five parts joined by LF, without a trailing one. */
export function canonicalMessage({ method, path, timestamp, nonce, bodyHash }: SignedParts): string {
  return `${method.toUpperCase()}\n${path}\n${timestamp}\n${nonce}\n${bodyHash}`
}

/**
 * The signature: the Base64 of the HMAC-SHA256 of the canonical message. The key is the API secret as UTF-8 bytes. Other
 * bytes as the key reproduce the mistake of another client.
 */
export async function sign(secret: Uint8Array | string, message: string): Promise<string> {
  const { subtle } = webCrypto()
  // Web Crypto rejects an empty key. HMAC pads a key with zeros, so that one zero byte is the same key as none.
  const keyBytes = bytesOf(secret === '' ? '\0' : secret)
  const key = await subtle.importKey('raw', keyBytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return btoa(String.fromCharCode(...new Uint8Array(await subtle.sign('HMAC', key, bytesOf(message)))))
}

/** Signs a request. Send it unchanged, and only once: each request needs a new nonce, retries too. */
export async function signedHeaders(
  { apiKey, apiSecret }: Credentials,
  { method, target, body = '', timestamp = String(Math.floor(Date.now() / 1000)), nonce = randomId() }: RequestToSign,
): Promise<SignedHeaders> {
  const path = target.split('?', 1)[0]!
  const message = canonicalMessage({ method, path, timestamp, nonce, bodyHash: await bodyHash(body) })
  return {
    'X-Api-Key': apiKey,
    'X-Timestamp': timestamp,
    'X-Nonce': nonce,
    'X-Signature': await sign(apiSecret, message),
  }
}

/** A random UUID. */
export function randomId(): string {
  return webCrypto().randomUUID()
}

/** The cast excludes views of shared memory, which Web Crypto does not accept. */
function bytesOf(body: Uint8Array | string): Uint8Array<ArrayBuffer> {
  return typeof body === 'string' ? new TextEncoder().encode(body) : (body as Uint8Array<ArrayBuffer>)
}

function webCrypto(): typeof crypto {
  const { subtle } = globalThis.crypto as Partial<typeof crypto>
  if (!subtle)
    throw new Error(
      'This page cannot sign requests, because browsers offer Web Crypto only to pages from https: and from localhost. Open the page over HTTPS.',
    )
  return globalThis.crypto
}
