import { z } from 'zod'
import { plainText } from './text.ts'

/**
 * On whose behalf an internal caller acts. It becomes the immutable actor of a transfer, and under a gateway
 * token it is what core checks the workspace against.
 */
export const caller = z.object({
  /** The API key (`ak_…`) that signed the public request. Required under a gateway token. */
  apiKey: plainText(64).optional(),
  /** One id for the request from the gateway's log to the ledger. */
  requestId: plainText(64).min(1),
  /** The client's address as the gateway saw it. */
  address: plainText(64).optional(),
})
export type Caller = z.infer<typeof caller>

/** What every procedure on a workspace's resources takes, beside the fields of its own. */
export const workspaceCall = z.object({ workspaceId: z.string(), caller })
export type WorkspaceCall = z.infer<typeof workspaceCall>
