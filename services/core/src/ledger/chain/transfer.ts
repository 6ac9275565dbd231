import type { TransferType } from '@workspace-wallet/contract'

/** A posted transfer between two wallets of one workspace. IDs are UUIDs. */
export type Transfer = {
  type: TransferType
  workspaceId: string
  transferId: string
  /** The client's idempotency key; null when the client sent none. */
  bizId: string | null
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: string
  remark: string | null
  actor: string
  requestId: string
  clientAddress: string | null
  /** The position among the workspace's transfers between wallets, from 1; null for deposits and withdrawals. */
  number: number | null
  sourceSequence: number
  targetSequence: number
  createdAt: Date
}

/** One entry of a transfer, without its MAC (see chain.ts). */
export type Entry = {
  workspaceId: string
  walletId: string
  sequence: number
  transferId: string
  direction: 'IN' | 'OUT'
  amount: string
  balanceAfter: string
  /** How many of the wallet's entries, up to this one, are of transfers between wallets. */
  orderCount: number
  createdAt: Date
}
