import { z } from 'zod'

/** How many secrets of API keys and webhooks each key-encryption key (KEK) encrypts. In the grace period of a rotation, there are two. */
export const kekStatus = z.object({
  /** The first KEK on this core's key ring, which encrypts new secrets. */
  active: z.string(),
  keks: z.array(z.object({ kek: z.string(), secrets: z.int(), onRing: z.boolean() })),
  /**
   * API keys and webhooks with secrets whose rows were modified or written outside the service: how many, and the first hundred.
   * Their secrets do not count: nothing uses them.
   */
  modified: z.object({ count: z.int(), rows: z.array(z.object({ id: z.string(), workspaceId: z.string() })) }),
})
export type KekStatus = z.infer<typeof kekStatus>

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
