import {
  type CreateTransferInput,
  DomainError,
  idFromUuid,
  mintId,
  type TransferOrder,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Transfer } from '../ledger/chain/transfer.ts'
import { malformedWallet } from '../ledger/posting/posting.ts'
import type { Shards } from '../ledger/posting/shards.ts'

const defaultBudgetMs = 10_000

/**
 * Moves money between two wallets of a workspace (section 2.4). Idempotent by bizId, and by transferId if the caller
 * generated one.
 *
 * @throws DomainError S012, GA2032, T005, T004, W001, W002, T003, T002; S002 not posted; S003 outcome unknown
 */
export async function createTransfer(
  { shards }: { shards: Shards },
  actor: string,
  input: CreateTransferInput,
): Promise<TransferOrder> {
  const { order, caller } = input
  const workspaceId = uuidFromId('workspace', input.workspaceId)
  if (!workspaceId) throw new DomainError('GA2032')
  const transferId = uuidFromId('transfer', input.transferId ?? mintId('transfer'))
  if (!transferId) throw new DomainError('S012', { field: 'transferId', reason: 'NOT_A_BIZ_ID' })
  const transfer = await shards.post({
    type: 'TRANSFER',
    workspaceId,
    transferId,
    bizId: order.bizId ?? null,
    sourceWalletId: walletKey(order.sourceWalletId),
    targetWalletId: walletKey(order.targetWalletId),
    amount: order.amount,
    currency: order.currency,
    remark: order.remark ?? null,
    actor,
    requestId: caller.requestId,
    clientAddress: caller.address ?? null,
    mayBePosted: input.resend ?? false,
    deadlineMs: performance.now() + (input.budgetMs ?? defaultBudgetMs),
  })
  return toOrder(transfer)
}

/** The columns of a transfer that its order contains. */
export type ShownTransfer = Pick<
  Transfer,
  'transferId' | 'bizId' | 'amount' | 'currency' | 'sourceWalletId' | 'targetWalletId' | 'remark' | 'createdAt'
>

export function toOrder(transfer: ShownTransfer): TransferOrder {
  const transferId = idFromUuid('transfer', transfer.transferId)
  return {
    transferId,
    bizId: transfer.bizId ?? transferId,
    status: 'COMPLETED',
    amount: transfer.amount,
    currency: transfer.currency,
    sourceWalletId: idFromUuid('wallet', transfer.sourceWalletId),
    targetWalletId: idFromUuid('wallet', transfer.targetWalletId),
    remark: transfer.remark,
    createdAt: transfer.createdAt,
    // A transfer is written once and never changes.
    updatedAt: transfer.createdAt,
    completedAt: transfer.createdAt,
  }
}

function walletKey(walletId: string): string {
  return uuidFromId('wallet', walletId) ?? malformedWallet(walletId)
}
