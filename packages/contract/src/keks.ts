import { z } from 'zod'

/** Under which key-encryption keys (KEKs) API secrets are kept. A key within the grace of a rotation has two secrets. */
export const kekStatus = z.object({
  /** The first one on this core's ring: what it encrypts, it encrypts under this one. */
  active: z.string(),
  keks: z.array(z.object({ kek: z.string(), secrets: z.int(), onRing: z.boolean() })),
})
export type KekStatus = z.infer<typeof kekStatus>

/** One step of a rotation: encrypts the secrets of up to `limit` keys after `after` anew. */
export const rewrapInput = z.object({
  /** What the caller takes for the active one. A core that has another one first refuses. */
  to: z.string(),
  after: z.string().optional(),
  limit: z.int().min(1).max(500).default(100),
})
/** `rewrapped` counts secrets. `unreadable`: keys whose secrets open under no key on the ring. `next`: what to give as `after`; null at the end. */
export const rewrapStep = z.object({
  rewrapped: z.int(),
  unreadable: z.array(z.string()),
  next: z.string().nullable(),
})
