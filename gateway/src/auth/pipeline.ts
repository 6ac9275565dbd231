import type { IncomingMessage, ServerResponse } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import { type AddressBlock, clientAddress, networkOf } from '../network/addresses.ts'
import type { Denials } from '../observability/denials.ts'
import type { SampledLog } from '../observability/sampled-log.ts'
import { checkAddress } from './address-and-scope.ts'
import type { Key, KeyCache } from './keys/key-cache.ts'
import type { FailureLimit } from './limits/failure-limit.ts'
import { type Rate, setRateFields, type Tally } from './limits/rate.ts'
import type { NonceStore } from './nonces/store.ts'
import { readRawBody } from './raw-body.ts'
import { checkNonceAndSignature, readNonce } from './signature.ts'
import { bodyHash } from './signing/index.ts'
import { checkTimestamp } from './timestamp.ts'
import { findUsableKey } from './usable-key.ts'

/** What the steps work with. `now` is the one clock, in milliseconds since the Unix epoch. */
export type PipelineDependencies = {
  keys: KeyCache
  nonces: NonceStore
  bodyLimitBytes: number
  trustedProxies: readonly AddressBlock[]
  /** What an operator has limited: requests under a key, failed authentication of an address. */
  keyRate?: Rate | undefined
  failures?: FailureLimit | undefined
  now: () => number
  denials: Denials
  log: Log
  /** For what anybody can cause. */
  sampled: SampledLog
}

/** A request that has passed: whose it is, where it came from, and what it carries. */
export type SignedRequest = { key: Key; address: string; body: Buffer }

/**
 * The pipeline of section 5.3, in its order: the first failure ends it. Step 8, the scope, follows at the route,
 * which declares it (see api/endpoints.ts).
 *
 * @throws DomainError with the code of the step that failed; S029 over a limit that an operator set
 */
export async function authenticate(
  dependencies: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<SignedRequest> {
  const { failures } = dependencies
  if (!failures) return passSteps(dependencies, request, response)
  const network = networkOf(addressOf(dependencies, request))
  try {
    return await passSteps(dependencies, request, response, () => failures.check(network, response))
  } catch (error) {
    return failures.answer(error, network, response)
  }
}

/** @param beforeWork may refuse what would cost core or the nonce store work and is not known to be good */
async function passSteps(
  dependencies: PipelineDependencies,
  request: IncomingMessage,
  response: ServerResponse,
  beforeWork?: () => void,
): Promise<SignedRequest> {
  let found = findUsableKey(dependencies.keys, request, dependencies.now, beforeWork) // 1, 2, 3
  let key = found instanceof Promise ? await found : found
  checkTimestamp(request, dependencies.now()) // 4
  const reading = readRawBody(request, dependencies.bodyLimitBytes)
  const body = reading instanceof Promise ? await reading : reading
  if (body !== reading) {
    // A body may dawdle: a key that was disabled meanwhile is not served because its headers came in time.
    found = findUsableKey(dependencies.keys, request, dependencies.now)
    key = found instanceof Promise ? await found : found
  }
  const nonce = readNonce(request) // 5
  // A body may dawdle: the nonce must not be claimed later than it is remembered.
  const timestamp = checkTimestamp(request, dependencies.now())
  const parts = { method: request.method!, path: request.target.path, timestamp, nonce, bodyHash: bodyHash(body) }
  const { tally } = await checkNonceAndSignature(
    dependencies.nonces,
    key,
    request,
    parts,
    dependencies.now(),
    beforeWork,
  ) // 5, 6
  if (tally) checkLimit(response, dependencies.keyRate!, tally)
  const address = addressOf(dependencies, request)
  checkAddress(key, address) // 7
  dependencies.keys.markUsed(key.apiKey, dependencies.now())
  return { key, address, body }
}

/**
 * Not a step of section 5.3: it follows the signature, so that every request that costs a nonce counts, whatever it asks
 * for. The nonce of a request that is refused here was not used up.
 *
 * @throws DomainError S029
 */
function checkLimit(response: ServerResponse, rate: Rate, tally: Tally): void {
  setRateFields(response, rate, tally)
  const { waitMs } = tally
  if (waitMs > 0) throw new DomainError('S029', { retryAfterSeconds: Math.ceil(waitMs / 1000) })
}

/** The client's address, as far as it can be believed. */
export function addressOf({ trustedProxies }: PipelineDependencies, { socket, headers }: IncomingMessage): string {
  return clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'] as string | undefined, trustedProxies)
}
