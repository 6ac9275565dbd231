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

/** A flow as stored, with its transfer; null if the workspace has no transfer with that ID. */
export type FlowText = {
  workspaceId: Text
  walletId: Text
  sequence: Text
  transferId: Text
  direction: Text
  amount: Text
  balanceAfter: Text
  orderNumber: Text
  createdAt: Text
  mac: Text
  transfer: TransferText | null
}

export type TransferText = {
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

/** All flows in the order of wallets and sequences, each with its transfer. */
export async function* flowsInOrder(snapshot: Snapshot, workspaceId: string | null): AsyncGenerator<FlowText[]> {
  const sql = `
    select f.workspace_id, f.wallet_id, f.sequence, f.transfer_id, f.direction, f.amount, f.balance_after,
      f.order_number, f.created_at, f.mac,
      t.id, t.type, t.biz_id, t.number, t.amount, t.currency, t.source_wallet_id, t.target_wallet_id,
      t.source_sequence, t.target_sequence, t.remark, t.actor, t.request_id, t.client_address, t.created_at
    from public.flow f left join public.transfer t on t.workspace_id = f.workspace_id and t.id = f.transfer_id
    where $1::uuid is null or f.workspace_id = $1
    order by f.workspace_id, f.wallet_id, f.sequence`
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
    transferId: row[3]!,
    direction: row[4]!,
    amount: row[5]!,
    balanceAfter: row[6]!,
    orderNumber: row[7]!,
    createdAt: row[8]!,
    mac: row[9]!,
    transfer: row[10] === null ? null : toTransfer(row),
  }
}

function toTransfer(row: TextRow): TransferText {
  return {
    type: row[11]!,
    bizId: row[12]!,
    number: row[13]!,
    amount: row[14]!,
    currency: row[15]!,
    sourceWalletId: row[16]!,
    targetWalletId: row[17]!,
    sourceSequence: row[18]!,
    targetSequence: row[19]!,
    remark: row[20]!,
    actor: row[21]!,
    requestId: row[22]!,
    clientAddress: row[23]!,
    createdAt: row[24]!,
  }
}
