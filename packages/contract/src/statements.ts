import { z } from 'zod'
import { decimal } from './money.ts'
import { flow, walletInput } from './wallets.ts'

/**
 * The minimum age of the time of a balance or statement. It is longer than any transaction of the ledger, with a margin for
 * clocks that differ, so that a response never changes.
 */
export const settledAfterMs = 30_000
export const maxStatementDays = 400

/** A wallet after all flows before `at`. `sequence`: that of the last of them, 0 without any. */
export const balanceAt = z.object({
  walletId: z.string(),
  currency: z.string(),
  at: z.date(),
  balance: decimal,
  sequence: z.int(),
})
export type BalanceAt = z.infer<typeof balanceAt>

/** The flows from `from` on and before `to`, summed up. The sequences are null if there are none. */
export const walletStatement = z.object({
  walletId: z.string(),
  currency: z.string(),
  from: z.date(),
  to: z.date(),
  opening: decimal,
  closing: decimal,
  totalIn: decimal,
  totalOut: decimal,
  flowCount: z.int(),
  firstSequence: z.int().nullable(),
  lastSequence: z.int().nullable(),
})
export type WalletStatement = z.infer<typeof walletStatement>

export const balanceAtInput = walletInput.extend({ at: z.date() })
export const statementInput = walletInput.extend({ from: z.date(), to: z.date() })

/** Maximum number of flows that one call of `wallets.flowsAfter` returns. */
export const maxFlowsAfter = 1_000

/** Flows in order, with sequences above `after`, up to `upTo`. */
export const flowsAfterInput = walletInput.extend({ after: z.int().min(0), upTo: z.int().min(0) })
export const flowsAfter = z.object({ content: z.array(flow) })
