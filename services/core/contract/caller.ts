import { z } from 'zod'

/**
 * On whose behalf an internal caller acts. It becomes the immutable actor of a transfer, and under a gateway
 * token it is what core checks the workspace against.
 */
export const caller = z.object({
  /** The API key (`ak_…`) that signed the public request. Required under a gateway token. */
  apiKey: z.string().max(64).optional(),
  /** One id for the request from the gateway's log to the ledger. */
  requestId: z.string().min(1).max(64),
  /** The client's address as the gateway saw it. */
  address: z.string().max(64).optional(),
})
export type Caller = z.infer<typeof caller>

/** What every procedure on a workspace's resources takes. */
export const workspaceCall = z.object({ workspaceId: z.string(), caller })
