import { z } from 'zod'

export const kekStatusInput = z.object({ after: z.string().optional() })

/**
 * How many secrets each key-encryption key (KEK) encrypts, of up to 100 API keys or webhooks after `after`. An object has two secrets
 * during the grace period after its secret was rotated.
 */
export const kekStatusStep = z.object({
  /** The first KEK on this core's key ring, which encrypts new secrets. */
  active: z.string(),
  keks: z.array(z.object({ kek: z.string(), secrets: z.int(), onRing: z.boolean() })),
  /**
   * API keys and webhooks with secrets whose rows were modified or written outside the service. Their secrets do not count: nothing
   * uses them.
   */
  modified: z.array(z.object({ id: z.string(), workspaceId: z.string() })),
  /** The number of API keys or webhooks that were read. */
  objects: z.int(),
  /** The `after` of the next step; null after the last one. */
  next: z.string().nullable(),
})
export type KekStatusStep = z.infer<typeof kekStatusStep>

/** One step of a KEK rotation: re-encrypts the secrets of up to `limit` API keys or webhooks after `after`. */
export const rewrapInput = z.object({
  /** The expected active KEK. Core rejects the step if its own is another one. */
  to: z.string(),
  after: z.string().optional(),
  limit: z.int().min(1).max(500).default(100),
})
/**
 * `rewrapped`: number of secrets. `unreadable`: API keys and webhooks with secrets that no KEK on the key ring decrypts, without modified rows. `next`: the
 * `after` of the next step; null after the last one.
 */
export const rewrapStep = z.object({
  rewrapped: z.int(),
  unreadable: z.array(z.string()),
  next: z.string().nullable(),
})
