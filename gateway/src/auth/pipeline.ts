import type { IncomingMessage, ServerResponse } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import type { AddressBlock, Log, SampledLog } from '@workspace-wallet/runtime'
import { networkOf } from '../network/client-address.ts'
import type { Denials } from '../observability/denials.ts'
import { checkAddress } from './address-and-scope.ts'
import type { Key, KeyCache } from './keys/key-cache.ts'
import type { FailureLimit } from './limits/failure-limit.ts'
import { type Rate, setRateFields, type Tally } from './limits/rate.ts'
import type { MistakeSearch } from './mistake-search.ts'
import type { NonceStore } from './nonces/store.ts'
import { emptyBody, hasBody, readRawBody } from './raw-body.ts'
import { checkNonceAndSignature, readNonce } from './signature.ts'
import { bodyHash } from './signing/index.ts'
import { checkTimestamp } from './timestamp.ts'
import { findUsableKey } from './usable-key.ts'

export type PipelineDependencies = {
  keys: KeyCache
  nonces: NonceStore
  mistakes: MistakeSearch
  /** The operator's limit of a body. */
  bodyLimitBytes: number
  trustedProxies: readonly AddressBlock[]
  /** The limits that the operator set: requests of an API key, failed authentications of an address. */
  keyRate?: Rate | undefined
  failures?: FailureLimit | undefined
  /** The current time, in milliseconds since the Unix epoch. */
  now: () => number
  denials: Denials
  log: Log
  /** For lines that anybody can cause. */
  sampled: SampledLog
}

/** An authenticated request: its API key and its body. */
export type SignedRequest = { key: Key; body: Buffer }

/**
 * Steps 1 to 7 of section 5.3, in order. The first failure ends the pipeline. Each endpoint checks step 8, the scope,
 * itself (see http/app.ts).
 *
 * @param endpointLimitBytes the limit of a body, if the endpoint needs a higher one than the operator's
 * @throws DomainError with the code of the failed step; S013 if the body is too large, S002 without the nonce store, S029
 *   above a limit that the operator set
 */
export async function authenticate(
  dependencies: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  endpointLimitBytes = 0,
): Promise<SignedRequest> {
  const bodyLimitBytes = Math.max(dependencies.bodyLimitBytes, endpointLimitBytes)
  const { failures } = dependencies
  if (!failures) return runSteps(dependencies, request, response, bodyLimitBytes)
  const network = networkOf(request.clientAddress)
  try {
    return await runSteps(dependencies, request, response, bodyLimitBytes, () => failures.check(network, response))
  } catch (error) {
    return failures.answer(error, network, response)
  }
}

/** @param checkFailureLimit called before the nonce store works for a request that is invalid */
async function runSteps(
  { keys, nonces, mistakes, keyRate, now }: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  bodyLimitBytes: number,
  checkFailureLimit?: () => void,
): Promise<SignedRequest> {
  let key = await findUsableKey(keys, request, now) // steps 1, 2, 3
  let timestamp = checkTimestamp(request, now()) // step 4
  let body: Buffer = emptyBody
  if (hasBody(request)) {
    body = await readRawBody(request, bodyLimitBytes)
    // A body can take seconds. Meanwhile the key may have been disabled, and a nonce must not outlive its storage time.
    key = await findUsableKey(keys, request, now)
    timestamp = checkTimestamp(request, now())
  }
  const nonce = readNonce(request) // step 5
  const parts = { method: request.method!, path: request.target.path, timestamp, nonce, bodyHash: bodyHash(body) }
  const stores = { nonces, mistakes }
  const { tally } = await checkNonceAndSignature(stores, key, request, { parts, body }, now(), checkFailureLimit) // steps 5, 6
  if (tally) checkKeyRate(response, keyRate!, tally)
  checkAddress(key, request.clientAddress) // step 7
  keys.markUsed(key.apiKey, now())
  return { key, body }
}

/**
 * The rate limit of an API key, which is not part of section 5.3. It follows the signature, so that every request that
 * would store a nonce counts, whatever its path. The nonce of a rejected request remains unused.
 *
 * @throws DomainError S029
 */
function checkKeyRate(response: ServerResponse, rate: Rate, tally: Tally): void {
  setRateFields(response, rate, tally)
  const { waitMs } = tally
  if (waitMs > 0) throw new DomainError('S029', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}
