import type { TransferType, Uuid } from '@workspace-wallet/contract'

/** A posted transfer between two wallets of one workspace. */
export type Transfer = {
  type: TransferType
  workspaceId: Uuid<'workspace'>
  transferId: Uuid<'transfer'>
  /** The client's idempotency key; null when the client sent none. */
  bizId: string | null
  reference: string | null
  sourceWalletId: Uuid<'wallet'>
  targetWalletId: Uuid<'wallet'>
  amount: string
  currency: string
  remark: string | null
  /** The hold that the transfer captures, and what remains of it afterwards. */
  holdId: Uuid<'hold'> | null
  holdRemaining: string | null
  /** The order that the transfer reverses, and the sum of that order's reversals up to this one. */
  reversesId: Uuid<'transfer'> | null
  reversedTotal: string | null
  /** The first transfer of its batch. */
  batchId: Uuid<'transfer'> | null
  actor: string
  requestId: string
  clientAddress: string | null
  /** The place among the events of the workspace, from 1. */
  position: number
  /** How many of the workspace's transfers, up to this one, are between wallets. */
  orderCount: number
  sourceSequence: number
  targetSequence: number
  createdAt: Date
}

/** One flow of a transfer, without its MAC (see chain.ts). */
export type Entry = {
  workspaceId: Uuid<'workspace'>
  walletId: Uuid<'wallet'>
  sequence: number
  transferId: Uuid<'transfer'>
  direction: 'IN' | 'OUT'
  amount: string
  balanceAfter: string
  /** How many of the wallet's flows, up to this one, are of transfers between wallets. */
  orderCount: number
  createdAt: Date
}
