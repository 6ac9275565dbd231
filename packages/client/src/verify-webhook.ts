/** Verifies deliveries of webhooks (Standard Webhooks 1.0) with Web Crypto, which Node and browsers have. */
import type { Event } from './records.ts'

export type WebhookToVerify = {
  /** The `whsec_…` of the webhook. During a rotation, pass both: a signature of either is enough. */
  secret: string | readonly string[]
  /** The headers of the request: those of `fetch`, or an object such as `request.headers` of Node and Express. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The body exactly as received, before anything parses it: its bytes, or their text. */
  body: Uint8Array | string
  /** The current time in milliseconds since the Unix epoch. Default: `Date.now()`. */
  now?: number | undefined
  /** How far `webhook-timestamp` may be from the current time. Default: 300. */
  toleranceSeconds?: number | undefined
}

/**
 * Why a delivery was rejected.
 *
 * - `HEADER_MISSING`: it has no `webhook-id`, `webhook-timestamp` or `webhook-signature`.
 * - `HEADER_INVALID`: a header is sent more than once, or has no valid value.
 * - `TIMESTAMP_TOO_OLD`, `TIMESTAMP_TOO_NEW`: outside the tolerance. An old delivery is being replayed, or a clock is wrong.
 * - `SIGNATURE_INVALID`: signed with another secret, or the body was changed, for example parsed and written again.
 * - `BODY_INVALID`: the signature is valid, but the body is not the event that `webhook-id` names.
 */
export type WebhookFault =
  | 'HEADER_MISSING'
  | 'HEADER_INVALID'
  | 'TIMESTAMP_TOO_OLD'
  | 'TIMESTAMP_TOO_NEW'
  | 'SIGNATURE_INVALID'
  | 'BODY_INVALID'

/** A delivery is not genuine. Answer 400 or 401, and apply nothing. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
  readonly fault: WebhookFault

  constructor(fault: WebhookFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/**
 * Verifies a delivery, and returns its event. The same event can be delivered several times: store its `eventId` or
 * `position` with its effects, and apply it once. Newer services may send other types of events: ignore them.
 *
 * @throws WebhookVerificationError if it is not genuine; `fault` says why
 * @throws TypeError if a secret or the body is not what this function takes: a mistake in the program that calls it
 */
export async function verifyWebhook({
  secret,
  headers,
  body,
  now = Date.now(),
  toleranceSeconds = 300,
}: WebhookToVerify): Promise<Event> {
  const keys = [secret].flat().map(keyBytesOf)
  if (keys.length === 0) throw new TypeError('secret must have at least one whsec_… of the webhook')
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new TypeError('body must be the bytes or the text of the request, exactly as received, not a parsed object')
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = signaturesOf(headerOf(headers, 'webhook-signature'))
  checkTimestamp(timestamp, now, toleranceSeconds)
  const signed = concatenated(`${id}.${timestamp}.`, body)
  if (!(await isSigned(signed, keys, signatures)))
    throw new WebhookVerificationError(
      'SIGNATURE_INVALID',
      'No signature is valid. Check that the secret is that of this webhook, and that the body is verified exactly as received.',
    )
  return eventOf(body, id)
}

const secretPrefix = 'whsec_'

/** @throws TypeError that does not contain the secret */
function keyBytesOf(secret: string): Uint8Array<ArrayBuffer> {
  const isSecret = typeof secret === 'string' && secret.startsWith(secretPrefix)
  const bytes = isSecret ? fromBase64(secret.slice(secretPrefix.length)) : null
  if (!bytes?.length)
    throw new TypeError(
      'secret must be the text that the service returned: whsec_ and base64. Check where it comes from',
    )
  return bytes
}

function headerOf(headers: WebhookToVerify['headers'], name: string): string {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers)
  const [value, ...others] = entries.flatMap(([key, values]) => (key.toLowerCase() === name ? (values ?? []) : []))
  if (!value)
    throw new WebhookVerificationError(
      'HEADER_MISSING',
      `The header ${name} is missing. Check that proxies on the way pass it on.`,
    )
  if (others.length > 0)
    throw new WebhookVerificationError('HEADER_INVALID', `The header ${name} was sent more than once.`)
  return value
}

/** The signatures of version 1. Other versions are ignored. */
function signaturesOf(header: string): Uint8Array<ArrayBuffer>[] {
  const signatures = header.split(' ').flatMap(each => {
    const [version, signature, ...rest] = each.split(',')
    const bytes = version === 'v1' && signature && rest.length === 0 ? fromBase64(signature) : null
    return bytes ?? []
  })
  if (signatures.length === 0)
    throw new WebhookVerificationError(
      'HEADER_INVALID',
      'The header webhook-signature has no signature of the form v1,BASE64.',
    )
  return signatures.slice(0, maxSignatures)
}

/** A delivery of the service has at most two. The limit bounds the work that a forged header can cause. */
const maxSignatures = 16

function checkTimestamp(timestamp: string, now: number, toleranceSeconds: number): void {
  if (!/^\d{1,15}$/.test(timestamp))
    throw new WebhookVerificationError('HEADER_INVALID', 'The header webhook-timestamp is not in whole seconds.')
  const ageSeconds = Math.floor(now / 1000) - Number(timestamp)
  if (Math.abs(ageSeconds) <= toleranceSeconds) return
  const [fault, direction]: [WebhookFault, string] =
    ageSeconds > 0 ? ['TIMESTAMP_TOO_OLD', 'ago'] : ['TIMESTAMP_TOO_NEW', 'in the future']
  throw new WebhookVerificationError(
    fault,
    `The delivery was sent ${Math.abs(ageSeconds)} seconds ${direction}, and at most ${toleranceSeconds} are accepted. Check the clock of this machine.`,
  )
}

/** Web Crypto compares in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  keys: Uint8Array<ArrayBuffer>[],
  signatures: Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  const { subtle } = globalThis.crypto
  for (const bytes of keys) {
    const key = await subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    for (const signature of signatures) if (await subtle.verify('HMAC', key, signature, signed)) return true
  }
  return false
}

function eventOf(body: Uint8Array | string, id: string): Event {
  const event = parsed(typeof body === 'string' ? body : new TextDecoder().decode(body))
  if (event?.eventId !== id)
    throw new WebhookVerificationError('BODY_INVALID', 'The body is not the event that webhook-id names.')
  return event
}

function parsed(text: string): Event | null {
  try {
    return JSON.parse(text) as Event | null
  } catch {
    return null
  }
}

function concatenated(head: string, body: Uint8Array | string): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const headBytes = encoder.encode(head)
  const bodyBytes = typeof body === 'string' ? encoder.encode(body) : body
  const all = new Uint8Array(headBytes.length + bodyBytes.length)
  all.set(headBytes)
  all.set(bodyBytes, headBytes.length)
  return all
}

/** Null if it is not base64. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), character => character.charCodeAt(0))
  } catch {
    return null
  }
}
