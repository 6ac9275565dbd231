import type { TransferType } from '@workspace-wallet/contract'

/** Money that moved from one wallet to another of one workspace. Ids are UUIDs. */
export type Transfer = {
  type: TransferType
  workspaceId: string
  transferId: string
  /** Null when the client left the naming to us. */
  bizId: string | null
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: string
  remark: string | null
  actor: string
  requestId: string
  clientAddress: string | null
  /** Counts the workspace's transfers between wallets; null for deposits and withdrawals. */
  number: number | null
  sourceSequence: number
  targetSequence: number
  createdAt: Date
}

/** One entry of a transfer, before the chain binds it (see chain.ts). */
export type Entry = {
  workspaceId: string
  walletId: string
  sequence: number
  transferId: string
  direction: 'IN' | 'OUT'
  amount: string
  balanceAfter: string
  orderNumber: number | null
  createdAt: Date
}
