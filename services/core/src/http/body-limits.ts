import { TRPCError } from '@trpc/server'
import { batchByteLimit } from '@workspace-wallet/contract'
import { countInJson } from '@workspace-wallet/runtime/count-in-json'
import { countInMessagePack, TooManyValues } from '@workspace-wallet/runtime/count-in-message-pack'
import type { Role } from '../trpc/service-token.ts'

/**
 * `elements`: values in a body, keys included. Decoding one takes about a hundred bytes, at most twice as many; validating it takes some
 * microseconds.
 */
export type BodyLimits = { bytes: number; elements: number }

/**
 * What a body may have at most. Gateways and services send batches of calls: 512 creates have 25,000 elements. The largest call of
 * an operator is a part of a checkpoint, with 21,000. That of a courier names all its leases, with 5,000.
 */
export const bodyLimits: Record<Role, BodyLimits> = {
  gateway: { bytes: batchByteLimit, elements: 32_768 },
  service: { bytes: batchByteLimit, elements: 32_768 },
  funding: { bytes: 262_144, elements: 16_384 },
  courier: { bytes: 131_072, elements: 8_192 },
  admin: { bytes: 1_048_576, elements: 32_768 },
  viewer: { bytes: 262_144, elements: 16_384 },
}

/** Maximum depth of values within values. The deepest input of a procedure has 8. */
export const maxDepth = 32

/** What the records in a batch of calls may have: its objects are calls and their inputs, which have few and short keys. */
const recordLimits = { records: 256, recordKeys: 64, recordKeyBytes: 31 }

function tooManyElements(elements: number): TRPCError {
  return new TRPCError({
    code: 'PAYLOAD_TOO_LARGE',
    message: `a request with this service token may have at most ${elements} values, and values within values at most ${maxDepth} deep`,
  })
}

/**
 * Counts the values in the body of a batch before it is decoded.
 *
 * @throws TRPCError PAYLOAD_TOO_LARGE; BAD_REQUEST if the body is not MessagePack, or contains what no call does
 */
export function countInBatch(body: Uint8Array, maxElements: number): number {
  try {
    return countInMessagePack(body, { values: maxElements, depth: maxDepth, ...recordLimits })
  } catch (error) {
    if (error instanceof TooManyValues) throw tooManyElements(maxElements)
    throw new TRPCError({ code: 'BAD_REQUEST', message: 'a batch must be calls in MessagePack', cause: error })
  }
}

/** Counts the values in a body of JSON before it is parsed. @throws TRPCError PAYLOAD_TOO_LARGE */
export function countInJsonBody(text: Uint8Array, maxElements: number): number {
  try {
    return countInJson(text, { values: maxElements, depth: maxDepth })
  } catch (error) {
    throw error instanceof TooManyValues ? tooManyElements(maxElements) : error
  }
}
