import { z } from 'zod'
import { caller } from './caller.ts'
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

/** A wallet (section 2.5). One currency each; `balance` in that currency. */
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

/** What a wallet holds, and how much of it can be spent. */
export const walletBalance = z.object({
  walletId: z.string(),
  currency: z.string(),
  balance: decimal,
  available: decimal,
  updatedAt: z.date(),
})
export type WalletBalance = z.infer<typeof walletBalance>

/** One posting on one wallet. `sequence` counts 1…n without gaps; `balanceAfter` follows from the one before. */
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
  /** Null when the other side is not one of the workspace's own wallets (deposits, withdrawals). */
  counterpartyWalletId: z.string().nullable(),
  createdAt: z.date(),
})
export type Flow = z.infer<typeof flow>

/** Beside the workspaceCall that every procedure on a workspace takes, as the inputs of lists. */
export const walletInput = z.object({ walletId: z.string() })

/** For operators, who act for nobody. */
export const walletOfWorkspaceInput = z.object({ workspaceId: z.string(), walletId: z.string() })

export const walletSortFields = ['createdAt', 'updatedAt', 'amount', 'status', 'name', 'currency'] as const

export const walletFilter = z.object({
  status: z.enum(walletStatuses).optional(),
  currency: currencyCode.optional(),
  ...createdRange,
  walletIdPrefix: prefixFilter,
})
export type WalletFilter = z.infer<typeof walletFilter>

export const listWalletsInput = z.object({
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

/** Money that enters or leaves the workspace. Idempotent under its bizId, like a transfer. */
export const fundingInput = z.object({
  workspaceId: z.string(),
  walletId: z.string(),
  amount: amountText,
  bizId: bizId.optional(),
  caller: caller.optional(),
})

/** `bizId` is the one that was given, or else the transferId. */
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
