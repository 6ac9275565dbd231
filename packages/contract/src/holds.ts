import { z } from 'zod'
import { holdBizId } from './biz-ids.ts'
import { commandCall, newIdOf, workspaceCall } from './caller.ts'
import { integerBetween } from './integer.ts'
import { amountText, checkAmount, currencyCode, decimal } from './money.ts'
import { createdRange, pageOf, pageRequest, textFilter } from './pages.ts'
import { nameOfExisting, reason, reference, remark } from './text.ts'

/**
 * An OPEN hold reserves what remains of it. A transfer that captures a part of it and does not keep the rest makes it CAPTURED, a
 * release RELEASED, and its `expiresAt` EXPIRED. Ended holds never change.
 */
export const holdStatuses = ['OPEN', 'CAPTURED', 'RELEASED', 'EXPIRED'] as const
export type HoldStatus = (typeof holdStatuses)[number]

const maxHoldSeconds = 31_536_000

/**
 * The body of `POST /api/v1/hold/command/create`. The wallet ID can be any string: malformed and unknown IDs get the same
 * error, W001.
 */
export const createHoldBody = z
  .strictObject({
    walletId: nameOfExisting('The wallet whose funds are reserved.'),
    amount: amountText,
    currency: currencyCode.describe('Currency code, upper case. The currency of the wallet.'),
    expiresInSeconds: integerBetween(1, maxHoldSeconds).describe(
      `When the hold expires: 1 to ${maxHoldSeconds} seconds after its creation.`,
    ),
    bizId: holdBizId,
    remark: remark.optional(),
    reference: reference.optional(),
  })
  .check(checkAmount)
export type CreateHoldBody = z.infer<typeof createHoldBody>

/** The body of `POST /api/v1/hold/command/release`. Malformed and unknown IDs get the same error, H001. */
export const releaseHoldBody = z.strictObject({
  holdId: nameOfExisting('The hold to release, by holdId or bizId.'),
})

/**
 * A hold. `amount` is the string that was sent. `remainingAmount`: amount − capturedAmount while OPEN, otherwise 0. From
 * `expiresAt` on, the status is EXPIRED and `updatedAt` is `expiresAt`, whether or not the row is written yet.
 */
export const hold = z.object({
  holdId: z.string(),
  bizId: z.string(),
  walletId: z.string(),
  currency: z.string(),
  amount: z.string(),
  capturedAmount: decimal,
  remainingAmount: decimal,
  status: z.enum(holdStatuses),
  expiresAt: z.date(),
  reference: z.string().nullable(),
  remark: z.string().nullable(),
  createdAt: z.date(),
  updatedAt: z.date(),
})
export type Hold = z.infer<typeof hold>

/** `holdId`: the ID of the new hold. A caller that generates it can send the create again safely. */
export const createHoldInput = commandCall.extend({ hold: createHoldBody, holdId: newIdOf('hold').optional() })
export type CreateHoldInput = z.infer<typeof createHoldInput>

/** `holdId`: the holdId or the bizId of the hold. `reason`: for the audit, which records what operators release. */
export const releaseHoldInput = commandCall.extend({ holdId: z.string(), reason: reason.optional() })
export type ReleaseHoldInput = z.infer<typeof releaseHoldInput>

/** `bizId`: the bizId or the holdId of the hold. */
export const getHoldInput = workspaceCall.extend({ bizId: z.string() })

export const holdSortFields = ['createdAt', 'updatedAt', 'amount', 'status'] as const

export const holdFilter = z.object({
  status: z.enum(holdStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  reference: textFilter,
  bizIdPrefix: textFilter,
})
export type HoldFilter = z.infer<typeof holdFilter>

export const listHoldsInput = workspaceCall.extend({
  /** Only holds of this wallet. W001 if the workspace has no such wallet. */
  walletId: z.string().optional(),
  filter: holdFilter.default({}),
  ...pageRequest(holdSortFields).shape,
})

export const holdPage = pageOf(hold)
