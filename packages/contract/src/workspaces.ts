import { z } from 'zod'
import { displayName, reason } from './text.ts'

/** `place`: the number of the place that gets the workspace, from 0; by default the emptiest one. */
export const createWorkspaceInput = z.object({ name: displayName, place: z.int().min(0).optional() })

/** `force` deletes a workspace whose wallets hold money. History and balances are kept. */
export const deleteWorkspaceInput = z.object({
  workspaceId: z.string(),
  force: z.boolean().default(false),
  reason: reason.optional(),
})

/** A member of a workspace: the ID of a person or program in the operator's own directory. */
export const userId = z
  .string()
  .regex(/^[\w.@:+-]{1,128}$/, 'a user ID has 1 to 128 characters: letters, digits, and . _ @ : + -')

/** `reason` is for the audit. */
export const memberInput = z.object({ workspaceId: z.string(), userId, reason: reason.optional() })
