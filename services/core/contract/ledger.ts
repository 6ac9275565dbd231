import { z } from 'zod'

/** A broken invariant, with the ids of the rows that break it. */
export const violation = z.object({
  rule: z.string(),
  message: z.string(),
  ids: z.record(z.string(), z.union([z.string(), z.number()])),
})
export type Violation = z.infer<typeof violation>

/** How far a verification has come, or its result. */
export type VerifyEvent =
  | { kind: 'progress'; flows: number; totalFlows: number }
  | { kind: 'result'; report: VerifyReport }

export type VerifyReport = {
  ok: boolean
  workspaces: number
  wallets: number
  transfers: number
  flows: number
  violations: Violation[]
  /** Violations found beyond those listed. */
  more: number
}
