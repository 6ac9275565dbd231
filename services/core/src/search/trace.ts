import {
  Decimal,
  DomainError,
  type Hold,
  type Id,
  idFromUuid,
  type TracedFlow,
  type TracedTransfer,
  type TransferName,
  type TransferRecord,
  tracedLimit,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { findHold } from '../holds/queries.ts'
import { continueChains, findContinued } from '../ledger/chain/chain.ts'
import { type FoundTransfer, findTransfers } from '../ledger/store/queries.ts'
import { ModifiedRow } from '../ledger/store/require-signed.ts'
import { receiptOf } from '../receipts/operations.ts'
import { Transfer } from '../transfers/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { type Searcher, type SearchParts, searchIn } from './bounded-search.ts'
import { checkedRecordOf, findNamed, keyOf } from './transfers.ts'

type Parts = SearchParts & Parameters<typeof receiptOf>[0] & Parameters<typeof findHold>[0]

/**
 * A transfer, deposit or withdrawal with all that belongs to it. Says of each flow whether it is genuine, and shows also what is not.
 *
 * @throws DomainError T001; S012 for a bizId without a workspace
 */
export async function traceTransfer(core: Parts, by: Searcher, name: TransferName): Promise<TracedTransfer> {
  const { wallets, ...named } = await searchIn(core, by, { blamed: 'name', read: em => findRelated(em, name) })
  // The rows that are shown are those that are checked: they are read again, and everything else about them with their MACs.
  const rows = await readRows(core, new Set([named.transfer, ...named.others]))
  const stored = rows.get(named.transfer.id)
  if (!stored) throw new DomainError('T001')
  const isGenuine = findContinued(core.chainKey, stored)
  const { transferId, batchId, reversesId, type } = stored.transfer
  const related = named.others.flatMap(({ id }) => rows.get(id) ?? [])
  const reversals = related.filter(({ transfer }) => transfer.reversesId === transferId)
  const lastReversal = reversals.at(-1)
  const modified = related.filter(each => !continueChains(core.chainKey, each))
  // A receipt depends on the last reversal, too.
  const hasReceipt =
    type === 'TRANSFER' && isGenuine.source && isGenuine.target && !(lastReversal && modified.includes(lastReversal))
  const flowOf = (side: 'source' | 'target'): TracedFlow => {
    const walletId = idFromUuid('wallet', stored.transfer[`${side}WalletId`])
    const wallet = wallets.find(each => each.id === walletId && each.kind === 'CUSTOMER')
    return {
      walletId: wallet?.id ?? null,
      walletName: wallet?.name ?? null,
      sequence: stored.transfer[`${side}Sequence`],
      balanceAfter: decimalOf(stored[side].balanceAfter),
      isGenuine: isGenuine[side],
    }
  }
  const reverses = related.find(({ transfer }) => transfer.transferId === reversesId)
  const record = checkedRecordOf(stored)
  return {
    transfer: record,
    source: flowOf('source'),
    target: flowOf('target'),
    reversals: reversals.slice(0, tracedLimit).map(checkedRecordOf),
    reversedAmount: decimalOf(lastReversal?.transfer.reversedTotal ?? null) ?? new Decimal(0),
    reverses: reverses ? checkedRecordOf(reverses) : null,
    hold: await holdOf(core, record),
    batch: related.filter(({ transfer }) => batchId !== null && transfer.batchId === batchId).map(checkedRecordOf),
    modified: modified.map(({ transfer }) => idFromUuid('transfer', transfer.transferId)),
    receipt: hasReceipt ? await receiptOf(core, record.workspaceId, record.transferId) : null,
  }
}

/** The transfer, its wallets, and in the order of their positions its reversals, what it reverses and its batch. */
async function findRelated(
  em: Em,
  name: TransferName,
): Promise<{ transfer: Transfer; wallets: Wallet[]; others: Transfer[] }> {
  const transfer = await findNamed(em, name)
  if (!transfer) throw new DomainError('T001')
  const { workspaceId, id, reversesId, batchId, sourceWalletId, targetWalletId } = transfer
  const inOrder = { orderBy: { position: 'asc' }, limit: tracedLimit } as const
  const reversing = { workspaceId, reversesId: id }
  const related = [
    ...(await em.find(Transfer, reversing, inOrder)),
    // The last reversal has the sum of all of them.
    ...(await em.find(Transfer, reversing, { orderBy: { position: 'desc' }, limit: 1 })),
    ...(reversesId ? await em.find(Transfer, { workspaceId, id: reversesId }) : []),
    ...(batchId ? await em.find(Transfer, { workspaceId, batchId }, inOrder) : []),
  ]
  return {
    transfer,
    wallets: await em.find(Wallet, { workspaceId, id: { $in: [sourceWalletId, targetWalletId] } }),
    others: [...new Set(related)].sort((a, b) => a.position - b.position),
  }
}

/** The rows of transfers with their flows, by their IDs. */
async function readRows(core: Parts, transfers: Set<Transfer>): Promise<Map<Id<'transfer'>, FoundTransfer>> {
  const found = await findTransfers(core.reads, [...transfers].map(keyOf))
  return new Map(found.map(each => [idFromUuid('transfer', each.transfer.transferId), each]))
}

/** Null without a hold, and if the row of the hold was modified outside the service. */
async function holdOf(core: Parts, { workspaceId, holdId }: TransferRecord): Promise<Hold | null> {
  if (!holdId) return null
  try {
    return await findHold(core, workspaceId, holdId)
  } catch (error) {
    if (error instanceof ModifiedRow) return null
    throw error
  }
}

function decimalOf(text: string | null): Decimal | null {
  return text === null ? null : new Decimal(text)
}
