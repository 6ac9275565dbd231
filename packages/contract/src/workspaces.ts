import { z } from 'zod'
import { displayName } from './text.ts'

export const createWorkspaceInput = z.object({ name: displayName })

/** `force` deletes although wallets hold money; their history and balances stay. */
export const deleteWorkspaceInput = z.object({ workspaceId: z.string(), force: z.boolean().default(false) })

/** The name of a person or program that belongs to a workspace, as the operator's own directory knows it. */
export const userId = z
  .string()
  .regex(/^[\w.@:+-]{1,128}$/, 'a user id is 1 to 128 letters, digits or any of . _ @ : + -')

export const memberInput = z.object({ workspaceId: z.string(), userId })
