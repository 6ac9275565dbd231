import type { IncomingMessage, ServerResponse } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import {
  type AddressBlock,
  type BodyReader,
  hasBody,
  type Log,
  networkOf,
  type SampledLog,
} from '@workspace-wallet/runtime'
import type { Denials } from '../observability/denials.ts'
import type { Refusals } from '../observability/refusals.ts'
import { checkAddress } from './address-and-scope.ts'
import type { Key, KeyCache } from './keys/key-cache.ts'
import type { ConcurrencyLimit } from './limits/concurrency-limit.ts'
import type { FailureLimit } from './limits/failure-limit.ts'
import { type Rate, setRateFields, type Tally } from './limits/rate.ts'
import type { MistakeSearch } from './mistake-search.ts'
import type { NonceStore } from './nonces/store.ts'
import { emptyBody, readRawBody } from './raw-body.ts'
import { checkNonceAndSignature, readNonce } from './signature.ts'
import { bodyHash } from './signing/index.ts'
import { checkTimestamp } from './timestamp.ts'
import { findUsableKey } from './usable-key.ts'

export type PipelineDependencies = {
  keys: KeyCache
  nonces: NonceStore
  mistakes: MistakeSearch
  /** Reads bodies, within the memory for those of requests in progress. */
  bodies: BodyReader
  /** The operator's limit of a body. */
  bodyLimitBytes: number
  concurrency: ConcurrencyLimit
  trustedProxies: readonly AddressBlock[]
  /** The limits that the operator set: requests of an API key, failed authentications of an address. */
  keyRate?: Rate | undefined
  failures?: FailureLimit | undefined
  /** The current time, in milliseconds since the Unix epoch. */
  now: () => number
  denials: Denials
  refusals: Pick<Refusals, 'record'>
  log: Log
  /** For lines that anybody can cause. */
  sampled: SampledLog
}

/**
 * An authenticated request: its API key and its body. `leave`: call it once the request has been handled. Until then it counts as one of
 * its workspace, and its body takes memory for bodies.
 */
export type SignedRequest = { key: Key; body: Buffer; leave: () => void }

/**
 * Steps 1 to 7 of section 5.3, in order. The first failure ends the pipeline. Each endpoint checks step 8, the scope,
 * itself (see http/app.ts).
 *
 * @param endpointLimitBytes the limit of a body, if the endpoint needs a higher one than the operator's
 * @throws DomainError with the code of the failed step; S013 if the body is too large, S002 without the nonce store
 *   or if the gateway handles too many requests, S029 above a limit that the operator set
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

/** Called before the nonce store works for a request that is invalid. */
type CheckFailureLimit = () => void

async function runSteps(
  dependencies: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  bodyLimitBytes: number,
  checkFailureLimit?: CheckFailureLimit,
): Promise<SignedRequest> {
  const { keys, bodies, concurrency, now } = dependencies
  const key = await findUsableKey(keys, request, now) // steps 1, 2, 3
  const timestamp = checkTimestamp(request, now()) // step 4
  const checkSigned = async (unsigned: Unsigned, release?: () => void): Promise<SignedRequest> => {
    const exit = concurrency.enter(key.workspaceId)
    try {
      await runSignedSteps(dependencies, request, response, unsigned, checkFailureLimit)
      const signed: SignedRequest = {
        key: unsigned.key,
        body: unsigned.body,
        leave() {
          exit()
          // The request lives until the client has read the response.
          signed.body = emptyBody
          release?.()
        },
      }
      return signed
    } catch (error) {
      exit()
      throw error
    }
  }
  if (!hasBody(request)) return checkSigned({ key, timestamp, body: emptyBody })
  const { bytes: body, release } = await readRawBody(bodies, request, bodyLimitBytes)
  try {
    // A body can take seconds. Meanwhile the key may have been disabled, and a nonce must not outlive its storage time.
    const usableKey = await findUsableKey(keys, request, now)
    return await checkSigned({ key: usableKey, timestamp: checkTimestamp(request, now()), body }, release)
  } catch (error) {
    release()
    throw error
  }
}

/** What steps 1 to 4 have found, and the body. */
type Unsigned = { key: Key; timestamp: string; body: Buffer }

/** Steps 5 to 7. */
async function runSignedSteps(
  { keys, nonces, mistakes, keyRate, now }: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  { key, timestamp, body }: Unsigned,
  checkFailureLimit?: CheckFailureLimit,
): Promise<void> {
  const nonce = readNonce(request) // step 5
  const parts = { method: request.method!, path: request.target.path, timestamp, nonce, bodyHash: bodyHash(body) }
  const stores = { nonces, mistakes }
  const { tally } = await checkNonceAndSignature(stores, key, request, { parts, body }, now(), checkFailureLimit) // steps 5, 6
  if (tally) checkKeyRate(response, keyRate!, tally)
  checkAddress(key, request.clientAddress) // step 7
  keys.markUsed(key.apiKey, now())
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
