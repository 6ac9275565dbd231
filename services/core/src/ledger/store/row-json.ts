import { Decimal, type Uuid } from '@workspace-wallet/contract'
import type { HoldRow, LedgerRow, WalletRow, WithMac } from '../../database/signed-rows.ts'

/**
 * A signed row as JSON, for statements that read it beside other rows. Decimals are text, times are milliseconds, bytes are hex. The
 * statement knows its workspace and its ID.
 */
export type JsonOf<Row> = { [Name in keyof Omit<Row, 'workspaceId' | 'id'>]: JsonValue<Row[Name]> } & { mac: string }
type JsonValue<Value> = Value extends Decimal | Buffer ? string : Value extends Date ? number : Value

/** SQL: a time in milliseconds. */
export const milliseconds = (column: string) => `round(date_part('epoch', ${column}) * 1000)`
/** SQL: bytes in hex. */
export const hex = (column: string) => `encode(${column}, 'hex')`

const jsonOf = <Row>(values: Record<keyof JsonOf<Row>, string>) =>
  `json_build_object(${Object.entries(values)
    .map(([name, value]) => `'${name}', ${value}`)
    .join(', ')})`

/** SQL: a row of `ledger l`. */
export const ledgerJson = jsonOf<LedgerRow>({
  status: 'l.status',
  walletCount: 'l.wallet_count',
  orderCount: 'l.order_count',
  holdCount: 'l.hold_count',
  limitCount: 'l.limit_count',
  position: 'l.position',
  journalHead: hex('l.journal_head'),
  lastPostedAt: milliseconds('l.last_posted_at'),
  haltReason: 'l.halt_reason',
  revision: 'l.revision',
  mac: hex('l.mac'),
})

/** SQL: a row of `hold`. */
export const holdJson = jsonOf<HoldRow>({
  number: 'number',
  walletNumber: 'wallet_number',
  bizId: 'biz_id',
  walletId: 'wallet_id',
  currency: 'currency',
  amount: 'amount::text',
  captured: 'captured::text',
  remaining: 'remaining::text',
  status: 'status',
  expiresAt: milliseconds('expires_at'),
  reference: 'reference',
  remark: 'remark',
  createdAt: milliseconds('created_at'),
  updatedAt: milliseconds('updated_at'),
  revision: 'revision',
  mac: hex('mac'),
})

/** SQL: a row of `wallet`. */
export const walletJson = jsonOf<WalletRow>({
  number: 'number',
  kind: 'kind',
  bizId: 'biz_id',
  name: 'name',
  currency: 'currency',
  status: 'status',
  frozenBy: 'frozen_by',
  balance: 'balance::text',
  held: 'held::text',
  heldUntil: milliseconds('held_until'),
  sequence: 'sequence',
  orderCount: 'order_count',
  holdCount: 'hold_count',
  head: hex('head'),
  createdAt: milliseconds('created_at'),
  updatedAt: milliseconds('updated_at'),
  revision: 'revision',
  mac: hex('mac'),
})

export function ledgerFrom(json: JsonOf<LedgerRow>, workspaceId: Uuid<'workspace'>): WithMac<LedgerRow> {
  return {
    ...json,
    workspaceId,
    lastPostedAt: new Date(json.lastPostedAt),
    journalHead: Buffer.from(json.journalHead, 'hex'),
    mac: Buffer.from(json.mac, 'hex'),
  }
}

export function holdFrom(json: JsonOf<HoldRow>, key: Pick<HoldRow, 'workspaceId' | 'id'>): WithMac<HoldRow> {
  return {
    ...json,
    ...key,
    captured: new Decimal(json.captured),
    remaining: new Decimal(json.remaining),
    expiresAt: new Date(json.expiresAt),
    createdAt: new Date(json.createdAt),
    updatedAt: new Date(json.updatedAt),
    mac: Buffer.from(json.mac, 'hex'),
  }
}

export function walletFrom(json: JsonOf<WalletRow>, key: Pick<WalletRow, 'workspaceId' | 'id'>): WithMac<WalletRow> {
  return {
    ...json,
    ...key,
    balance: new Decimal(json.balance),
    held: new Decimal(json.held),
    heldUntil: json.heldUntil === null ? null : new Date(json.heldUntil),
    head: Buffer.from(json.head, 'hex'),
    createdAt: new Date(json.createdAt),
    updatedAt: new Date(json.updatedAt),
    mac: Buffer.from(json.mac, 'hex'),
  }
}
