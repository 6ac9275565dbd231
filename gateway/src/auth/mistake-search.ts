import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { SigningMistake } from '@workspace-wallet/contract'
import { networkOf } from '@workspace-wallet/runtime'
import { header } from './headers.ts'
import type { Key } from './keys/key-cache.ts'
import { Buckets } from './limits/buckets.ts'
import { take } from './limits/rate.ts'
import { decodeSignature } from './signing/encodings.ts'
import { bodyHash, canonicalMessage, type SignedParts } from './signing/index.ts'
import { type Candidate, candidatesOf } from './signing/mistakes.ts'

/** Longer bodies are not serialized again. It bounds the work for one request. */
const maxBodyBytes = 8192
/** A key has its current secret, and its previous one during the grace period of a rotation. */
const maxSecrets = 2

/** Bounds the searches of a gateway: an attacker can cause them, and each takes up to 10 ms. */
const rate = { burst: 200, intervalMicros: 100_000 }
/** How many of them are for one network, so that one client cannot use up all. */
const networkRate = { burst: 20, intervalMicros: 1_000_000 }

/**
 * Finds the known mistake in a wrong signature. A match proves that the client has the secret, so the name of the mistake
 * reveals nothing to anybody else. All candidates are computed, and each is compared in constant time.
 */
export class MistakeSearch {
  /** The state of the rate limit: when its bucket is full again, in microseconds. */
  #fullAt = 0
  readonly #networks = new Buckets(networkRate)
  /** Whether one was made in this iteration of the event loop. Many nonces are answered at once, and searches must not delay others. */
  #hasSearched = false

  /** Undefined if the mistake is not a known one, or if this gateway has made too many searches, for this client or at all. */
  find(
    key: Key,
    request: IncomingMessage,
    parts: SignedParts,
    body: Buffer,
    nowMs: number,
  ): SigningMistake | undefined {
    const signature = decodeSignature(header(request, 'x-signature'))
    if (!signature || this.#hasSearched || !this.#isAllowed(networkOf(request.clientAddress))) return
    this.#hasSearched = true
    setImmediate(() => {
      this.#hasSearched = false
    })
    const { bytes, mistake } = signature
    const candidates = mistake
      ? () => [{ mistake, message: canonicalMessage(parts) }]
      : (secret: KeyObject) => candidatesOf(received(request, parts, body), secret.export().toString('utf8'))
    const matches = key.secrets
      .filter(({ validUntilMs }) => validUntilMs > nowMs)
      .slice(0, maxSecrets)
      .flatMap(secret => candidates(secret.key).filter(candidate => isMatch(candidate, secret.key, bytes)))
    return matches[0]?.mistake
  }

  #isAllowed(network: string): boolean {
    const nowMs = performance.now()
    const { fullAt, waitMs } = take(rate, this.#fullAt, nowMs * 1000)
    // In this order, a search is counted for its network only if it could be made, which limits the number of buckets.
    if (waitMs > 0 || this.#networks.take(network, nowMs).waitMs > 0) return false
    this.#fullAt = fullAt
    return true
  }
}

function received(request: IncomingMessage, parts: SignedParts, body: Buffer) {
  return {
    ...parts,
    apiKey: header(request, 'x-api-key'),
    query: request.target.query,
    host: header(request, 'host'),
    body: body.length > maxBodyBytes ? null : body.toString('utf8'),
  }
}

function isMatch({ message, hashedBody, key }: Candidate, secret: KeyObject, signature: Uint8Array): boolean {
  const hmac = createHmac('sha256', key ?? secret).update(message)
  if (hashedBody !== undefined) hmac.update(bodyHash(hashedBody))
  return timingSafeEqual(hmac.digest(), signature)
}
