import {
  type Flow,
  flowDirections,
  formatBalance,
  type TransferOrder,
  transferStatuses,
  transferTypes,
  type Wallet,
  type WalletBalance,
  walletStatuses,
} from '@workspace-wallet/contract'
import { z } from 'zod'

/**
 * The schemas of public records. They are not used at run time, because encoding with them would cost 6 µs per create and
 * 90 µs per page of 20 orders. Instead, they type what endpoints return, docs/api.md is generated from them, and tests parse
 * real answers with them.
 */

const time = z.iso.datetime({ precision: 3 })
const createdAt = time.describe('ISO 8601, UTC, in milliseconds.')
const updatedAt = time.describe('ISO 8601, UTC, in milliseconds.')
const currency = z.string().describe('Currency code.')
const balance = z.string().describe("Decimal, with exactly its currency's decimals.")
const amount = z.string().describe('Decimal, as it was sent.')
const walletId = z.string().describe('`wal_…`')
const transferId = z.string().describe('`trf_…`')
const bizId = z.string().describe('As it was sent, otherwise the transferId.')
const orderStatus = z.enum(transferStatuses)

export const walletAnswer = z.strictObject({
  walletId,
  name: z.string().describe('The name that the operator gave it.'),
  currency,
  status: z.enum(walletStatuses),
  balance,
  createdAt,
  updatedAt,
})

export const balanceAnswer = z.strictObject({
  walletId,
  currency,
  balance,
  available: balance.describe('The part of the balance that can be spent.'),
  updatedAt,
})

export const flowAnswer = z.strictObject({
  flowId: z.string().describe('`flw_…`'),
  walletId,
  sequence: z.int().describe("Numbers the wallet's flows: 1, 2, 3, without gaps."),
  direction: z.enum(flowDirections),
  type: z.enum(transferTypes),
  amount,
  balanceAfter: balance,
  currency,
  transferId,
  counterpartyWalletId: z
    .string()
    .nullable()
    .describe('The other wallet of the transfer. Null for deposits and withdrawals.'),
  createdAt,
})

export const orderAnswer = z.strictObject({
  transferId,
  bizId,
  status: orderStatus,
  amount,
  currency,
  sourceWalletId: walletId,
  targetWalletId: walletId,
  remark: z.string().nullable().describe('As it was sent, or null.'),
  createdAt,
  updatedAt,
  completedAt: time.describe('ISO 8601, UTC, in milliseconds.'),
})

export const completionAnswer = z.strictObject({
  transferId,
  bizId,
  status: orderStatus,
  completed: z.boolean().describe('Whether the status is `COMPLETED`.'),
})

export function walletRecord(wallet: Wallet): z.output<typeof walletAnswer> {
  const { balance, currency, createdAt, updatedAt } = wallet
  return {
    ...wallet,
    balance: formatBalance(balance, currency),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
  }
}

export function balanceRecord(balance: WalletBalance): z.output<typeof balanceAnswer> {
  const { currency, updatedAt } = balance
  return {
    ...balance,
    balance: formatBalance(balance.balance, currency),
    available: formatBalance(balance.available, currency),
    updatedAt: formatTime(updatedAt),
  }
}

export function flowRecord(flow: Flow): z.output<typeof flowAnswer> {
  const { balanceAfter, currency, createdAt } = flow
  return { ...flow, balanceAfter: formatBalance(balanceAfter, currency), createdAt: formatTime(createdAt) }
}

export function orderRecord(order: TransferOrder): z.output<typeof orderAnswer> {
  const { createdAt, updatedAt, completedAt } = order
  return {
    ...order,
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
    completedAt: formatTime(completedAt),
  }
}

export function completionRecord({ transferId, bizId, status }: TransferOrder): z.output<typeof completionAnswer> {
  return { transferId, bizId, status, completed: status === 'COMPLETED' }
}

let lastTimeMs = 0
let lastTimeText = new Date(0).toISOString()

/** A time as ISO 8601. The last one is kept: the times of an order, and of the transfers of a batch, are the same. */
function formatTime(time: Date): string {
  if (time.getTime() !== lastTimeMs) {
    lastTimeText = time.toISOString()
    lastTimeMs = time.getTime()
  }
  return lastTimeText
}
