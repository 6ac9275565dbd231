import { z } from 'zod'
import { workspaceCall } from './caller.ts'
import { looksLikeOwnId } from './ids.ts'
import { amountFault, amountText, currencyCode, maxDigits } from './money.ts'
import { createdRange, pageOf, pageRequest, prefixFilter } from './pages.ts'
import { plainText } from './text.ts'

/** Every stored transfer is completed, because it is written in one commit or not at all (section 3). */
export const transferStatuses = ['COMPLETED'] as const

const bizIdLength = 64

/**
 * The idempotency key of a create, chosen by the client and unique in a workspace for ever. It cannot have the form of our
 * IDs, because a path can name an order by bizId or by transferId.
 */
export const bizId = z
  .string('NOT_A_STRING')
  .min(1, 'EMPTY')
  .max(bizIdLength, 'TOO_LONG')
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'NOT_A_BIZ_ID')
  .refine(text => text !== 'wallet' && !looksLikeOwnId(text), { error: 'RESERVED' })

const remarkLength = 256
const remark = plainText(remarkLength)

/**
 * The body of `POST /api/v1/transfer/command/create` (section 2.4). Wallet IDs can be any string: malformed and unknown IDs
 * get the same error, W001.
 */
export const createTransferBody = z
  .strictObject({
    sourceWalletId: z.string('NOT_A_STRING').describe('The wallet that the funds leave.'),
    targetWalletId: z.string('NOT_A_STRING').describe('The wallet that the funds enter.'),
    amount: amountText.describe(
      `Decimal above zero, such as \`100.50\`: up to ${maxDigits} digits, no more decimals than the currency has, no sign, exponent or leading zero.`,
    ),
    currency: currencyCode.describe('Currency code, upper case. The currency of both wallets.'),
    bizId: bizId
      .optional()
      .describe(
        `Makes the call idempotent: a name that you choose, unique in the workspace for ever. 1 to ${bizIdLength} of \`A-Z a-z 0-9 . _ : -\`, beginning with a letter or digit; neither \`wallet\` nor in the form of an ID of the service. Default: the transferId.`,
      ),
    remark: remark.optional().describe(`Text of up to ${remarkLength} characters.`),
  })
  .check(context => {
    const fault = amountFault(context.value.amount, context.value.currency)
    if (fault)
      context.issues.push({
        code: 'custom',
        message: fault.reason,
        path: ['amount'],
        params: { limit: fault.limit },
        input: context.value.amount,
      })
  })
export type CreateTransferBody = z.infer<typeof createTransferBody>

/** A transfer order (section 2.3). `amount` is the string that was sent: "100.50" stays "100.50". */
export const transferOrder = z.object({
  transferId: z.string(),
  bizId: z.string(),
  status: z.enum(transferStatuses),
  amount: z.string(),
  currency: z.string(),
  sourceWalletId: z.string(),
  targetWalletId: z.string(),
  remark: z.string().nullable(),
  createdAt: z.date(),
  updatedAt: z.date(),
  completedAt: z.date(),
})
export type TransferOrder = z.infer<typeof transferOrder>

/**
 * How long after its budget a transfer can still be posted, in milliseconds: the time to get a connection and the lock of
 * the workspace, twice if the first commit was lost. After that, the caller can rely on its not being posted.
 */
export const postingGraceMs = 3_000

export const createTransferInput = workspaceCall.extend({
  order: createTransferBody,
  /** The ID of the new transfer. A caller that generates it can send the create again safely. */
  transferId: z.string().optional(),
  /** True if the create may have been sent before: core then looks up the transferId first. */
  resend: z.boolean().optional(),
  /**
   * How long the caller waits, in milliseconds. Core does not start the create after that, and never posts it later than
   * `postingGraceMs` after that.
   */
  budgetMs: z.int().min(1).max(60_000).optional(),
})
export type CreateTransferInput = z.infer<typeof createTransferInput>

/** `bizId`: the bizId or the transferId of the order. */
export const getTransferInput = workspaceCall.extend({ bizId: z.string() })

export const transferSortFields = ['createdAt', 'updatedAt', 'amount', 'status'] as const

export const transferFilter = z.object({
  status: z.enum(transferStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  transferIdPrefix: prefixFilter,
  bizIdPrefix: prefixFilter,
})
export type TransferFilter = z.infer<typeof transferFilter>

export const listTransfersInput = workspaceCall.extend({
  /** Only orders from or to this wallet. W001 if the workspace has no such wallet. */
  walletId: z.string().optional(),
  filter: transferFilter.default({}),
  ...pageRequest(transferSortFields).shape,
})

export const transferPage = pageOf(transferOrder)
