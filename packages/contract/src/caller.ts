import { z } from 'zod'
import { hasMintedForm, type Id, type IdKind } from './ids.ts'
import { plainText } from './text.ts'

/**
 * On whose behalf an internal caller acts. Core stores it with each transfer. For a gateway token, core also checks that
 * the API key belongs to the workspace and may make the call.
 */
export const caller = z.object({
  /** The API key (`ak_…`) that signed the public request. Required with a gateway token. */
  apiKey: plainText(64).optional(),
  /** The ID of the request in the gateway's log, core's log and the ledger. */
  requestId: plainText(64).min(1),
  /** The client's IP address as the gateway determined it. */
  address: plainText(64).optional(),
})
export type Caller = z.infer<typeof caller>

/** What the input of every procedure on a workspace's resources extends. */
export const workspaceCall = z.object({ workspaceId: z.string(), caller })
export type WorkspaceCall = z.infer<typeof workspaceCall>

/** What the input of every command that changes the ledger extends. */
export const commandCall = workspaceCall.extend({
  /** True if the command may have been sent before: core then looks up the ID of the input first. */
  resend: z.boolean().optional(),
  /**
   * How long the caller waits, in milliseconds. Core does not start the command after that, and never executes it later
   * than `postingGraceMs` after that.
   */
  budgetMs: z.int().min(1).max(60_000).optional(),
})

const newIdForms = {
  transfer: 'must be a new ID: trf_ and a UUIDv7 whose last bit is 0',
  hold: 'must be a new ID: hld_ and a UUIDv7',
} as const satisfies Partial<Record<IdKind, string>>

/**
 * The ID of what a command makes, if the caller generates it, with `mintId`. Any other UUID could be that of another event or flow (see
 * docs/decisions/0005-ids.md), or the nil UUID, which no record has.
 */
export function newIdOf<Kind extends keyof typeof newIdForms>(kind: Kind): z.ZodType<Id<Kind>, string> {
  return z
    .string()
    .refine(text => hasMintedForm(kind, text), newIdForms[kind])
    .transform(text => text as Id<Kind>)
}

/**
 * How long after its budget a command can still be executed, in milliseconds: the time to get a connection and the lock of
 * the workspace, twice if the first commit was lost. After that, the caller can rely on its not being executed.
 */
export const postingGraceMs = 3_000
