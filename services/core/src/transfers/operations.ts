import {
  type BatchItem,
  type CompletedOrder,
  type CreateBatchInput,
  type CreateTransferBody,
  type CreateTransferInput,
  Decimal,
  idFromUuid,
  isReversal,
  type ReverseTransferBody,
  type ReverseTransferInput,
  type TransferBatch,
  type TransferOrder,
} from '@workspace-wallet/contract'
import type { RowOf } from '../database/tables/table.ts'
import { transferColumns } from '../database/tables/transfer.ts'
import { callerOf, nameOf, newId, requestOf, walletRefOf } from '../ledger/decide/commands.ts'
import type { MadeTransfer, Posting, Reversal } from '../ledger/decide/requests.ts'
import type { Shards } from '../ledger/posting/shards.ts'

type Ledger = { shards: Shards }
type Given = Pick<Posting, 'transferId' | 'batchId' | 'actor' | 'requestId' | 'clientAddress'>

/**
 * Moves money between two wallets of a workspace (section 2.4), or captures a hold. Idempotent by bizId, and by transferId
 * if the caller generated one.
 *
 * @throws DomainError GA2032, T005, T004, W001, H001, H004, W002, H002, T003, H003, T002; S002 not posted; S003
 *   outcome unknown
 */
export async function createTransfer(
  { shards }: Ledger,
  actor: string,
  input: CreateTransferInput,
): Promise<TransferOrder> {
  const transferId = newId('transfer', input.transferId)
  const given = { transferId, batchId: null, ...callerOf(actor, input) }
  const [made] = await shards.post(requestOf(input, [postingOf(input.order, given)]))
  return orderOf(made)
}

/**
 * Posts the items of a batch in one commit, or none of them. Idempotent by bizId.
 *
 * @throws DomainError as `createTransfer` and `reverseTransfer`, with the index of the first item that is rejected; S002 not
 *   posted; S003 outcome unknown
 */
export async function createBatch({ shards }: Ledger, actor: string, input: CreateBatchInput): Promise<TransferBatch> {
  const items = input.batch.transfers
  const ids = items.map((_, at) => newId('transfer', input.transferIds?.[at]))
  const caller = callerOf(actor, input)
  const commands = items.map((item, at) => commandOf(item, { transferId: ids[at]!, batchId: ids[0]!, ...caller }))
  const made = await shards.post(requestOf(input, commands))
  return { transfers: made.map(orderOf) }
}

/**
 * Moves money from the target of a transfer back to its source. Idempotent by bizId.
 *
 * @throws DomainError GA2032, T005, T001, T006, W002, T003, T007, T002; S002 not posted; S003 outcome unknown
 */
export async function reverseTransfer(
  { shards }: Ledger,
  actor: string,
  input: ReverseTransferInput,
): Promise<TransferOrder> {
  const transferId = newId('transfer', input.transferId)
  const given = { transferId, batchId: null, ...callerOf(actor, input) }
  const [made] = await shards.post(requestOf(input, [{ ...reversalOf(input.reversal, given), reason: input.reason }]))
  return orderOf(made)
}

function commandOf(item: BatchItem, given: Given): Posting | Reversal {
  return isReversal(item) ? reversalOf(item, given) : postingOf(item, given)
}

function postingOf(order: CreateTransferBody, given: Given): Posting {
  const { sourceWalletId, targetWalletId, amount, currency, bizId, remark, reference, holdId, holdRemainder } = order
  return {
    kind: 'posting',
    type: 'TRANSFER',
    ...given,
    bizId: bizId ?? null,
    sourceWalletId: walletRefOf(sourceWalletId),
    targetWalletId: walletRefOf(targetWalletId),
    amount,
    currency,
    remark: remark ?? null,
    reference: reference ?? null,
    draw: holdId === undefined ? null : { hold: nameOf('hold', holdId), keepsRest: holdRemainder === 'KEEP' },
  }
}

function reversalOf(reversal: ReverseTransferBody, given: Given): Reversal {
  const { reversesTransferId, amount, currency, bizId, remark, reference } = reversal
  return {
    kind: 'reversal',
    ...given,
    bizId,
    reverses: nameOf('transfer', reversesTransferId),
    amount,
    currency,
    remark: remark ?? null,
    reference: reference ?? null,
  }
}

function orderOf({ transfer, reversedAmount }: MadeTransfer): TransferOrder {
  return toOrder({ ...transfer, reversedAmount })
}

const { workspaceId: _, type, position, orderCount, sourceSequence, targetSequence, ...ofOrder } = transferColumns
const { holdRemaining, reversedTotal, actor, requestId, clientAddress, ...shown } = ofOrder
/** The columns of a transfer that its order contains. */
export const shownTransferColumns = shown
export type ShownTransfer = RowOf<typeof shownTransferColumns>

/** @param reversedAmount the sum of its reversals; null without any */
export function toOrder(transfer: ShownTransfer & { reversedAmount: string | null }): TransferOrder {
  return { ...toCompletedOrder(transfer), reversedAmount: new Decimal(transfer.reversedAmount ?? 0) }
}

export function toCompletedOrder(transfer: ShownTransfer): CompletedOrder {
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
    reference: transfer.reference,
    holdId: transfer.holdId && idFromUuid('hold', transfer.holdId),
    batchId: transfer.batchId && idFromUuid('transfer', transfer.batchId),
    reversesTransferId: transfer.reversesId && idFromUuid('transfer', transfer.reversesId),
    createdAt: transfer.createdAt,
    // A transfer is written once and never changes.
    updatedAt: transfer.createdAt,
    completedAt: transfer.createdAt,
  }
}
