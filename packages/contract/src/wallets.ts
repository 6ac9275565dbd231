import { z } from 'zod'
import { transferBizId, walletBizId } from './biz-ids.ts'
import { caller, workspaceCall } from './caller.ts'
import { amountText, currencyCode, decimal } from './money.ts'
import { createdRange, pageOf, pageRequest, textFilter } from './pages.ts'
import { displayName, nameOfExisting, reason } from './text.ts'
import { checkDraw, draw } from './transfers.ts'

export const walletStatuses = ['ACTIVE', 'FROZEN', 'CLOSED'] as const
export type WalletStatus = (typeof walletStatuses)[number]

export const flowDirections = ['IN', 'OUT'] as const
export type FlowDirection = (typeof flowDirections)[number]

export const transferTypes = ['TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const
export type TransferType = (typeof transferTypes)[number]

/** A wallet (section 2.5). */
export const wallet = z.object({
  walletId: z.string(),
  /** Null for wallets that operators made without one. */
  bizId: z.string().nullable(),
  name: z.string(),
  currency: z.string(),
  status: z.enum(walletStatuses),
  balance: decimal,
  createdAt: z.date(),
  updatedAt: z.date(),
})
export type Wallet = z.infer<typeof wallet>

/**
 * The balance of a wallet. `held`: the part that its open holds reserve. `available`: the rest, which can be spent.
 * `sequence`: that of its last flow, 0 without any.
 */
export const walletBalance = z.object({
  walletId: z.string(),
  currency: z.string(),
  balance: decimal,
  held: decimal,
  available: decimal,
  sequence: z.int(),
  updatedAt: z.date(),
})
export type WalletBalance = z.infer<typeof walletBalance>

/** One side of a transfer. `sequence` numbers the flows of a wallet from 1, without gaps. */
export const flow = z.object({
  flowId: z.string(),
  walletId: z.string(),
  sequence: z.int(),
  direction: z.enum(flowDirections),
  type: z.enum(transferTypes),
  amount: z.string(),
  balanceAfter: decimal,
  currency: z.string(),
  transferId: z.string(),
  /** Null for deposits and withdrawals. */
  counterpartyWalletId: z.string().nullable(),
  createdAt: z.date(),
})
export type Flow = z.infer<typeof flow>

export const walletInput = workspaceCall.extend({ walletId: z.string() })

export const walletSortFields = ['createdAt', 'updatedAt', 'amount', 'status', 'name', 'currency'] as const

export const walletFilter = z.object({
  status: z.enum(walletStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  walletIdPrefix: textFilter,
})
export type WalletFilter = z.infer<typeof walletFilter>

export const listWalletsInput = workspaceCall.extend({
  filter: walletFilter.default({}),
  ...pageRequest(walletSortFields).shape,
})
export const walletPage = pageOf(wallet)

export const flowSortFields = ['createdAt', 'updatedAt', 'amount', 'status'] as const

export const flowFilter = z.object({
  direction: z.enum(flowDirections).optional(),
  type: z.enum(transferTypes).optional(),
  ...createdRange,
  transferIdPrefix: textFilter,
})
export type FlowFilter = z.infer<typeof flowFilter>

export const listFlowsInput = walletInput.extend({
  filter: flowFilter.default({}),
  ...pageRequest(flowSortFields).shape,
})
export const flowPage = pageOf(flow)

/** The body of `POST /api/v1/wallet/command/create`. */
export const createWalletBody = z.strictObject({
  name: displayName.describe('1 to 128 characters on one line, at least one of them visible.'),
  currency: currencyCode.describe('Currency code, upper case. It never changes.'),
  bizId: walletBizId,
})

/** Operators act without a `caller`, and may leave out the `bizId`. */
export const createWalletInput = z.object({
  workspaceId: z.string(),
  caller: caller.optional(),
  ...createWalletBody.partial({ bizId: true }).shape,
})
export type CreateWalletInput = z.infer<typeof createWalletInput>

/**
 * The body of `POST /api/v1/wallet/command/change-status`. The wallet ID can be any string: malformed and unknown IDs get the
 * same error, W001.
 */
export const changeWalletStatusBody = z.strictObject({
  walletId: nameOfExisting('`wal_…`'),
  status: z
    .enum(walletStatuses, 'NOT_ONE_OF')
    .describe('The status that the wallet gets. A closed wallet stays closed; only an empty one can be closed.'),
})

/** Operators act without a `caller`. `reason` is for the audit. */
export const changeWalletStatusInput = z.object({
  workspaceId: z.string(),
  caller: caller.optional(),
  reason: reason.optional(),
  ...changeWalletStatusBody.shape,
})
export type ChangeWalletStatusInput = z.infer<typeof changeWalletStatusInput>

/** A deposit or a withdrawal. `bizId` makes it idempotent, like a transfer. `reason` is for the audit, and not compared. */
export const fundingInput = z.object({
  workspaceId: z.string(),
  walletId: z.string(),
  amount: amountText,
  bizId: transferBizId,
  reason: reason.optional(),
  caller: caller.optional(),
})

/** A withdrawal can capture a hold of the wallet, like a transfer. */
export const withdrawalInput = fundingInput.extend(draw).check(checkDraw)
export type WithdrawalInput = z.infer<typeof withdrawalInput>

/** `bizId`: as it was sent, otherwise the transferId. */
export const fundingReceipt = z.object({
  transferId: z.string(),
  bizId: z.string(),
  walletId: z.string(),
  type: z.enum(['DEPOSIT', 'WITHDRAWAL']),
  amount: z.string(),
  currency: z.string(),
  /** The hold that a withdrawal drew on. */
  holdId: z.string().nullable(),
  createdAt: z.date(),
})
export type FundingReceipt = z.infer<typeof fundingReceipt>
