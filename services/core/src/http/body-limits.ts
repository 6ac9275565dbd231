import { TRPCError } from '@trpc/server'
import { batchByteLimit } from '@workspace-wallet/contract'
import type { Role } from '../trpc/service-token.ts'

/** `elements`: values in a body, keys included. Decoding one takes up to a hundred bytes, validating it some microseconds. */
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

export function tooManyElements(elements: number): TRPCError {
  return new TRPCError({
    code: 'PAYLOAD_TOO_LARGE',
    message: `a request with this service token may have at most ${elements} values, and values within values at most ${maxDepth} deep`,
  })
}
