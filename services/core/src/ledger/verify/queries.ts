import type { Snapshot, TextRow } from '../../database/snapshot.ts'

type Text = string | null

/** A wallet as stored, with `last_posted_at` of its ledger. */
export type WalletText = {
  workspaceId: Text
  id: Text
  kind: Text
  currency: Text
  balance: Text
  sequence: Text
  orderCount: Text
  head: Text
  lastPostedAt: Text
  number: Text
  name: Text
  status: Text
  createdAt: Text
  updatedAt: Text
  revision: Text
  mac: Text
}

/** One entry of a transfer as stored, with the rest of its transfer. */
export type FlowText = {
  workspaceId: Text
  walletId: Text
  sequence: Text
  direction: 'OUT' | 'IN'
  orderCount: Text
  balanceAfter: Text
  mac: Text
  transferId: Text
  type: Text
  bizId: Text
  number: Text
  amount: Text
  currency: Text
  sourceWalletId: Text
  targetWalletId: Text
  sourceSequence: Text
  targetSequence: Text
  remark: Text
  actor: Text
  requestId: Text
  clientAddress: Text
  createdAt: Text
}

/** All wallets in the order of their keys. UUIDs sort the same as values and as text. */
export async function* walletsInOrder(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<WalletText[]> {
  const sql = `
    select w.workspace_id, w.id, w.kind, w.currency, w.balance, w.sequence, w.order_count, w.head, l.last_posted_at,
      w.number, w.name, w.status, w.created_at, w.updated_at, w.revision, w.mac
    from public.wallet w left join public.ledger l on l.workspace_id = w.workspace_id
    where $1::uuid is null or w.workspace_id = $1
    order by w.workspace_id, w.id`
  for await (const rows of snapshot.batches(sql, [workspaceId])) yield rows.map(toWallet)
}

/** The entries of one side of all transfers. */
function entriesOf(side: 'source' | 'target'): string {
  return `
    select workspace_id, ${side}_wallet_id as wallet_id, ${side}_sequence as sequence,
      '${side === 'source' ? 'OUT' : 'IN'}' as direction, ${side}_order_count as order_count, ${side}_balance as balance_after,
      ${side}_mac as mac, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
      source_sequence, target_sequence, remark, actor, request_id, client_address, created_at
    from public.transfer where $1::uuid is null or workspace_id = $1`
}

/** All entries in the order of wallets and sequences. */
export async function* flowsInOrder(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<FlowText[]> {
  const sql = `${entriesOf('source')} union all ${entriesOf('target')} order by workspace_id, wallet_id, sequence`
  for await (const rows of snapshot.batches(sql, [workspaceId])) yield rows.map(toFlow)
}

function toWallet(row: TextRow): WalletText {
  return {
    workspaceId: row[0]!,
    id: row[1]!,
    kind: row[2]!,
    currency: row[3]!,
    balance: row[4]!,
    sequence: row[5]!,
    orderCount: row[6]!,
    head: row[7]!,
    lastPostedAt: row[8]!,
    number: row[9]!,
    name: row[10]!,
    status: row[11]!,
    createdAt: row[12]!,
    updatedAt: row[13]!,
    revision: row[14]!,
    mac: row[15]!,
  }
}

function toFlow(row: TextRow): FlowText {
  return {
    workspaceId: row[0]!,
    walletId: row[1]!,
    sequence: row[2]!,
    direction: row[3] as FlowText['direction'],
    orderCount: row[4]!,
    balanceAfter: row[5]!,
    mac: row[6]!,
    transferId: row[7]!,
    type: row[8]!,
    bizId: row[9]!,
    number: row[10]!,
    amount: row[11]!,
    currency: row[12]!,
    sourceWalletId: row[13]!,
    targetWalletId: row[14]!,
    sourceSequence: row[15]!,
    targetSequence: row[16]!,
    remark: row[17]!,
    actor: row[18]!,
    requestId: row[19]!,
    clientAddress: row[20]!,
    createdAt: row[21]!,
  }
}
