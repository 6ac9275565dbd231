import type { Uuid } from '@workspace-wallet/contract'
import type { RowOf } from '../../database/tables/table.ts'
import type { transferColumns } from '../../database/tables/transfer.ts'

/** A posted transfer between two wallets of one workspace. */
export type Transfer = RowOf<typeof transferColumns>

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
