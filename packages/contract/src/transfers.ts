import { z } from 'zod'
import type { WorkspaceCall } from './caller.ts'
import { looksLikeOwnId } from './ids.ts'
import { amountFault, amountText, currencyCode, maxDigits } from './money.ts'
import { createdRange, pageOf, pageRequest, prefixFilter } from './pages.ts'
import { plainText } from './text.ts'

/** Every stored transfer is completed: it is written whole, in one commit, or not at all (section 3). */
export const transferStatuses = ['COMPLETED'] as const

const bizIdLength = 64

/**
 * A name that the client chooses and that makes create idempotent, for ever, per workspace.
 * Never in the form of our own ids, so that an order's bizId and transferId cannot be confused in a path.
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
 * The body of `POST /api/v1/transfer/command/create` (section 2.4). Wallet ids are any text here: a malformed
 * one is W001, exactly as an unknown one.
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

/** A transfer order (section 2.3). `amount` is the text that was sent: "100.50" stays "100.50". */
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
 * What a posting that was begun in time may take until it has its workspace's lock, in milliseconds: a connection, a
 * lock, and once more if the first commit was lost. Past it a caller may rely on its not being posted.
 */
export const postingGraceMs = 3_000

/** Beside the workspaceCall that every procedure on a workspace takes, as all inputs here. */
export const createTransferInput = z.object({
  order: createTransferBody,
  /** The id to give the transfer: minted by the caller, so that its own re-sends are idempotent. */
  transferId: z.string().optional(),
  /** True when this may have been sent before: core then looks for the transferId first. */
  resend: z.boolean().optional(),
  /**
   * How long the caller will wait, in milliseconds. Core drops what nobody waits for before it starts, and posts nothing
   * that is `postingGraceMs` later still.
   */
  budgetMs: z.int().min(1).max(60_000).optional(),
})
export type CreateTransferInput = WorkspaceCall & z.infer<typeof createTransferInput>

/** `bizId` finds an order by its bizId or its transferId. */
export const getTransferInput = z.object({ bizId: z.string() })

export const transferSortFields = ['createdAt', 'updatedAt', 'amount', 'status'] as const

export const transferFilter = z.object({
  status: z.enum(transferStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  transferIdPrefix: prefixFilter,
  bizIdPrefix: prefixFilter,
})
export type TransferFilter = z.infer<typeof transferFilter>

export const listTransfersInput = z.object({
  /** Only this wallet's, on either side. W001 when the workspace has no such wallet. */
  walletId: z.string().optional(),
  filter: transferFilter.default({}),
  ...pageRequest(transferSortFields).shape,
})

export const transferPage = pageOf(transferOrder)
