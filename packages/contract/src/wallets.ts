import { z } from 'zod'
import { caller, workspaceCall } from './caller.ts'
import { amountText, currencyCode, Decimal } from './money.ts'
import { createdRange, pageOf, pageRequest, prefixFilter } from './pages.ts'
import { displayName } from './text.ts'
import { bizId } from './transfers.ts'

export const walletStatuses = ['ACTIVE', 'FROZEN', 'CLOSED'] as const
export type WalletStatus = (typeof walletStatuses)[number]

export const flowDirections = ['IN', 'OUT'] as const
export type FlowDirection = (typeof flowDirections)[number]

export const transferTypes = ['TRANSFER', 'DEPOSIT', 'WITHDRAWAL'] as const
export type TransferType = (typeof transferTypes)[number]

const decimal = z.custom<Decimal>(value => Decimal.isDecimal(value), { error: 'NOT_AN_AMOUNT' })

/** A wallet (section 2.5). */
export const wallet = z.object({
  walletId: z.string(),
  name: z.string(),
  currency: z.string(),
  status: z.enum(walletStatuses),
  balance: decimal,
  createdAt: z.date(),
  updatedAt: z.date(),
})
export type Wallet = z.infer<typeof wallet>

/** The balance of a wallet. `available`: the part that can be spent. */
export const walletBalance = z.object({
  walletId: z.string(),
  currency: z.string(),
  balance: decimal,
  available: decimal,
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

/** For operators, who act without a `caller`. */
export const walletOfWorkspaceInput = z.object({ workspaceId: z.string(), walletId: z.string() })

export const walletSortFields = ['createdAt', 'updatedAt', 'amount', 'status', 'name', 'currency'] as const

export const walletFilter = z.object({
  status: z.enum(walletStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  walletIdPrefix: prefixFilter,
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
  transferIdPrefix: prefixFilter,
})
export type FlowFilter = z.infer<typeof flowFilter>

export const listFlowsInput = walletInput.extend({
  filter: flowFilter.default({}),
  ...pageRequest(flowSortFields).shape,
})
export const flowPage = pageOf(flow)

export const createWalletInput = z.object({ workspaceId: z.string(), currency: currencyCode, name: displayName })

/** A deposit or a withdrawal. `bizId` makes it idempotent, like a transfer. */
export const fundingInput = z.object({
  workspaceId: z.string(),
  walletId: z.string(),
  amount: amountText,
  bizId: bizId.optional(),
  caller: caller.optional(),
})

/** `bizId`: as it was sent, otherwise the transferId. */
export const fundingReceipt = z.object({
  transferId: z.string(),
  bizId: z.string(),
  walletId: z.string(),
  type: z.enum(['DEPOSIT', 'WITHDRAWAL']),
  amount: z.string(),
  currency: z.string(),
  createdAt: z.date(),
})
export type FundingReceipt = z.infer<typeof fundingReceipt>
