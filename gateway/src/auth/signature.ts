import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { DomainError, isDomainError } from '@workspace-wallet/contract'
import { requestedLocale } from '../locales/requested-locale.ts'
import { header, headerFault } from './headers.ts'
import type { Key } from './keys/key-cache.ts'
import type { MistakeSearch } from './mistake-search.ts'
import type { Claim, NonceStore } from './nonces/store.ts'
import { noncePattern } from './signing/header-patterns.ts'
import { canonicalMessage, type SignedParts, sign } from './signing/index.ts'

/** The padded Base64 of 32 bytes. */
const signaturePattern = /^[A-Za-z0-9+/]{43}=$/

/** The first half of step 5 of section 5.3: the text of X-Nonce, if it is well-formed. */
export function readNonce(request: IncomingMessage): string {
  const nonce = header(request, 'x-nonce')
  if (!noncePattern.test(nonce))
    throw new DomainError('GA2013', { header: 'X-Nonce', reason: headerFault(request, 'X-Nonce') })
  return nonce
}

/**
 * Steps 5 and 6 of section 5.3: the nonce is new, and the signature matches. Clients see the errors in this order. The
 * signature is checked first nevertheless, and only a valid one claims the nonce, so that nobody without the secret can use
 * up nonces of a client. This takes one round trip to the nonce store.
 *
 * A request that asks for a sentence also gets the name of the mistake in its signature, if it is a known one.
 *
 * @param checkFailureLimit called before the nonce store is asked about a request with an invalid signature
 * @throws DomainError GA2013 for a used nonce, GA2012 for an invalid signature, S002 without the nonce store
 */
export async function checkNonceAndSignature(
  { nonces, mistakes }: { nonces: NonceStore; mistakes: MistakeSearch },
  key: Key,
  request: IncomingMessage,
  { parts, body }: { parts: SignedParts; body: Buffer },
  nowMs: number,
  checkFailureLimit?: () => void,
): Promise<Claim> {
  const signature = header(request, 'x-signature')
  const isValid = isValidSignature(key, canonicalMessage(parts), signature, nowMs)
  const timestamp = Number(parts.timestamp)
  if (!isValid) checkFailureLimit?.()
  const claim = await (isValid
    ? nonces.claim(key.apiKey, parts.nonce, timestamp)
    : nonces.isUsed(key.apiKey, parts.nonce, timestamp).then(isUsed => ({ isNew: !isUsed }))
  ).catch(throwUnavailable)
  if (!claim.isNew) throw new DomainError('GA2013', { header: 'X-Nonce', reason: 'USED' })
  if (isValid) return claim
  const mistake = requestedLocale(request.headers) && mistakes.find(key, request, parts, body, nowMs)
  const reason = signaturePattern.test(signature) ? 'DIFFERENT' : headerFault(request, 'X-Signature')
  const fault = { header: 'X-Signature' as const, ...(mistake && { mistake }) }
  throw new DomainError('GA2012', reason === 'DIFFERENT' ? { ...fault, reason, seen: parts } : { ...fault, reason })
}

/**
 * Compares a signature with that of every secret, each in constant time, so that the response time does not show which
 * secret matched.
 */
function isValidSignature(key: Key, message: string, signature: string, nowMs: number): boolean {
  if (!signaturePattern.test(signature)) return false
  const given = Buffer.from(signature, 'latin1')
  let isValid = false
  for (const secret of key.secrets) {
    const isEqual = timingSafeEqual(Buffer.from(sign(secret.key, message), 'latin1'), given)
    if (isEqual && secret.validUntilMs > nowMs) isValid = true
  }
  return isValid
}

/** Without a response of the nonce store, a request fails. The store logs why. */
function throwUnavailable(error: unknown): never {
  throw isDomainError(error) ? error : new DomainError('S002', { retryAfterSeconds: 1 })
}
