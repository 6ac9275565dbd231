import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/client/signing'
import type { SigningMistake } from '@workspace-wallet/contract'
import { decodeSignature, encodeBase64 } from '../../auth/signing/encodings.ts'
import { candidatesOf, type ReceivedRequest } from '../../auth/signing/mistakes.ts'

/** A request as the reader describes it. */
export type SentRequest = Omit<ReceivedRequest, 'body' | 'bodyHash'> & {
  body: string
  /** The X-Signature that the client sent; empty if unknown. */
  signature: string
  apiSecret: string
}

/** What the server computes for a request, and how the client's signature compares. */
export type Diagnosis = {
  bodyHash: string
  message: string
  signature: string
  /** `UNKNOWN` without a signature of the client. */
  verdict: 'UNKNOWN' | 'MATCHES' | 'DIFFERS'
  /** Why it differs, if one of the known mistakes explains it. */
  mistake: SigningMistake | undefined
}

/** Computes the signature of a request, and finds the mistake in the one that the client sent. */
export async function diagnose(request: SentRequest): Promise<Diagnosis> {
  const { apiSecret, signature: sent } = request
  const hash = await bodyHash(request.body)
  const message = canonicalMessage({ ...request, bodyHash: hash })
  const signature = await sign(apiSecret, message)
  const isMatch = sent === signature
  return {
    bodyHash: hash,
    message,
    signature,
    verdict: sent === '' ? 'UNKNOWN' : isMatch ? 'MATCHES' : 'DIFFERS',
    mistake: sent === '' || isMatch ? undefined : await findMistake(request, hash, signature),
  }
}

async function findMistake(request: SentRequest, hash: string, expected: string): Promise<SigningMistake | undefined> {
  const sent = decodeSignature(request.signature)
  if (!sent) return undefined
  const value = encodeBase64(sent.bytes)
  if (value === expected) return sent.mistake ?? undefined
  for (const candidate of candidatesOf({ ...request, bodyHash: hash }, request.apiSecret)) {
    const { mistake, message, hashedBody, key = request.apiSecret } = candidate
    const end = hashedBody === undefined ? '' : await bodyHash(hashedBody)
    if ((await sign(key, message + end)) === value) return mistake
  }
  return undefined
}
