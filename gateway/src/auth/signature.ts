import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { DomainError, isDomainError } from '@workspace-wallet/contract'
import type { Key } from './keys/key-cache.ts'
import type { Claim, NonceStore } from './nonces/store.ts'
import { header, headerFault } from './request-target.ts'
import { canonicalMessage, type SignedParts, sign } from './signing/index.ts'

/** 1 to 128 visible ASCII characters. */
const noncePattern = /^[!-~]{1,128}$/
/** The padded Base64 of 32 bytes. */
const signaturePattern = /^[A-Za-z0-9+/]{43}=$/

/** Step 5 of section 5.3, as far as the header alone tells: X-Nonce, as text. */
export function readNonce(request: IncomingMessage): string {
  const nonce = header(request, 'x-nonce')
  if (!noncePattern.test(nonce))
    throw new DomainError('GA2013', { header: 'X-Nonce', reason: headerFault(request, 'X-Nonce') })
  return nonce
}

/**
 * Steps 5 and 6: the nonce is new, and the signature matches. What a client sees is their order: GA2013 before GA2012.
 * What we do is one round trip: the signature is checked first, and only a valid one uses its nonce up, so that nobody
 * without the secret can burn a client's nonces.
 *
 * @param beforeLooking may refuse a wrong signature before the store is asked about its nonce
 */
export async function checkNonceAndSignature(
  nonces: NonceStore,
  key: Key,
  request: IncomingMessage,
  parts: SignedParts,
  nowMs: number,
  beforeLooking?: () => void,
): Promise<Claim> {
  const isValid = matches(key, canonicalMessage(parts), header(request, 'x-signature'), nowMs)
  const timestamp = Number(parts.timestamp)
  if (!isValid) beforeLooking?.()
  const claim = isValid
    ? await answered(nonces.claim(key.apiKey, parts.nonce, timestamp))
    : { isNew: !(await answered(nonces.isUsed(key.apiKey, parts.nonce, timestamp))) }
  if (!claim.isNew) throw new DomainError('GA2013', { header: 'X-Nonce', reason: 'USED' })
  if (!isValid) throw signatureFault(request, parts)
  return claim
}

/** Compares with every secret that is in force, each in constant time: which one matched does not show. */
function matches(key: Key, message: string, presented: string, nowMs: number): boolean {
  if (!signaturePattern.test(presented)) return false
  const given = Buffer.from(presented, 'latin1')
  let isValid = false
  for (const secret of key.secrets) {
    const isEqual = timingSafeEqual(Buffer.from(sign(secret.key, message), 'latin1'), given)
    if (isEqual && secret.validUntilMs > nowMs) isValid = true
  }
  return isValid
}

function signatureFault(request: IncomingMessage, parts: SignedParts): DomainError {
  if (!signaturePattern.test(header(request, 'x-signature')))
    return new DomainError('GA2012', { header: 'X-Signature', reason: headerFault(request, 'X-Signature') })
  return new DomainError('GA2012', { header: 'X-Signature', reason: 'DIFFERENT', seen: parts })
}

/** Without the store's word there is no verdict: the request fails, it never passes. The store logs why. */
async function answered<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    if (isDomainError(error)) throw error
    throw new DomainError('S002', { retryAfterSeconds: 1 })
  }
}
