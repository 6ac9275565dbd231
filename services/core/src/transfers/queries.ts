import { type Page, type TransferFilter, type TransferOrder, uuidFromId } from '../../contract/index.ts'
import { batched } from '../db/batched.ts'
import type { Queryable } from '../db/statement.ts'
import type { Transfer } from '../ledger/posting.ts'
import { findByBizId, findById } from '../ledger/queries.ts'
import {
  emptyPage,
  idBeginsWith,
  type List,
  type ListRequest,
  readPage,
  type Search,
  type Sequence,
  type SortField,
  textBeginsWith,
  Values,
} from '../lists.ts'
import {
  findWallet,
  flowPartsFor,
  flowsOfWallet,
  flowsWithTransfers,
  ordersOfWallet,
  transfersOfWallet,
} from '../wallets/queries.ts'
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
 * A transfer order by its transferId or its bizId, which never have the same form. Deposits and withdrawals are no
 * orders. Null when absent or of another workspace: no telling which.
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

const orderColumns = `
  t.id as "transferId", t.biz_id as "bizId", t.amount, t.currency, t.source_wallet_id as "sourceWalletId",
  t.target_wallet_id as "targetWalletId", t.remark, t.created_at as "createdAt"`

/** A page of a workspace's transfer orders (section 4). Null when there is no such workspace. */
export async function listOrders(
  db: Queryable,
  workspaceId: string,
  { filter, sort, page, size }: ListRequest<TransferFilter>,
): Promise<Page<TransferOrder> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) return null
  const values = new Values(workspace)
  const shows = { columns: orderColumns, from: 'transfer t' }
  const list: List = { ...searchOfWorkspace(filter, values), shows, created: filter, sort, page, size }
  return readPage(db, list, values, toOrder)
}

function searchOfWorkspace(filter: TransferFilter, values: Values): Search {
  const named = namedOrders(filter, values)
  const currency = filter.currency ? [`t.currency = ${values.bind(filter.currency, 'text')}`] : []
  return {
    sequence: ordersOfWorkspace,
    conditions: [...(named?.conditions ?? []), ...currency],
    parts: named?.parts,
    findIn: named ? ordersOfWorkspace : undefined,
  }
}

/** A page of the transfer orders of one wallet, on either side. Null when the workspace has no such wallet. */
export async function listOrdersOfWallet(
  db: Queryable,
  workspaceId: string,
  walletId: string,
  { filter, sort, page, size }: ListRequest<TransferFilter>,
): Promise<Page<TransferOrder> | null> {
  const workspace = uuidFromId('workspace', workspaceId)
  const wallet = uuidFromId('wallet', walletId)
  if (!workspace || !wallet) return null
  if (filter.currency) {
    const found = await findWallet(db, workspaceId, walletId)
    if (!found) return null
    // A wallet keeps its currency: all of its orders match, or none.
    if (found.currency !== filter.currency) return emptyPage(size)
  }
  const values = new Values(workspace, wallet)
  const shows = { columns: orderColumns, from: flowsWithTransfers }
  const list: List = { ...searchOfWallet(filter, sort, values), shows, created: filter, sort, page, size }
  return readPage(db, list, values, toOrder)
}

function searchOfWallet(filter: TransferFilter, sort: SortField[], values: Values): Search {
  const named = namedOrders(filter, values)
  if (!named) return { sequence: ordersOfWallet, conditions: [], parts: flowPartsFor(sort) }
  const conditions = [...named.conditions, 't.number is not null']
  return { sequence: flowsOfWallet, conditions, parts: named.parts, findIn: transfersOfWallet }
}

/** The orders whose names begin as the filter says; null when it does not say. */
function namedOrders(
  { transferIdPrefix, bizIdPrefix }: TransferFilter,
  values: Values,
): Pick<Search, 'conditions' | 'parts'> | null {
  if (!transferIdPrefix && !bizIdPrefix) return null
  const idBegins = (prefix: string) => idBeginsWith(values, 't.id', 'transfer', prefix)
  return {
    conditions: transferIdPrefix ? [idBegins(transferIdPrefix)] : [],
    // Without one from the client, the bizId of an order is its transferId.
    parts: bizIdPrefix
      ? [textBeginsWith(values, 't.biz_id', bizIdPrefix), `t.biz_id is null and ${idBegins(bizIdPrefix)}`]
      : undefined,
  }
}
