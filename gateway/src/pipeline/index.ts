import type { IncomingMessage } from 'node:http'
import type { Key, KeyDirectory } from '../keys/directory.ts'
import type { Log } from '../log.ts'
import type { NonceStore } from '../nonces/store.ts'
import { bodyHash } from '../signing/index.ts'
import { checkAddress } from './access.ts'
import { type AddressBlock, clientAddress } from './addresses.ts'
import { readBody } from './body.ts'
import { findUsableKey } from './key.ts'
import type { Target } from './request.ts'
import { checkNonceAndSignature, readNonce } from './signature.ts'
import { checkTimestamp } from './timestamp.ts'

/** What the steps work with. `now` is the one clock, in milliseconds since the Unix epoch. */
export type Edge = {
  keys: KeyDirectory
  nonces: NonceStore
  bodyLimitBytes: number
  trustedProxies: readonly AddressBlock[]
  now: () => number
  log: Log
}

/** A request that has passed: whose it is, where it came from, and what it carries. */
export type SignedRequest = { key: Key; address: string; body: Buffer }

/**
 * The pipeline of section 5.3, in its order: the first failure ends it. Step 8, the scope, follows at the route,
 * which declares it (see routes/index.ts).
 *
 * @throws DomainError with the code of the step that failed
 */
export async function authenticate(edge: Edge, request: IncomingMessage, target: Target): Promise<SignedRequest> {
  let found = findUsableKey(edge.keys, request, edge.now) // 1, 2, 3
  let key = found instanceof Promise ? await found : found
  checkTimestamp(request, edge.now()) // 4
  const reading = readBody(request, edge.bodyLimitBytes)
  const body = reading instanceof Promise ? await reading : reading
  if (body !== reading) {
    // A body may dawdle: a key that was disabled meanwhile is not served because its headers came in time.
    found = findUsableKey(edge.keys, request, edge.now)
    key = found instanceof Promise ? await found : found
  }
  const nonce = readNonce(request) // 5
  // A body may dawdle: the nonce must not be claimed later than it is remembered.
  const timestamp = checkTimestamp(request, edge.now())
  const parts = { method: request.method!, path: target.path, timestamp, nonce, bodyHash: bodyHash(body) }
  await checkNonceAndSignature(edge.nonces, key, request, parts, edge.now(), edge.log) // 5, 6
  const address = clientAddress(
    request.socket.remoteAddress ?? '',
    request.headers['x-forwarded-for'] as string | undefined,
    edge.trustedProxies,
  )
  checkAddress(key, address) // 7
  edge.keys.markUsed(key.apiKey, edge.now())
  return { key, address, body }
}
