import { z } from 'zod'
import type { Scope } from './api-keys.ts'
import { transferBizId } from './biz-ids.ts'
import { commandCall, newIdOf, workspaceCall } from './caller.ts'
import { amountText, checkAmount, currencyCode, decimal } from './money.ts'
import { createdRange, pageOf, pageRequest, textFilter } from './pages.ts'
import { nameOfExisting, reason, reference, remark } from './text.ts'

/** Every stored transfer is completed, because it is written in one commit or not at all (section 3). */
export const transferStatuses = ['COMPLETED'] as const

/** What happens to the rest of a hold when a transfer captures less than remains of it. */
export const holdRemainders = ['KEEP', 'RELEASE'] as const

/** The hold that a transfer or withdrawal captures. */
export const draw = {
  holdId: nameOfExisting(
    'The hold to capture, by holdId or bizId. It must be on the source wallet. An API key also needs the scope `hold:create`.',
  ).optional(),
  holdRemainder: z
    .enum(holdRemainders, 'NOT_ONE_OF')
    .optional()
    .describe('What happens to the rest of the hold: `KEEP` keeps it held, `RELEASE` releases it. Default: `RELEASE`.'),
}

/** The rule of `checkDraw`, for the OpenAPI document. */
const drawRule = { dependentRequired: { holdRemainder: ['holdId'] } }

/** `holdRemainder` needs a `holdId`. */
export function checkDraw(
  context: z.core.ParsePayload<{ holdId?: string | undefined; holdRemainder?: unknown }>,
): void {
  const { holdId, holdRemainder } = context.value
  if (holdRemainder !== undefined && holdId === undefined)
    context.issues.push({ code: 'custom', message: 'REQUIRED', path: ['holdId'], input: holdId })
}

const createFields = {
  sourceWalletId: nameOfExisting('The wallet that the funds leave.'),
  targetWalletId: nameOfExisting('The wallet that the funds enter.'),
  amount: amountText,
  currency: currencyCode.describe('Currency code, upper case. The currency of both wallets.'),
  bizId: transferBizId,
  remark: remark.optional(),
  reference: reference.optional(),
  ...draw,
}

/**
 * The body of `POST /api/v1/transfer/command/create` (section 2.4). Wallet IDs can be any string: malformed and unknown IDs
 * get the same error, W001. So can hold IDs: H001.
 */
export const createTransferBody = z
  .strictObject({
    ...createFields,
    bizId: transferBizId.optional().describe(`${transferBizId.description} Default: the transferId.`),
  })
  .check(checkAmount, checkDraw)
  .meta(drawRule)
export type CreateTransferBody = z.infer<typeof createTransferBody>

/** A create in a batch, where `bizId` is required. */
export const createItem = z.strictObject(createFields).check(checkAmount, checkDraw).meta(drawRule)
export type CreateItem = z.infer<typeof createItem>

/**
 * The body of `POST /api/v1/transfer/command/reverse`. The ID of the original can be any string: malformed and unknown IDs
 * get the same error, T001.
 */
export const reverseTransferBody = z
  .strictObject({
    reversesTransferId: nameOfExisting('The transfer to reverse, by transferId or bizId.'),
    amount: amountText,
    currency: currencyCode.describe('Currency code, upper case. The currency of the transfer to reverse.'),
    bizId: transferBizId,
    remark: remark.optional(),
    reference: reference.optional(),
  })
  .check(checkAmount)
export type ReverseTransferBody = z.infer<typeof reverseTransferBody>

/** An item of a batch: a create with a `bizId`, or a reversal. */
export type BatchItem = CreateItem | ReverseTransferBody

export function isReversal(item: CreateTransferBody | BatchItem): item is ReverseTransferBody {
  return 'reversesTransferId' in item
}

/**
 * The scope that a create or an item of a batch needs, besides the one of its endpoint: whoever captures a hold can end it, and
 * learns from the response what is left of it.
 */
export function scopeOf(item: CreateTransferBody | BatchItem): Scope {
  if (isReversal(item)) return 'transfer:reverse'
  return item.holdId === undefined ? 'transfer:create' : 'hold:create'
}

/** The schema of an item of a batch. `reversesTransferId` selects it, so that a fault is that of one schema. */
export function batchItemSchema(value: unknown): typeof reverseTransferBody | typeof createItem {
  const isReverse = typeof value === 'object' && value !== null && Object.hasOwn(value, 'reversesTransferId')
  return isReverse ? reverseTransferBody : createItem
}

export const batchItem = z.unknown().transform((value, context): BatchItem => {
  const result = batchItemSchema(value).safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) context.issues.push(issue as z.core.$ZodRawIssue)
  return z.NEVER
})

const batchLimit = 100

/** The body of `POST /api/v1/transfer/command/batch`. */
export const createBatchBody = z.strictObject({
  transfers: z
    .array(batchItem, 'NOT_AN_ARRAY')
    .min(1, 'EMPTY')
    .max(batchLimit, 'TOO_MANY')
    .check(rejectRepeatedBizIds)
    .describe(
      `1 to ${batchLimit} items, which are decided in this order. An item with \`reversesTransferId\` is a reversal, with the fields of the body of reverse. Any other item is a transfer, with the fields of the body of create. Each item needs a \`bizId\` of its own.`,
    ),
})
export type CreateBatchBody = z.infer<typeof createBatchBody>

function rejectRepeatedBizIds({ value, issues }: z.core.ParsePayload<BatchItem[]>): void {
  const seen = new Set<string>()
  for (const [index, { bizId }] of value.entries()) {
    if (seen.has(bizId))
      issues.push({ code: 'custom', message: 'REPEATED', path: [index, 'bizId'], input: bizId, continue: true })
    seen.add(bizId)
  }
}

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
  reference: z.string().nullable(),
  /** The hold that it drew on. */
  holdId: z.string().nullable(),
  /** The transferId of the first transfer of its batch. */
  batchId: z.string().nullable(),
  /** Of a reversal: the transferId of the original. */
  reversesTransferId: z.string().nullable(),
  /** The sum of its reversals. */
  reversedAmount: decimal,
  createdAt: z.date(),
  updatedAt: z.date(),
  completedAt: z.date(),
})
export type TransferOrder = z.infer<typeof transferOrder>

/** `transferId`: the ID of the new transfer. A caller that generates it can send the create again safely. */
export const createTransferInput = commandCall.extend({
  order: createTransferBody,
  transferId: newIdOf('transfer').optional(),
})
export type CreateTransferInput = z.infer<typeof createTransferInput>

/** `transferIds`: the IDs of the new transfers, all different, in the order of the items. */
export const createBatchInput = commandCall.extend({
  batch: createBatchBody,
  transferIds: z
    .array(newIdOf('transfer'))
    .max(batchLimit)
    .refine(ids => new Set(ids).size === ids.length, 'REPEATED')
    .optional(),
})
export type CreateBatchInput = z.infer<typeof createBatchInput>

/** The transfers of a batch, in the order of its items. */
export const transferBatch = z.object({ transfers: z.array(transferOrder) })
export type TransferBatch = z.infer<typeof transferBatch>

/** `transferId`: the ID of the new transfer. `reason`: for the audit, which records what operators reverse. */
export const reverseTransferInput = commandCall.extend({
  reversal: reverseTransferBody,
  transferId: newIdOf('transfer').optional(),
  reason: reason.optional(),
})
export type ReverseTransferInput = z.infer<typeof reverseTransferInput>

/** `bizId`: the bizId or the transferId of the order. */
export const getTransferInput = workspaceCall.extend({ bizId: z.string() })

export const transferSortFields = ['createdAt', 'updatedAt', 'amount', 'status'] as const

export const transferFilter = z.object({
  status: z.enum(transferStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  transferIdPrefix: textFilter,
  bizIdPrefix: textFilter,
  reference: textFilter,
  holdId: textFilter,
  batchId: textFilter,
  reversesTransferId: textFilter,
})
export type TransferFilter = z.infer<typeof transferFilter>

export const listTransfersInput = workspaceCall.extend({
  /** Only orders from or to this wallet. W001 if the workspace has no such wallet. */
  walletId: z.string().optional(),
  filter: transferFilter.default({}),
  ...pageRequest(transferSortFields).shape,
})

export const transferPage = pageOf(transferOrder)
