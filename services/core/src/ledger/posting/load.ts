import { Decimal } from '@workspace-wallet/contract'
import type { LedgerRow } from '../../database/signed-rows.ts'
import { plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { LedgerState, WalletState } from './posting.ts'

export type LockedLedger = LedgerRow & { status: LedgerState['status']; mac: Buffer; version: string }

const lockLedgersStatement = statement<LockedLedger>(
  'lock-ledgers',
  `select (locked).workspace_id as "workspaceId", (locked).status, (locked).wallet_count as "walletCount",
     (locked).order_count as "orderCount", (locked).last_posted_at as "lastPostedAt", (locked).halt_reason as "haltReason",
     (locked).revision, (locked).mac, version::text
   from lock_ledgers($1::uuid[])`,
)

/** Locks the ledgers of these workspaces until the transaction ends, always in order of ID, which prevents deadlocks. */
export function lockLedgers(db: Queryable, workspaceIds: string[]): Promise<LockedLedger[]> {
  return run(db, lockLedgersStatement, [plainArray(workspaceIds)])
}

const findLockableStatement = statement<{ workspaceId: string }>(
  'find-lockable-ledgers',
  `select lockable_ledgers as "workspaceId" from lockable_ledgers($1::uuid[])`,
)

/** The workspaces among these whose ledgers no other transaction has locked at this moment. */
export async function findLockable(db: Queryable, workspaceIds: string[]): Promise<Set<string>> {
  const rows = await run(db, findLockableStatement, [plainArray(workspaceIds)])
  return new Set(rows.map(({ workspaceId }) => workspaceId))
}

/** A wallet as stored, and the database's clock when it was read. */
export type LoadedWallet = { wallet: WalletState; now: Date }

// Separate from the statement that locks: it sees what was committed while that one waited, and its clock is read after
// the locks were granted.
const loadWalletsStatement = statement<
  Omit<WalletState, 'balance' | 'createdAt' | 'updatedAt'> & {
    balance: string
    createdMs: number
    updatedMs: number
    now: Date
  }
>(
  'load-wallets',
  // Times as milliseconds: reading two more as dates takes longer than the rest of the row.
  `select w.workspace_id as "workspaceId", w.id, w.number, w.kind, w.name, w.currency, w.status, w.balance, w.sequence,
     w.order_count as "orderCount", w.head, round(extract(epoch from w.created_at) * 1000)::float8 as "createdMs",
     round(extract(epoch from w.updated_at) * 1000)::float8 as "updatedMs", w.revision, w.mac, w.xmin::text as version,
     date_trunc('milliseconds', clock_timestamp()) as now
   from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
   cross join lateral (
     select *, xmin from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w`,
)

/** Reads wallets whose ledgers are locked. Wallets that do not exist are left out. */
export async function loadWallets(db: Queryable, keys: { workspaceId: string; id: string }[]): Promise<LoadedWallet[]> {
  const rows = await run(db, loadWalletsStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.id)),
  ])
  return rows.map(({ now, balance, createdMs, updatedMs, ...row }) => ({
    wallet: {
      ...row,
      balance: new Decimal(balance),
      createdAt: new Date(createdMs),
      updatedAt: new Date(updatedMs),
    },
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

/** The existing transfers with these bizIds. */
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

/** The existing transfers with these IDs. */
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
  orderCount: number | null
  mac: Buffer | null
  previous: Buffer | null
}

// Ranges in order, so that the planner uses the indexes of sequences: see the function `post`.
const findSourceEntriesStatement = statement<SourceEntry>(
  'find-source-entries',
  `select f.balance_after as "balanceAfter", f.order_count as "orderCount", f.mac, p.mac as previous
   from unnest($1::uuid[], $2::uuid[], $3::bigint[]) with ordinality as asked (workspace_id, wallet_id, sequence, place)
   left join lateral (
     select * from flow where flow.workspace_id = asked.workspace_id and flow.wallet_id = asked.wallet_id
       and flow.sequence >= asked.sequence order by flow.sequence limit 1) f on f.sequence = asked.sequence
   left join lateral (
     select sequence, mac from flow where flow.workspace_id = asked.workspace_id and flow.wallet_id = asked.wallet_id
       and flow.sequence < asked.sequence order by flow.sequence desc limit 1) p on p.sequence = asked.sequence - 1
   order by place`,
)

/** The entry of each transfer on its source wallet, in order, and the MAC of the entry before it; null when missing. */
export function findSourceEntries(db: Queryable, transfers: readonly Transfer[]): Promise<SourceEntry[]> {
  return run(db, findSourceEntriesStatement, [
    plainArray(transfers.map(row => row.workspaceId)),
    plainArray(transfers.map(row => row.sourceWalletId)),
    plainArray(transfers.map(row => row.sourceSequence)),
  ])
}
