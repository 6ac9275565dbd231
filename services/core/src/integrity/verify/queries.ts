import type { Uuid } from '@workspace-wallet/contract'
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
  bizId: Text
  frozenBy: Text
  held: Text
  heldUntil: Text
  holdCount: Text
}

/** One flow of a transfer as stored, with the rest of its transfer. */
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
  position: Text
  ledgerOrderCount: Text
  reference: Text
  holdId: Text
  holdRemaining: Text
  reversesId: Text
  reversedTotal: Text
  batchId: Text
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
export async function* walletsInOrder(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<WalletText[]> {
  const sql = `
    select w.workspace_id, w.id, w.kind, w.currency, w.balance, w.sequence, w.order_count, w.head, l.last_posted_at,
      w.number, w.name, w.status, w.created_at, w.updated_at, w.revision, w.mac, w.biz_id,
      w.frozen_by, w.held, w.held_until, w.hold_count
    from public.wallet w left join public.ledger l on l.workspace_id = w.workspace_id
    where $1::uuid is null or w.workspace_id = $1
    order by w.workspace_id, w.id`
  for await (const rows of snapshot.batches(sql, [workspaceId])) yield rows.map(toWallet)
}

/** The flows of one side of all transfers. */
function entriesOf(side: 'source' | 'target'): string {
  return `
    select workspace_id, ${side}_wallet_id as wallet_id, ${side}_sequence as sequence,
      '${side === 'source' ? 'OUT' : 'IN'}' as direction, ${side}_order_count as order_count, ${side}_balance as balance_after,
      ${side}_mac as mac, id, type, biz_id, position, order_count as ledger_order_count, reference,
      hold_id, hold_remaining, reverses_id, reversed_total, batch_id, amount, currency, source_wallet_id, target_wallet_id,
      source_sequence, target_sequence, remark, actor, request_id, client_address, created_at
    from public.transfer where $1::uuid is null or workspace_id = $1`
}

/** All flows in the order of wallets and sequences. */
export async function* flowsInOrder(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<FlowText[]> {
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
    bizId: row[16]!,
    frozenBy: row[17]!,
    held: row[18]!,
    heldUntil: row[19]!,
    holdCount: row[20]!,
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
    position: row[10]!,
    ledgerOrderCount: row[11]!,
    reference: row[12]!,
    holdId: row[13]!,
    holdRemaining: row[14]!,
    reversesId: row[15]!,
    reversedTotal: row[16]!,
    batchId: row[17]!,
    amount: row[18]!,
    currency: row[19]!,
    sourceWalletId: row[20]!,
    targetWalletId: row[21]!,
    sourceSequence: row[22]!,
    targetSequence: row[23]!,
    remark: row[24]!,
    actor: row[25]!,
    requestId: row[26]!,
    clientAddress: row[27]!,
    createdAt: row[28]!,
  }
}
