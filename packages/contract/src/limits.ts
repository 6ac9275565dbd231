import { z } from 'zod'
import { amountText, currencyCode, decimal } from './money.ts'
import { reason } from './text.ts'

/** Whose spending a limit counts: that of an API key, or that of a wallet. */
export const limitSubject = z.union([
  z.strictObject({ apiKey: z.string('NOT_A_STRING') }),
  z.strictObject({ walletId: z.string('NOT_A_STRING') }),
])
export type LimitSubject = z.infer<typeof limitSubject>

export const limitInput = z.object({
  workspaceId: z.string(),
  subject: limitSubject,
  currency: currencyCode,
  reason: reason.optional(),
})
export type LimitInput = z.infer<typeof limitInput>

/**
 * Sets the limits of a subject in one currency. A bound that is left out is unlimited; one of them is required. If the
 * subject has limits in this currency already, the bounds change, and what was spent today still counts.
 */
export const setLimitInput = limitInput
  .extend({ perTransfer: amountText.optional(), perDay: amountText.optional() })
  .refine(({ perTransfer, perDay }) => perTransfer !== undefined || perDay !== undefined, {
    error: 'REQUIRED',
    path: ['perDay'],
  })
export type SetLimitInput = z.infer<typeof setLimitInput>

/**
 * The limits of a subject in one currency. `perTransfer` bounds each transfer and each hold, `perDay` the sum of a day (UTC,
 * by posting time); null: unlimited. Limits of a key count every transfer that the key makes, including reversals and captures of
 * holds. Limits of a wallet count every flow out of it. `spentToday`: since midnight UTC or, if the limits were set later,
 * since then.
 */
export const spendingLimit = z.object({
  apiKey: z.string().nullable(),
  walletId: z.string().nullable(),
  currency: z.string(),
  perTransfer: z.string().nullable(),
  perDay: z.string().nullable(),
  spentToday: decimal,
  /** The next midnight, UTC. */
  resetsAt: z.date(),
  createdAt: z.date(),
  updatedAt: z.date(),
  /** Whether its row was modified or written outside the service. */
  isModified: z.boolean(),
})
export type SpendingLimit = z.infer<typeof spendingLimit>

/** Lists limits by key or wallet and currency; with `subject` only its own. `after`: the `next` of the page before. */
export const listLimitsInput = z.object({
  workspaceId: z.string(),
  subject: limitSubject.optional(),
  after: z.string().max(4096).optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type LimitListing = z.infer<typeof listLimitsInput>
/** `next`: the `after` of the next page; null on the last page. */
export const limitPage = z.object({ limits: z.array(spendingLimit), next: z.string().nullable() })
export type LimitPage = z.infer<typeof limitPage>
