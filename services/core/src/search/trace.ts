import {
  Decimal,
  DomainError,
  type Hold,
  type TracedFlow,
  type TracedTransfer,
  type TransferName,
  tracedLimit,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { findHold } from '../holds/queries.ts'
import { continueChains, findContinued, type StoredEntry } from '../ledger/chain/chain.ts'
import { findTransfers } from '../ledger/store/queries.ts'
import { ModifiedRow } from '../ledger/store/require-signed.ts'
import { receiptOf } from '../receipts/operations.ts'
import { Transfer } from '../transfers/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { type SearchParts, searchIn } from './bounded-search.ts'
import { findNamed, keyOf, toTransferRecord } from './transfers.ts'

type Parts = SearchParts & Parameters<typeof receiptOf>[0] & Parameters<typeof findHold>[0]

/**
 * A transfer, deposit or withdrawal with all that belongs to it. Says of each flow whether it is genuine, and shows also what is not.
 *
 * @throws DomainError T001; S012 for a bizId without a workspace
 */
export async function traceTransfer(core: Parts, actor: string, name: TransferName): Promise<TracedTransfer> {
  const { transfer, wallets, lastReversal, ...related } = await searchIn(core, {
    actor,
    blamed: 'name',
    read: em => readRelated(em, name),
  })
  const { workspaceId, id, type } = transfer
  const [stored] = await findTransfers(core.reads, [keyOf(transfer)])
  if (!stored) throw new DomainError('T001')
  const isGenuine = findContinued(core.chainKey, stored)
  const { reversals, reverses, batch } = related
  const others = [...reversals, lastReversal, reverses, ...batch].filter(each => each !== undefined && each !== null)
  const modified = await modifiedOf(core, others)
  // A receipt depends on the last reversal, too.
  const hasReceipt =
    type === 'TRANSFER' && isGenuine.source && isGenuine.target && !(lastReversal && modified.includes(lastReversal.id))
  const flowOf = (side: 'source' | 'target'): TracedFlow => {
    const wallet = wallets.find(each => each.id === transfer[`${side}WalletId`] && each.kind === 'CUSTOMER')
    return {
      walletId: wallet?.id ?? null,
      walletName: wallet?.name ?? null,
      sequence: transfer[`${side}Sequence`],
      balanceAfter: balanceAfter(stored[side]),
      isGenuine: isGenuine[side],
    }
  }
  return {
    transfer: toTransferRecord(transfer),
    source: flowOf('source'),
    target: flowOf('target'),
    reversals: reversals.map(toTransferRecord),
    reversedAmount: lastReversal?.reversedTotal ?? new Decimal(0),
    reverses: reverses && toTransferRecord(reverses),
    hold: await holdOf(core, transfer),
    batch: batch.map(toTransferRecord),
    modified,
    receipt: hasReceipt ? await receiptOf(core, workspaceId, id) : null,
  }
}

async function readRelated(em: Em, name: TransferName) {
  const transfer = await findNamed(em, name)
  if (!transfer) throw new DomainError('T001')
  const { workspaceId, id, reversesId, batchId, sourceWalletId, targetWalletId } = transfer
  const inOrder = { orderBy: { position: 'asc' }, limit: tracedLimit } as const
  const reversing = { workspaceId, reversesId: id }
  return {
    transfer,
    wallets: await em.find(Wallet, { workspaceId, id: { $in: [sourceWalletId, targetWalletId] } }),
    reversals: await em.find(Transfer, reversing, inOrder),
    lastReversal: (await em.find(Transfer, reversing, { orderBy: { position: 'desc' }, limit: 1 }))[0],
    reverses: reversesId ? await em.findOne(Transfer, { workspaceId, id: reversesId }) : null,
    batch: batchId ? await em.find(Transfer, { workspaceId, batchId }, inOrder) : [],
  }
}

/** The IDs of those of these transfers that the service has not written. */
async function modifiedOf(core: Parts, transfers: readonly Transfer[]): Promise<string[]> {
  const keys = new Map(transfers.map(each => [each.id, keyOf(each)]))
  const found = await findTransfers(core.reads, [...keys.values()])
  const genuine = new Set(
    found.filter(each => continueChains(core.chainKey, each)).map(({ transfer }) => transfer.transferId),
  )
  return [...keys.keys()].filter(id => !genuine.has(uuidFromId('transfer', id)))
}

/** Null without a hold, and if the row of the hold was modified outside the service. */
async function holdOf(core: Parts, { workspaceId, holdId }: Transfer): Promise<Hold | null> {
  if (!holdId) return null
  try {
    return await findHold(core, workspaceId, holdId)
  } catch (error) {
    if (error instanceof ModifiedRow) return null
    throw error
  }
}

function balanceAfter({ balanceAfter }: StoredEntry): Decimal | null {
  return balanceAfter === null ? null : new Decimal(balanceAfter)
}
