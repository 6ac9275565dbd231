import { type Page, type TransferFilter, type TransferOrder, uuidFromId } from '@workspace-wallet/contract'
import { batched } from '../database/batched.ts'
import { idBeginsWith, isPrefixOfFewIds, textBeginsWith, Values } from '../database/lists/conditions.ts'
import type { List, ListRequest, Search, Sequence, SortField } from '../database/lists/list.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { readPage } from '../database/lists/page.ts'
import type { Queryable } from '../database/statement.ts'
import type { Transfer } from '../ledger/chain/transfer.ts'
import { findByBizId, findById } from '../ledger/posting/load.ts'
import { flowPartsFor, flowsOfWallet, ordersOfWallet, transfersOfWallet } from '../wallets/queries.ts'
import { toOrder } from './operations.ts'

const readById = batched(findById, {
  key: key => key.workspaceId + key.transferId,
  row: row => row.workspaceId + row.transferId,
})
const readByBizId = batched(findByBizId, {
  key: key => key.workspaceId + key.bizId,
  row: row => row.workspaceId + row.bizId,
})

/**
 * A transfer order by its transferId or bizId, which never have the same form (section 2.4). Null if it is absent, of
 * another workspace, or a deposit or withdrawal.
 */
export async function findOrder(db: Queryable, workspaceId: string, name: string): Promise<Transfer | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace || name.includes('\u0000')) return null
  const id = uuidFromId('transfer', name)
  const transfer = id
    ? await readById(db, { workspaceId: workspace, transferId: id })
    : await readByBizId(db, { workspaceId: workspace, bizId: name })
  return transfer?.type === 'TRANSFER' ? transfer : null
}

const ordersOfWorkspace: Sequence = {
  owner: 'select order_count as total from ledger where workspace_id = $1',
  table: 'transfer t',
  where: 't.workspace_id = $1 and t.number is not null',
  number: 't.number',
  createdAt: 't.created_at',
  sortable: { createdAt: 't.created_at', updatedAt: 't.created_at', amount: 't.amount', status: null },
}

/** The columns of an order: of `transfer t`, or of `flow f`. */
const orderColumns = (table: 't' | 'f') => `
  ${table === 't' ? 't.id' : 'f.transfer_id'} as "transferId", ${table}.biz_id as "bizId", ${table}.amount,
  ${table}.currency, ${table}.source_wallet_id as "sourceWalletId", ${table}.target_wallet_id as "targetWalletId",
  ${table}.remark, ${table}.created_at as "createdAt"`

/** A page of a workspace's transfer orders (section 4); null if there is no such workspace. */
export async function listOrders(
  db: ListDatabase,
  workspaceId: string,
  { filter, sort, page, size }: ListRequest<TransferFilter>,
): Promise<Page<TransferOrder> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const values = new Values(workspace)
  const shows = { columns: orderColumns('t'), from: 'transfer t' }
  const list: List = { ...searchOfWorkspace(filter, values), workspace, shows, filter, sort, page, size }
  return readPage(db, list, values, toOrder)
}

function searchOfWorkspace(filter: TransferFilter, values: Values): Search {
  const { currency, transferIdPrefix, bizIdPrefix } = filter
  return {
    sequence: ordersOfWorkspace,
    conditions: [
      ...(transferIdPrefix ? idBeginsWith(values, 't.id', 'transfer', transferIdPrefix) : []),
      ...(currency ? [`t.currency = ${values.bind(currency, 'text')}`] : []),
    ],
    parts: bizIdPrefix ? bizIdParts(bizIdPrefix, values) : undefined,
    findIn: hasSelectiveName(filter) ? ordersOfWorkspace : undefined,
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
  const shows = { columns: orderColumns('f'), from: 'flow f' }
  const list: List = { ...searchOfWallet(filter, sort, values), workspace, shows, filter, sort, page, size }
  return readPage(db, list, values, toOrder)
}

function searchOfWallet(filter: TransferFilter, sort: SortField[], values: Values): Search {
  const { currency, transferIdPrefix, bizIdPrefix } = filter
  if (hasSelectiveName(filter))
    return {
      sequence: flowsOfWallet,
      conditions: [
        't.number is not null',
        ...(transferIdPrefix ? idBeginsWith(values, 't.id', 'transfer', transferIdPrefix) : []),
        ...(currency ? [`t.currency = ${values.bind(currency, 'text')}`] : []),
      ],
      parts: bizIdPrefix ? bizIdParts(bizIdPrefix, values) : undefined,
      findIn: transfersOfWallet,
    }
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

/** Whether the filter has a prefix that an index narrows down to few rows. */
function hasSelectiveName({ transferIdPrefix = '', bizIdPrefix }: TransferFilter): boolean {
  return bizIdPrefix !== undefined || isPrefixOfFewIds('transfer', transferIdPrefix)
}

/** An order without its own bizId has its transferId as bizId. Each part has an index. */
function bizIdParts(prefix: string, values: Values): string[] {
  const unnamed = ['t.biz_id is null', ...idBeginsWith(values, 't.id', 'transfer', prefix)].join(' and ')
  return [textBeginsWith(values, 't.biz_id', prefix), unnamed]
}
