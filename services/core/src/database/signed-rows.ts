import { createHmac, type KeyObject } from 'node:crypto'
import type { Decimal, Uuid } from '@workspace-wallet/contract'

/**
 * Every row that decides about money or access has a MAC, so that somebody who can write to the database but does not
 * have the chain key cannot write a row that core accepts. Each update must raise the row's `revision` by one, which
 * PostgreSQL enforces, so an earlier row cannot be restored together with its MAC.
 *
 * The MAC covers every field of these types.
 */
type Signed = { revision: number }

export type SignedTable =
  | 'api_key'
  | 'hold'
  | 'ledger'
  | 'member'
  | 'operator'
  | 'spending_limit'
  | 'wallet'
  | 'webhook'
  | 'workspace'

/** A row with the MAC that is stored with it. */
export type WithMac<Row> = Row & { mac: Buffer }

export type WalletRow = Signed & {
  workspaceId: Uuid<'workspace'>
  id: Uuid<'wallet'>
  number: number | null
  kind: string
  bizId: string | null
  name: string
  currency: string
  status: string
  frozenBy: string | null
  balance: Decimal
  /** The sum that open holds reserve, and a time that is not after the first of them expires. */
  held: Decimal
  heldUntil: Date | null
  sequence: number
  orderCount: number
  holdCount: number
  head: Buffer
  createdAt: Date
  updatedAt: Date
}

export type LedgerRow = Signed & {
  workspaceId: Uuid<'workspace'>
  status: string
  walletCount: number
  orderCount: number
  holdCount: number
  /** The number of limits. Without any, none is loaded for a posting. */
  limitCount: number
  /** The position of the last event, and the MAC of the last row of the journal. */
  position: number
  journalHead: Buffer
  lastPostedAt: Date
  haltReason: string | null
}

export type HoldRow = Signed & {
  workspaceId: Uuid<'workspace'>
  id: Uuid<'hold'>
  number: number
  walletNumber: number
  bizId: string
  walletId: Uuid<'wallet'>
  currency: string
  amount: string
  captured: Decimal
  remaining: Decimal
  status: string
  expiresAt: Date
  reference: string | null
  remark: string | null
  createdAt: Date
  updatedAt: Date
}

/** What a key or a wallet may spend in a currency. A cleared limit has neither bound: its row is kept. */
export type LimitRow = Signed & {
  workspaceId: Uuid<'workspace'>
  /** `key:ak_…`, or `wallet:` and a UUID. */
  subject: string
  currency: string
  perTransfer: Decimal | null
  perDay: Decimal | null
  /** The last day on which something was spent, such as 2026-11-22 (UTC), and how much. */
  day: string
  spent: Decimal
  /** The position of the ledger when counting began. Only later transfers count. */
  countedFrom: number
  createdAt: Date
  updatedAt: Date
}

export type WorkspaceRow = Signed & {
  id: Uuid<'workspace'>
  name: string
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

export type MemberRow = Signed & {
  workspaceId: Uuid<'workspace'>
  userId: string
  createdAt: Date
  removedAt: Date | null
}

/** `last_used_at` and `access_revision` are not signed: they decide nothing, and change without a new revision. */
export type ApiKeyRow = Signed & {
  id: Uuid<'apiKey'>
  workspaceId: Uuid<'workspace'>
  ownerUserId: string
  name: string
  status: string
  scopes: readonly string[]
  ipAllowlist: readonly string[]
  secret: string
  secretVersion: number
  previousSecret: string | null
  previousSecretUntil: Date | null
  expiresAt: Date | null
  deletedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export type OperatorRow = Signed & {
  name: string
  role: string
  status: string
  tokenHash: Uint8Array
  tokenVersion: number
  expiresAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** The state of delivery is not signed: it changes with every lease, without a new revision. */
export type WebhookRow = Signed & {
  id: Uuid<'webhook'>
  workspaceId: Uuid<'workspace'>
  bizId: string
  bizIdMac: Uint8Array
  url: string
  types: readonly string[]
  concurrency: number
  status: string
  secret: string
  secretVersion: number
  previousSecret: string | null
  previousSecretUntil: Date | null
  deletedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export function walletMac(key: KeyObject, row: WalletRow): Buffer {
  return rowMac(key, 'wallet', [
    row.workspaceId,
    row.id,
    row.number,
    row.kind,
    row.bizId,
    row.name,
    row.currency,
    row.status,
    row.frozenBy,
    row.balance.toFixed(),
    row.held.toFixed(),
    timeOf(row.heldUntil),
    row.sequence,
    row.orderCount,
    row.holdCount,
    row.head.toString('hex'),
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

export function ledgerMac(key: KeyObject, row: LedgerRow): Buffer {
  return rowMac(key, 'ledger', [
    row.workspaceId,
    row.status,
    row.walletCount,
    row.orderCount,
    row.holdCount,
    row.limitCount,
    row.position,
    row.journalHead.toString('hex'),
    timeOf(row.lastPostedAt),
    row.haltReason,
    row.revision,
  ])
}

export function holdMac(key: KeyObject, row: HoldRow): Buffer {
  return rowMac(key, 'hold', [
    row.workspaceId,
    row.id,
    row.number,
    row.walletNumber,
    row.bizId,
    row.walletId,
    row.currency,
    row.amount,
    row.captured.toFixed(),
    row.remaining.toFixed(),
    row.status,
    timeOf(row.expiresAt),
    row.reference,
    row.remark,
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

export function limitMac(key: KeyObject, row: LimitRow): Buffer {
  return rowMac(key, 'spending_limit', [
    row.workspaceId,
    row.subject,
    row.currency,
    row.perTransfer?.toFixed() ?? null,
    row.perDay?.toFixed() ?? null,
    row.day,
    row.spent.toFixed(),
    row.countedFrom,
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

export function workspaceMac(key: KeyObject, row: WorkspaceRow): Buffer {
  const { id, name, createdAt, updatedAt, deletedAt, revision } = row
  return rowMac(key, 'workspace', [id, name, timeOf(createdAt), timeOf(updatedAt), timeOf(deletedAt), revision])
}

export function memberMac(key: KeyObject, row: MemberRow): Buffer {
  const { workspaceId, userId, createdAt, removedAt, revision } = row
  return rowMac(key, 'member', [workspaceId, userId, timeOf(createdAt), timeOf(removedAt), revision])
}

export function apiKeyMac(key: KeyObject, row: ApiKeyRow): Buffer {
  return rowMac(key, 'api_key', [
    row.id,
    row.workspaceId,
    row.ownerUserId,
    row.name,
    row.status,
    row.scopes,
    row.ipAllowlist,
    row.secret,
    row.secretVersion,
    row.previousSecret,
    timeOf(row.previousSecretUntil),
    timeOf(row.expiresAt),
    timeOf(row.deletedAt),
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

export function operatorMac(key: KeyObject, row: OperatorRow): Buffer {
  return rowMac(key, 'operator', [
    row.name,
    row.role,
    row.status,
    Buffer.from(row.tokenHash).toString('hex'),
    row.tokenVersion,
    timeOf(row.expiresAt),
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

export function webhookMac(key: KeyObject, row: WebhookRow): Buffer {
  return rowMac(key, 'webhook', [
    row.id,
    row.workspaceId,
    row.bizId,
    Buffer.from(row.bizIdMac).toString('hex'),
    row.url,
    row.types,
    row.concurrency,
    row.status,
    row.secret,
    row.secretVersion,
    row.previousSecret,
    timeOf(row.previousSecretUntil),
    timeOf(row.deletedAt),
    timeOf(row.createdAt),
    timeOf(row.updatedAt),
    row.revision,
  ])
}

/**
 * The name of a webhook in its workspace, which nobody can compute without the chain key: it is unique, so that a row that was
 * not written by the service takes no bizId.
 */
export function webhookBizIdMac(key: KeyObject, workspaceId: Uuid<'workspace'>, bizId: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify(['webhook bizId', workspaceId, bizId]))
    .digest()
}

/** Milliseconds; text for PostgreSQL's infinity and for an invalid Date, which JSON would turn into null. */
function timeOf(time: Date | null): number | string | null {
  if (time === null) return null
  const milliseconds = Number(time)
  return Number.isFinite(milliseconds) ? milliseconds : String(time)
}

/** Values that have only one JSON serialization. */
type Content = readonly (string | number | null | readonly string[])[]

/**
 * HMAC-SHA256 under the chain key. The content begins with the table's name, which no other content under this key begins
 * with (see ledger/chain/chain.ts and integrity/checkpoints/checkpoint.ts), so a MAC of another kind or table is not valid.
 */
function rowMac(key: KeyObject, table: SignedTable, content: Content): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([`${table} row`, ...content]))
    .digest()
}
