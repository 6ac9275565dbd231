import { idFromUuid, type Page, type TransferFilter, type TransferOrder, uuidFromId } from '@workspace-wallet/contract'
import { batched } from '../database/batched.ts'
import { idBeginsWith, idEquals, isPrefixOfFewIds, textBeginsWith, Values } from '../database/lists/conditions.ts'
import type { List, ListRequest, Search, Sequence, SortField } from '../database/lists/list.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { readPage } from '../database/lists/page.ts'
import { uuid } from '../database/tables/columns.ts'
import { type FoundRow, rowFrom, selectColumns } from '../database/tables/table.ts'
import type { TransferWithEntries } from '../ledger/chain/chain.ts'
import type { Transfer } from '../ledger/chain/transfer.ts'
import { nameOf } from '../ledger/decide/commands.ts'
import type { NameKey } from '../ledger/decide/requests.ts'
import { type FoundTransfer, findTransfers, lastReversalsOf } from '../ledger/store/queries.ts'
import { type CheckedReads, requireChained, unchainedRowError } from '../ledger/store/require-signed.ts'
import { flowPartsFor, flowsOfWallet, ordersOfWallet, transfersOfWallet } from '../wallets/queries.ts'
import { shownTransferColumns, toOrder } from './operations.ts'

/** Reads transfers by names of one kind. `kept` returns the name of this kind that a transfer has. */
function readTransfers(kept: (transfer: Transfer) => string | null) {
  return batched({
    readMany: ({ reads }: CheckedReads, names: readonly NameKey<'transfer'>[]) => findTransfers(reads, names),
    nameOf: {
      key: ({ workspaceId, name }) => workspaceId + ('id' in name ? name.id : name.bizId),
      row: ({ transfer }) => transfer.workspaceId + kept(transfer),
    },
    resultOf({ chainKey }, found) {
      requireChained(chainKey, found)
      return found
    },
  })
}

const readById = readTransfers(({ transferId }) => transferId)
const readByBizId = readTransfers(({ bizId }) => bizId)

/** An order, and the sum of its reversals; null without any. */
export type FoundOrder = TransferWithEntries & { reversedAmount: string | null }

/**
 * A transfer order by its transferId or bizId, which never have the same form (section 2.4). Null if it is absent, of
 * another workspace, or a deposit or withdrawal.
 *
 * @throws ModifiedRow
 */
export async function findOrder(core: CheckedReads, workspaceId: string, name: string): Promise<FoundOrder | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const key = { workspaceId: workspace, name: nameOf('transfer', name) }
  const found = 'id' in key.name ? await readById(core, key) : await readByBizId(core, key)
  if (found?.transfer.type !== 'TRANSFER') return null
  return { ...found, reversedAmount: await readReversedAmount(core, found) }
}

/** Transfers are never changed or removed, so the last reversal is read after its order without a race. */
async function readReversedAmount(core: CheckedReads, found: FoundTransfer): Promise<string | null> {
  const [name] = lastReversalsOf([found])
  if (!name) return null
  const reversal = (await readById(core, name))?.transfer
  const { workspaceId, transferId } = found.transfer
  if (reversal?.reversesId !== transferId)
    throw unchainedRowError(
      'transfer',
      workspaceId,
      `the last reversal of transfer ${idFromUuid('transfer', transferId)}`,
    )
  return reversal.reversedTotal
}

const ordersOfWorkspace: Sequence = {
  owner: 'select order_count as total from ledger where workspace_id = $1',
  table: 'transfer t',
  where: `t.workspace_id = $1 and t.type = 'TRANSFER'`,
  number: 't.position',
  createdAt: 't.created_at',
  sortable: { createdAt: 't.created_at', updatedAt: 't.created_at', amount: 't.amount', status: null },
  numberOf: nth =>
    `(${nth} + greatest(0, ${othersBefore(nth, 'transfer', `type <> 'TRANSFER'`)}, ${othersBefore(nth, 'journal')}))`,
}

/**
 * SQL for the number of events before the n-th order that are not orders, as the last one of them in this table shows: its
 * position minus the orders up to it. Null if the table has no such event.
 */
function othersBefore(nth: string, table: 'transfer' | 'journal', condition = 'true'): string {
  return `(
    select position - order_count from ${table} where workspace_id = $1 and ${condition} and order_count < ${nth}
    order by order_count desc, position desc limit 1)`
}

/** Selects the sum of the reversals of an order, which its last reversal has; null without any. */
const reversedAmount = (workspaceId: string, transferId: string) =>
  `(select r.reversed_total from transfer r where r.workspace_id = ${workspaceId}
    and r.reverses_id between ${transferId} and ${transferId} order by r.reverses_id desc, r.position desc limit 1)`

/** The columns of an order in the view `flow`. */
const orderColumnsOfFlow = { ...shownTransferColumns, transferId: uuid('transfer') }

type FoundListed = FoundRow<typeof shownTransferColumns> & { reversedAmount: string | null }

function toListed({ reversedAmount, ...found }: FoundListed): TransferOrder {
  return toOrder({ ...rowFrom(shownTransferColumns, found), reversedAmount })
}

/** A page of a workspace's transfer orders (section 4); null if there is no such workspace. */
export async function listOrders(
  db: ListDatabase,
  workspaceId: string,
  { filter, sort, page, size }: ListRequest<TransferFilter>,
): Promise<Page<TransferOrder> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const values = new Values(workspace)
  const columns = `${selectColumns(shownTransferColumns, 't')}, ${reversedAmount('t.workspace_id', 't.id')} as "reversedAmount"`
  const shows = { columns, from: 'transfer t' }
  const list: List = { ...searchOfWorkspace(filter, values), workspace, shows, filter, sort, page, size }
  return readPage(db, list, values, toListed)
}

function searchOfWorkspace(filter: TransferFilter, values: Values): Search {
  return {
    sequence: ordersOfWorkspace,
    ...matchesOf(filter, values),
    findIn: hasSelectiveName(filter) ? ordersOfWorkspace : undefined,
  }
}

/** The conditions of a filter on `transfer t`. */
function matchesOf(filter: TransferFilter, values: Values): Pick<Search, 'conditions' | 'parts'> {
  const { currency, transferIdPrefix, bizIdPrefix, reference, holdId, batchId, reversesTransferId } = filter
  return {
    conditions: [
      ...(transferIdPrefix ? idBeginsWith(values, 't.id', 'transfer', transferIdPrefix) : []),
      ...(currency ? [`t.currency = ${values.bind(currency, 'text')}`] : []),
      ...(reference ? [`t.reference = ${values.bind(reference, 'text')}`] : []),
      ...(holdId ? [idEquals(values, 't.hold_id', 'hold', holdId)] : []),
      ...(batchId ? [idEquals(values, 't.batch_id', 'transfer', batchId)] : []),
      ...(reversesTransferId ? [idEquals(values, 't.reverses_id', 'transfer', reversesTransferId)] : []),
    ],
    parts: bizIdPrefix ? bizIdParts(bizIdPrefix, values) : undefined,
  }
}

/** A page of the transfer orders from or to one wallet; null if the workspace has no such wallet. */
export async function listOrdersOfWallet(
  db: ListDatabase,
  workspaceId: string,
  walletId: string,
  { filter, sort, page, size }: ListRequest<TransferFilter>,
): Promise<Page<TransferOrder> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  if (!workspace || !wallet) return null
  const values = new Values(workspace, wallet)
  const columns = `${selectColumns(orderColumnsOfFlow, 'f')}, ${reversedAmount('f.workspace_id', 'f.transfer_id')} as "reversedAmount"`
  const shows = { columns, from: 'flow f' }
  const list: List = { ...searchOfWallet(filter, sort, values), workspace, shows, filter, sort, page, size }
  return readPage(db, list, values, toListed)
}

function searchOfWallet(filter: TransferFilter, sort: SortField[], values: Values): Search {
  if (hasSelectiveName(filter)) {
    const { conditions, parts } = matchesOf(filter, values)
    return {
      sequence: flowsOfWallet,
      conditions: [`t.type = 'TRANSFER'`, ...conditions],
      parts,
      findIn: transfersOfWallet,
    }
  }
  const { currency, transferIdPrefix } = filter
  const conditions = transferIdPrefix ? idBeginsWith(values, 'f.transfer_id', 'transfer', transferIdPrefix) : []
  return {
    sequence: currency ? ordersOfWalletIn(values.bind(currency, 'text')) : ordersOfWallet,
    conditions,
    parts: conditions.length === 0 ? flowPartsFor(sort) : undefined,
  }
}

/** The currency of a wallet never changes, so all of its orders match or none. */
function ordersOfWalletIn(currency: string): Sequence {
  return {
    ...ordersOfWallet,
    owner: `select case currency when ${currency} then order_count else 0 end as total
      from wallet where workspace_id = $1 and id = $2 and kind = 'CUSTOMER'`,
    where: `${ordersOfWallet.where} and (select total from owner) > 0`,
  }
}

/** Whether the filter has a name or a prefix that an index narrows down to few rows. */
function hasSelectiveName({ transferIdPrefix = '', ...filter }: TransferFilter): boolean {
  const names = [filter.bizIdPrefix, filter.reference, filter.holdId, filter.batchId, filter.reversesTransferId]
  return names.some(name => name !== undefined) || isPrefixOfFewIds('transfer', transferIdPrefix)
}

/** An order without its own bizId has its transferId as bizId. Each part has an index. */
function bizIdParts(prefix: string, values: Values): string[] {
  const unnamed = ['t.biz_id is null', ...idBeginsWith(values, 't.id', 'transfer', prefix)].join(' and ')
  return [textBeginsWith(values, 't.biz_id', prefix), unnamed]
}
