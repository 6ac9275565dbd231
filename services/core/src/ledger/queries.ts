import { Decimal, formatBalance, idFromUuid, type TransferType, type WalletStatus } from '../../contract/index.ts'
import { insertFundingActs } from '../audit/queries.ts'
import { bytesArray, plainArray, type Queryable, run, statement, textArray } from '../db/statement.ts'
import type { Decision, Leg, Transfer, WalletState } from './posting.ts'

type LedgerRow = { workspaceId: string; status: 'OPEN' | 'CLOSED' | 'HALTED'; orderCount: number; lastPostedAt: Date }

const lockLedgersStatement = statement<LedgerRow>(
  'lock-ledgers',
  `select workspace_id as "workspaceId", status, order_count as "orderCount", last_posted_at as "lastPostedAt"
   from ledger where workspace_id = any ($1::uuid[])
   order by workspace_id for no key update`,
)

/** Locks the ledgers of these workspaces, in one order everywhere, until the transaction ends. */
export function lockLedgers(db: Queryable, workspaceIds: string[]): Promise<LedgerRow[]> {
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

type WalletRow = {
  workspaceId: string
  id: string
  kind: 'CUSTOMER' | 'EXTERNAL'
  currency: string
  status: WalletStatus
  balance: string
  sequence: number
  orderCount: number
  head: Buffer
  lastBalance: string | null
  lastMac: Buffer | null
  now: Date
}

/** A wallet as stored, with its last flow beside it, and the database's clock. */
export type LoadedWallet = {
  workspaceId: string
  wallet: WalletState
  last: { balance: string; mac: Buffer } | null
  now: Date
}

// A statement of its own, after the locks: it sees what was committed while we waited for them, and its clock
// has not stood still since the transaction began.
const loadWalletsStatement = statement<WalletRow>(
  'load-wallets',
  `select w.workspace_id as "workspaceId", w.id, w.kind, w.currency, w.status, w.balance, w.sequence,
     w.order_count as "orderCount", w.head, f.balance_after as "lastBalance", f.mac as "lastMac",
     date_trunc('milliseconds', clock_timestamp()) as now
   from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
   cross join lateral (
     select * from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w
   left join lateral (
     select balance_after, mac from flow
     where flow.workspace_id = w.workspace_id and flow.wallet_id = w.id and flow.sequence = w.sequence limit 1) f on true`,
)

/** Reads wallets under their ledgers' locks. Absent ones are left out. */
export async function loadWallets(db: Queryable, keys: { workspaceId: string; id: string }[]): Promise<LoadedWallet[]> {
  const rows = await run(db, loadWalletsStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.id)),
  ])
  return rows.map(({ workspaceId, lastBalance, lastMac, now, ...row }) => ({
    workspaceId,
    wallet: { ...row, balance: new Decimal(row.balance) },
    last: lastBalance === null || lastMac === null ? null : { balance: lastBalance, mac: lastMac },
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
       updated_at = new.updated_at
     from unnest($23::uuid[], $24::uuid[], $25::numeric[], $26::bigint[], $27::bigint[], $28::bytea[], $29::timestamptz[])
       as new (workspace_id, id, balance, sequence, order_count, head, updated_at)
     where w.workspace_id = new.workspace_id and w.id = new.id)
   update ledger l
   set order_count = new.order_count, last_posted_at = new.last_posted_at
   from unnest($30::uuid[], $31::bigint[], $32::timestamptz[]) as new (workspace_id, order_count, last_posted_at)
   where l.workspace_id = new.workspace_id`,
)

/** A flow beside its transfer: what the transfer does not say of it already. */
type ChainedLeg = Pick<Leg, 'balanceAfter' | 'orderNumber'> & { mac: Buffer }
export type ChainedTransfer = { transfer: Transfer; paid: ChainedLeg; received: ChainedLeg }

/**
 * Writes what was decided, in one statement: the transfers, their flows, one net update per wallet however many
 * postings touched it, and the ledgers' counters. Deposits and withdrawals are administrative acts as well: they
 * stand in the audit, in the same transaction.
 */
export function writePostings(db: Queryable, decisions: Decision[], chained: ChainedTransfer[]): Promise<unknown>[] {
  const transfers = chained.map(({ transfer }) => transfer)
  const paid = chained.map(leg => leg.paid)
  const received = chained.map(leg => leg.received)
  const wallets = decisions.flatMap(({ workspaceId, wallets, postedAt }) =>
    wallets.map(wallet => ({ ...wallet, workspaceId, updatedAt: postedAt.toISOString() })),
  )
  const written = run(db, writePostingsStatement, [
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
    plainArray(paid.map(leg => leg.balanceAfter)),
    plainArray(received.map(leg => leg.balanceAfter)),
    plainArray(paid.map(leg => leg.orderNumber)),
    plainArray(received.map(leg => leg.orderNumber)),
    bytesArray(paid.map(leg => leg.mac)),
    bytesArray(received.map(leg => leg.mac)),
    plainArray(wallets.map(row => row.workspaceId)),
    plainArray(wallets.map(row => row.id)),
    plainArray(wallets.map(row => formatBalance(row.balance, row.currency))),
    plainArray(wallets.map(row => row.sequence)),
    plainArray(wallets.map(row => row.orderCount)),
    bytesArray(wallets.map(row => row.head)),
    plainArray(wallets.map(row => row.updatedAt)),
    plainArray(decisions.map(row => row.workspaceId)),
    plainArray(decisions.map(row => row.orderCount)),
    plainArray(decisions.map(row => row.postedAt.toISOString())),
  ])
  const funding = transfers.filter(({ type }) => type !== 'TRANSFER')
  return funding.length > 0 ? [written, insertFundingActs(db, funding)] : [written]
}

const haltLedgerStatement = statement(
  'halt-ledger',
  `with halted as (
     update ledger set status = 'HALTED', halt_reason = $2 where workspace_id = $1 and status = 'OPEN'
     returning workspace_id)
   insert into audit (actor, act, workspace_id, target, after)
   select 'core', 'ledger.halt', workspace_id, $3, jsonb_build_object('reason', $2::text) from halted`,
)

/** Stops all postings of a workspace until an operator has looked. */
export function haltLedger(db: Queryable, workspaceId: string, reason: string): Promise<unknown> {
  return run(db, haltLedgerStatement, [workspaceId, reason, idFromUuid('workspace', workspaceId)])
}

const findHaltedStatement = statement<{ workspaceId: string; reason: string | null }>(
  'find-halted',
  `select workspace_id as "workspaceId", halt_reason as reason from ledger where status = 'HALTED' order by workspace_id`,
)

/** The ledgers that take no postings until an operator has looked. */
export function findHaltedLedgers(db: Queryable): Promise<{ workspaceId: string; reason: string | null }[]> {
  return run(db, findHaltedStatement, [])
}
