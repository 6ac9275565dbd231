import { Decimal, formatBalance, type TransferType } from '@workspace-wallet/contract'
import type { LedgerRow, WalletRow } from '../../database/signed-rows.ts'
import { bytesArray, plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'
import type { LedgerState, WalletState } from './posting.ts'

type LockedLedger = LedgerRow & { status: LedgerState['status']; mac: Buffer }

const lockLedgersStatement = statement<LockedLedger>(
  'lock-ledgers',
  `select workspace_id as "workspaceId", status, wallet_count as "walletCount", order_count as "orderCount",
     last_posted_at as "lastPostedAt", halt_reason as "haltReason", revision, mac
   from ledger where workspace_id = any ($1::uuid[])
   order by workspace_id for no key update`,
)

/** Locks the ledgers of these workspaces, in one order everywhere, until the transaction ends. */
export function lockLedgers(db: Queryable, workspaceIds: string[]): Promise<LockedLedger[]> {
  return run(db, lockLedgersStatement, [plainArray(workspaceIds)])
}

const findLockableStatement = statement<{ workspaceId: string }>(
  'find-lockable-ledgers',
  `select workspace_id as "workspaceId" from ledger where workspace_id = any ($1::uuid[])
   for no key update skip locked`,
)

/** Those of these workspaces whose ledgers nobody holds at this moment. */
export async function findLockable(db: Queryable, workspaceIds: string[]): Promise<Set<string>> {
  const rows = await run(db, findLockableStatement, [plainArray(workspaceIds)])
  return new Set(rows.map(({ workspaceId }) => workspaceId))
}

/** A wallet as stored, and the database's clock. */
export type LoadedWallet = { wallet: WalletState; mac: Buffer; now: Date }

// A statement of its own, after the locks: it sees what was committed while we waited for them, and its clock
// has not stood still since the transaction began.
const loadWalletsStatement = statement<
  Omit<WalletState, 'balance' | 'createdAt' | 'updatedAt'> & {
    balance: string
    createdMs: number
    updatedMs: number
    mac: Buffer
    now: Date
  }
>(
  'load-wallets',
  // Times as milliseconds: reading two more as dates takes longer than the rest of the row.
  `select w.workspace_id as "workspaceId", w.id, w.number, w.kind, w.name, w.currency, w.status, w.balance, w.sequence,
     w.order_count as "orderCount", w.head, round(extract(epoch from w.created_at) * 1000)::float8 as "createdMs",
     round(extract(epoch from w.updated_at) * 1000)::float8 as "updatedMs", w.revision, w.mac,
     date_trunc('milliseconds', clock_timestamp()) as now
   from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
   cross join lateral (
     select * from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w`,
)

/** Reads wallets under their ledgers' locks. Absent ones are left out. */
export async function loadWallets(db: Queryable, keys: { workspaceId: string; id: string }[]): Promise<LoadedWallet[]> {
  const rows = await run(db, loadWalletsStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.id)),
  ])
  return rows.map(({ mac, now, balance, createdMs, updatedMs, ...row }) => ({
    wallet: {
      ...row,
      balance: new Decimal(balance),
      createdAt: new Date(createdMs),
      updatedAt: new Date(updatedMs),
    },
    mac,
    now,
  }))
}

/** The columns of a transfer, in the shape of `Transfer`. */
const transferColumns = `
  t.workspace_id as "workspaceId", t.id as "transferId", t.type, t.biz_id as "bizId", t.number, t.amount, t.currency,
  t.source_wallet_id as "sourceWalletId", t.target_wallet_id as "targetWalletId",
  t.source_sequence as "sourceSequence", t.target_sequence as "targetSequence", t.remark, t.actor,
  t.request_id as "requestId", t.client_address as "clientAddress", t.created_at as "createdAt"`

const findByBizIdStatement = statement<Transfer>(
  'find-by-biz-id',
  `select ${transferColumns}
   from unnest($1::uuid[], $2::text[]) as asked (workspace_id, biz_id)
   cross join lateral (
     select * from transfer where transfer.workspace_id = asked.workspace_id and transfer.biz_id = asked.biz_id limit 1) t`,
)

/** Transfers that exist under these bizIds. */
export function findByBizId(
  db: Queryable,
  keys: readonly { workspaceId: string; bizId: string }[],
): Promise<Transfer[]> {
  return run(db, findByBizIdStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    textArray(keys.map(key => key.bizId)),
  ])
}

const findByIdStatement = statement<Transfer>(
  'find-by-id',
  `select ${transferColumns}
   from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
   cross join lateral (
     select * from transfer where transfer.workspace_id = asked.workspace_id and transfer.id = asked.id limit 1) t`,
)

/** Transfers that exist under these ids. */
export function findById(
  db: Queryable,
  keys: readonly { workspaceId: string; transferId: string }[],
): Promise<Transfer[]> {
  return run(db, findByIdStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.transferId)),
  ])
}

type SourceEntry = {
  balanceAfter: string | null
  orderNumber: number | null
  mac: Buffer | null
  previous: Buffer | null
}

const findSourceEntriesStatement = statement<SourceEntry>(
  'find-source-entries',
  `select f.balance_after as "balanceAfter", f.order_number as "orderNumber", f.mac, p.mac as previous
   from unnest($1::uuid[], $2::uuid[], $3::bigint[]) with ordinality as asked (workspace_id, wallet_id, sequence, place)
   left join lateral (
     select * from flow where flow.workspace_id = asked.workspace_id and flow.wallet_id = asked.wallet_id
       and flow.sequence = asked.sequence limit 1) f on true
   left join lateral (
     select mac from flow where flow.workspace_id = asked.workspace_id and flow.wallet_id = asked.wallet_id
       and flow.sequence = asked.sequence - 1 limit 1) p on true
   order by place`,
)

/** The flows on the sources of these transfers, in their order, with the MACs that they continue: nulls for none. */
export function findSourceEntries(db: Queryable, transfers: readonly Transfer[]): Promise<SourceEntry[]> {
  return run(db, findSourceEntriesStatement, [
    plainArray(transfers.map(row => row.workspaceId)),
    plainArray(transfers.map(row => row.sourceWalletId)),
    plainArray(transfers.map(row => row.sourceSequence)),
  ])
}

const writePostingsStatement = statement(
  'write-postings',
  `with posted as (
     select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::numeric[], $7::text[],
       $8::uuid[], $9::uuid[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[],
       $16::timestamptz[], $17::numeric[], $18::numeric[], $19::bigint[], $20::bigint[], $21::bytea[], $22::bytea[])
     as posted (workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
       source_sequence, target_sequence, remark, actor, request_id, client_address, created_at,
       source_balance, target_balance, source_order, target_order, source_mac, target_mac)),
   transfers as (
     insert into transfer (workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
       source_sequence, target_sequence, remark, actor, request_id, client_address, created_at)
     select workspace_id, id, type, biz_id, number, amount, currency, source_wallet_id, target_wallet_id,
       source_sequence, target_sequence, remark, actor, request_id, client_address, created_at from posted),
   flows as (
     insert into flow (workspace_id, wallet_id, sequence, transfer_id, direction, amount, balance_after, order_number,
       created_at, mac)
     select workspace_id, source_wallet_id, source_sequence, id, 'OUT', amount, source_balance, source_order,
       created_at, source_mac from posted
     union all
     select workspace_id, target_wallet_id, target_sequence, id, 'IN', amount, target_balance, target_order,
       created_at, target_mac from posted),
   wallets as (
     update wallet w
     set balance = new.balance, sequence = new.sequence, order_count = new.order_count, head = new.head,
       updated_at = new.updated_at, revision = new.revision, mac = new.mac
     from unnest($23::uuid[], $24::uuid[], $25::numeric[], $26::bigint[], $27::bigint[], $28::bytea[],
       $29::timestamptz[], $30::bigint[], $31::bytea[])
       as new (workspace_id, id, balance, sequence, order_count, head, updated_at, revision, mac)
     where w.workspace_id = new.workspace_id and w.id = new.id)
   update ledger l
   set order_count = new.order_count, last_posted_at = new.last_posted_at, revision = new.revision, mac = new.mac
   from unnest($32::uuid[], $33::bigint[], $34::timestamptz[], $35::bigint[], $36::bytea[])
     as new (workspace_id, order_count, last_posted_at, revision, mac)
   where l.workspace_id = new.workspace_id`,
)

/** A flow beside its transfer: what the transfer does not say of it already. */
type ChainedEntry = Pick<Entry, 'balanceAfter' | 'orderNumber'> & { mac: Buffer }
export type ChainedTransfer = { transfer: Transfer; paid: ChainedEntry; received: ChainedEntry }

type Signed<Row> = Row & { mac: Buffer }

/** What is written of one or more decisions, MACs and all. */
export type ChainedPostings = {
  transfers: ChainedTransfer[]
  wallets: Signed<WalletRow>[]
  ledgers: Signed<LedgerRow>[]
}

/**
 * Writes what was decided, in one statement: the transfers, their flows, one net update per wallet however many
 * postings touched it, and the ledgers' counters.
 */
export function writePostings(
  db: Queryable,
  { transfers: chained, wallets, ledgers }: ChainedPostings,
): Promise<unknown> {
  const transfers = chained.map(({ transfer }) => transfer)
  const paid = chained.map(entry => entry.paid)
  const received = chained.map(entry => entry.received)
  return run(db, writePostingsStatement, [
    plainArray(transfers.map(row => row.workspaceId)),
    plainArray(transfers.map(row => row.transferId)),
    plainArray(transfers.map((row): TransferType => row.type)),
    textArray(transfers.map(row => row.bizId)),
    plainArray(transfers.map(row => row.number)),
    plainArray(transfers.map(row => row.amount)),
    plainArray(transfers.map(row => row.currency)),
    plainArray(transfers.map(row => row.sourceWalletId)),
    plainArray(transfers.map(row => row.targetWalletId)),
    plainArray(transfers.map(row => row.sourceSequence)),
    plainArray(transfers.map(row => row.targetSequence)),
    textArray(transfers.map(row => row.remark)),
    textArray(transfers.map(row => row.actor)),
    textArray(transfers.map(row => row.requestId)),
    textArray(transfers.map(row => row.clientAddress)),
    plainArray(transfers.map(row => row.createdAt.toISOString())),
    plainArray(paid.map(entry => entry.balanceAfter)),
    plainArray(received.map(entry => entry.balanceAfter)),
    plainArray(paid.map(entry => entry.orderNumber)),
    plainArray(received.map(entry => entry.orderNumber)),
    bytesArray(paid.map(entry => entry.mac)),
    bytesArray(received.map(entry => entry.mac)),
    plainArray(wallets.map(row => row.workspaceId)),
    plainArray(wallets.map(row => row.id)),
    plainArray(wallets.map(row => formatBalance(row.balance, row.currency))),
    plainArray(wallets.map(row => row.sequence)),
    plainArray(wallets.map(row => row.orderCount)),
    bytesArray(wallets.map(row => row.head)),
    plainArray(wallets.map(row => row.updatedAt.toISOString())),
    plainArray(wallets.map(row => row.revision)),
    bytesArray(wallets.map(row => row.mac)),
    plainArray(ledgers.map(row => row.workspaceId)),
    plainArray(ledgers.map(row => row.orderCount)),
    plainArray(ledgers.map(row => row.lastPostedAt.toISOString())),
    plainArray(ledgers.map(row => row.revision)),
    bytesArray(ledgers.map(row => row.mac)),
  ])
}

const writeHaltStatement = statement(
  'write-halt',
  'update ledger set status = $2, halt_reason = $3, revision = $4, mac = $5 where workspace_id = $1',
)

/** Writes that a ledger takes no more postings. */
export function writeHalt(db: Queryable, ledger: LedgerRow & { mac: Buffer }): Promise<unknown> {
  const { workspaceId, status, haltReason, revision, mac } = ledger
  return run(db, writeHaltStatement, [workspaceId, status, haltReason, revision, mac])
}

const findHaltedStatement = statement<{ workspaceId: string; reason: string | null }>(
  'find-halted',
  `select workspace_id as "workspaceId", halt_reason as reason from ledger where status = 'HALTED' order by workspace_id`,
)

/** The ledgers that take no postings until an operator has looked. */
export function findHaltedLedgers(db: Queryable): Promise<{ workspaceId: string; reason: string | null }[]> {
  return run(db, findHaltedStatement, [])
}
