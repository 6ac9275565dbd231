import { Decimal, type Uuid } from '@workspace-wallet/contract'
import type { LedgerRow, WithMac } from '../../database/signed-rows.ts'
import { plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import type { TransferWithEntries } from '../chain/chain.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { NameKey, RowKey } from '../decide/requests.ts'
import type { HoldState, LedgerState, LimitState, WalletState } from '../decide/state.ts'

export type LockedLedger = LedgerRow & { status: LedgerState['status']; mac: Buffer; version: string }

const lockLedgersStatement = statement<LockedLedger>(
  'lock-ledgers',
  `select (locked).workspace_id as "workspaceId", (locked).status, (locked).wallet_count as "walletCount",
     (locked).order_count as "orderCount", (locked).hold_count as "holdCount",
     (locked).limit_count as "limitCount", (locked).position,
     (locked).journal_head as "journalHead", (locked).last_posted_at as "lastPostedAt", (locked).halt_reason as "haltReason",
     (locked).revision, (locked).mac, version::text
   from lock_ledgers($1::uuid[])`,
)

/** Locks the ledgers of these workspaces until the transaction ends, always in order of ID, which prevents deadlocks. */
export function lockLedgers(db: Queryable, workspaceIds: Uuid<'workspace'>[]): Promise<LockedLedger[]> {
  return run(db, lockLedgersStatement, [plainArray(workspaceIds)])
}

const findLockableStatement = statement<{ workspaceId: Uuid<'workspace'> }>(
  'find-lockable-ledgers',
  `select lockable_ledgers as "workspaceId" from lockable_ledgers($1::uuid[])`,
)

/** The workspaces among these whose ledgers no other transaction has locked at this moment. */
export async function findLockable(db: Queryable, workspaceIds: Uuid<'workspace'>[]): Promise<Set<Uuid<'workspace'>>> {
  const rows = await run(db, findLockableStatement, [plainArray(workspaceIds)])
  return new Set(rows.map(({ workspaceId }) => workspaceId))
}

/** A wallet as stored, and the database's clock when it was read. */
export type LoadedWallet = { wallet: WalletState; now: Date }

/** A wallet as stored. */
export type SignedWallet = Omit<WalletState, 'version'>

/** A row of a wallet as PostgreSQL returns it. */
export type StoredWallet = Omit<SignedWallet, 'balance' | 'held' | 'heldUntil' | 'createdAt' | 'updatedAt'> & {
  balance: string
  held: string
  heldUntilMs: number | null
  createdMs: number
  updatedMs: number
}
type VersionedWallet = StoredWallet & { version: string; now: Date }

// Times as milliseconds: reading two more as dates takes longer than the rest of the row.
const milliseconds = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`
/** The columns of a wallet, in the shape of `StoredWallet`. */
export const signedWalletColumns = `
  w.workspace_id as "workspaceId", w.id, w.number, w.kind, w.biz_id as "bizId", w.name, w.currency, w.status,
  w.frozen_by as "frozenBy", w.balance, w.held, ${milliseconds('w.held_until')} as "heldUntilMs", w.sequence,
  w.order_count as "orderCount", w.hold_count as "holdCount", w.head, ${milliseconds('w.created_at')} as "createdMs",
  ${milliseconds('w.updated_at')} as "updatedMs", w.revision, w.mac`
const walletColumns = `${signedWalletColumns}, w.xmin::text as version,
  date_trunc('milliseconds', clock_timestamp()) as now`

// Separate from the statement that locks: it sees what was committed while that one waited, and its clock is read after
// the locks were granted.
const loadWalletsStatement = statement<VersionedWallet>(
  'load-wallets',
  `select ${walletColumns}
   from unnest($1::uuid[], $2::uuid[]) as asked (workspace_id, id)
   cross join lateral (
     select *, xmin from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.id limit 1) w`,
)

/** Reads wallets whose ledgers are locked. Wallets that do not exist are left out. */
export async function loadWallets(db: Queryable, keys: readonly RowKey<'wallet'>[]): Promise<LoadedWallet[]> {
  const rows = await run(db, loadWalletsStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.id)),
  ])
  return rows.map(toLoadedWallet)
}

/**
 * SQL: the row of `asked.workspace_id` whose `column`, which identifies it, is the same as in `asked`. The range and its order make
 * the planner use the index of this column. For an equal value, it may look in any index that begins with the workspace if it
 * expects few rows.
 */
export function rowBy(column: 'id' | 'biz_id', table: 'hold' | 'transfer'): string {
  return `(select * from ${table} r where r.workspace_id = asked.workspace_id
    and r.${column} between asked.${column} and asked.${column} order by r.${column} limit 1)`
}

/** SQL: the holds or transfers with the names in three parameters, `namesAsArrays`, of which `first` is the first. */
function rowsNamed(table: 'hold' | 'transfer', first = 1): string {
  return `(
     select named.*
     from unnest($${first}::uuid[], $${first + 1}::uuid[], $${first + 2}::text[]) as asked (workspace_id, id, biz_id)
     cross join lateral (
       ${rowBy('id', table)} union all ${rowBy('biz_id', table)}) named)`
}

const loadNamedWalletsStatement = statement<VersionedWallet>(
  'load-wallets-of-holds-and-orders',
  `select ${walletColumns}
   from (
     select h.workspace_id, h.wallet_id from ${rowsNamed('hold')} h
     union
     select t.workspace_id, side.wallet_id from ${rowsNamed('transfer', 4)} t,
       unnest(array[t.source_wallet_id, t.target_wallet_id]) as side (wallet_id)) asked
   cross join lateral (
     select *, xmin from wallet where wallet.workspace_id = asked.workspace_id and wallet.id = asked.wallet_id limit 1) w`,
)

/** Reads the wallets of these holds and transfers, whose ledgers are locked. */
export async function loadWalletsOf(
  db: Queryable,
  holds: readonly NameKey<'hold'>[],
  transfers: readonly NameKey<'transfer'>[],
): Promise<LoadedWallet[]> {
  const rows = await run(db, loadNamedWalletsStatement, [...namesAsArrays(holds), ...namesAsArrays(transfers)])
  return rows.map(toLoadedWallet)
}

function toLoadedWallet({ now, ...row }: VersionedWallet): LoadedWallet {
  return { wallet: toSignedWallet(row), now }
}

export function toSignedWallet<Row extends StoredWallet>(row: Row) {
  const { balance, held, heldUntilMs, createdMs, updatedMs, ...rest } = row
  return {
    ...rest,
    balance: new Decimal(balance),
    held: new Decimal(held),
    heldUntil: heldUntilMs === null ? null : new Date(heldUntilMs),
    createdAt: new Date(createdMs),
    updatedAt: new Date(updatedMs),
  }
}

/** A transfer as stored. Its last reversal has the sum of all of them; null without any. */
export type FoundTransfer = TransferWithEntries & { lastReversalId: Uuid<'transfer'> | null }

/** Selects the MAC of the entry before this one on its wallet, in hex; null for the first. In order: see the function `post`. */
const macBefore = (side: 'source' | 'target') => `(
  select encode(f.mac, 'hex') from flow f where f.workspace_id = t.workspace_id and f.wallet_id = t.${side}_wallet_id
    and f.sequence < t.${side}_sequence order by f.sequence desc limit 1)`

/** The columns of an entry. */
const sideColumns = (side: 'source' | 'target') => `
  t.${side}_balance as "${side}Balance", t.${side}_order_count as "${side}OrderCount",
  encode(t.${side}_mac, 'hex') as "${side}Mac", ${macBefore(side)} as "${side}Previous"`

type SideColumns<Side extends 'source' | 'target'> = Record<`${Side}Balance` | `${Side}Mac`, string> &
  Record<`${Side}OrderCount`, number> &
  Record<`${Side}Previous`, string | null>

type StoredTransfer = Transfer &
  SideColumns<'source'> &
  SideColumns<'target'> & { lastReversalId: Uuid<'transfer'> | null }

const transferColumns = `
  ${sideColumns('source')}, ${sideColumns('target')},
  t.workspace_id as "workspaceId", t.id as "transferId", t.position, t.order_count as "orderCount", t.type,
  t.biz_id as "bizId", t.reference, t.amount, t.currency, t.source_wallet_id as "sourceWalletId",
  t.target_wallet_id as "targetWalletId", t.source_sequence as "sourceSequence", t.target_sequence as "targetSequence",
  t.remark, t.hold_id as "holdId", t.hold_remaining as "holdRemaining", t.reverses_id as "reversesId",
  t.reversed_total as "reversedTotal", t.batch_id as "batchId", t.actor, t.request_id as "requestId",
  t.client_address as "clientAddress", t.created_at as "createdAt", (
    select r.id from transfer r where r.workspace_id = t.workspace_id and r.reverses_id = t.id
    order by r.position desc limit 1) as "lastReversalId"`

const findTransfersStatement = statement<StoredTransfer>(
  'find-transfers',
  `select ${transferColumns} from ${rowsNamed('transfer')} t`,
)

/** The existing transfers with these names. */
export async function findTransfers(db: Queryable, names: readonly NameKey<'transfer'>[]): Promise<FoundTransfer[]> {
  return names.length === 0 ? [] : (await run(db, findTransfersStatement, namesAsArrays(names))).map(toFoundTransfer)
}

function toFoundTransfer(row: StoredTransfer): FoundTransfer {
  const { sourceBalance, sourceOrderCount, sourceMac, sourcePrevious, lastReversalId, ...rest } = row
  const { targetBalance, targetOrderCount, targetMac, targetPrevious, ...transfer } = rest
  const source = { balanceAfter: sourceBalance, orderCount: sourceOrderCount, mac: sourceMac, previous: sourcePrevious }
  const target = { balanceAfter: targetBalance, orderCount: targetOrderCount, mac: targetMac, previous: targetPrevious }
  return { transfer, source, target, lastReversalId }
}

/** The names of the last reversals of these transfers. */
export function lastReversalsOf(found: readonly FoundTransfer[]): NameKey<'transfer'>[] {
  return found.flatMap(({ transfer: { workspaceId }, lastReversalId }) =>
    lastReversalId === null ? [] : [{ workspaceId, name: { id: lastReversalId } }],
  )
}

/** A row of a hold as PostgreSQL returns it. */
export type StoredHold = Omit<WithMac<HoldState>, 'captured' | 'remaining'> & { captured: string; remaining: string }

/** The columns of a hold, in the shape of `StoredHold`. */
export const signedHoldColumns = `
  h.workspace_id as "workspaceId", h.id, h.number, h.wallet_number as "walletNumber", h.biz_id as "bizId",
  h.wallet_id as "walletId", h.currency, h.amount, h.captured, h.remaining, h.status, h.expires_at as "expiresAt",
  h.reference, h.remark, h.created_at as "createdAt", h.updated_at as "updatedAt", h.revision, h.mac`

const findHoldsStatement = statement<StoredHold>(
  'find-holds',
  `select ${signedHoldColumns} from ${rowsNamed('hold')} h`,
)

/** The existing holds with these names. */
export async function findHolds(db: Queryable, names: readonly NameKey<'hold'>[]): Promise<HoldState[]> {
  return names.length === 0 ? [] : (await run(db, findHoldsStatement, namesAsArrays(names))).map(toSignedHold)
}

/** Maximum number of holds that a batch expires. */
export const dueHoldLimit = 1000

const findDueHoldsStatement = statement<StoredHold>(
  'find-due-holds',
  `select ${signedHoldColumns}
   from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as asked (workspace_id, id, at)
   cross join lateral (
     select * from hold where hold.workspace_id = asked.workspace_id and hold.wallet_id = asked.id
       and hold.status = 'OPEN' and hold.expires_at <= asked.at
     order by hold.expires_at limit ${dueHoldLimit + 1}) h
   order by h.expires_at limit ${dueHoldLimit + 1}`,
)

const findNextExpiriesStatement = statement<RowKey<'wallet'> & { expiresAt: Date | null }>(
  'find-next-expiries',
  `select asked.workspace_id as "workspaceId", asked.id, h.expires_at as "expiresAt"
   from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as asked (workspace_id, id, at)
   left join lateral (
     select expires_at from hold where hold.workspace_id = asked.workspace_id and hold.wallet_id = asked.id
       and hold.status = 'OPEN' and hold.expires_at > asked.at
     order by hold.expires_at limit 1) h on true`,
)

/** Holds that are due, and when the next hold of each wallet expires; null if it has no other. */
export type DueHolds = {
  due: HoldState[]
  hasMore: boolean
  nextExpiries: (RowKey<'wallet'> & { expiresAt: Date | null })[]
}

/** The due holds of these wallets at a time each, in the order in which they expire, up to the limit. */
export async function findDueHolds(
  db: Queryable,
  wallets: readonly (RowKey<'wallet'> & { at: Date })[],
): Promise<DueHolds> {
  if (wallets.length === 0) return { due: [], hasMore: false, nextExpiries: [] }
  const values = [
    plainArray(wallets.map(key => key.workspaceId)),
    plainArray(wallets.map(key => key.id)),
    plainArray(wallets.map(key => key.at.toISOString())),
  ]
  const [due, nextExpiries] = await Promise.all([
    run(db, findDueHoldsStatement, values),
    run(db, findNextExpiriesStatement, values),
  ])
  return { due: due.slice(0, dueHoldLimit).map(toSignedHold), hasMore: due.length > dueHoldLimit, nextExpiries }
}

export function toSignedHold({ captured, remaining, ...row }: StoredHold): WithMac<HoldState> {
  return { ...row, captured: new Decimal(captured), remaining: new Decimal(remaining) }
}

type StoredLimit = Omit<LimitState, 'perTransfer' | 'perDay' | 'spent'> & {
  perTransfer: string | null
  perDay: string | null
  spent: string
}

const findLimitsStatement = statement<StoredLimit>(
  'find-limits',
  `select l.workspace_id as "workspaceId", l.subject, l.currency, l.per_transfer as "perTransfer", l.per_day as "perDay",
     l.day::text, l.spent, l.counted_from as "countedFrom", l.created_at as "createdAt", l.updated_at as "updatedAt",
     l.revision, l.mac
   from unnest($1::uuid[], $2::text[], $3::text[]) as asked (workspace_id, subject, currency)
   cross join lateral (
     select * from spending_limit s where s.workspace_id = asked.workspace_id and s.subject = asked.subject
       and s.currency = asked.currency limit 1) l`,
)

/** What identifies a limit. */
export type LimitKey = Pick<LimitState, 'workspaceId' | 'subject' | 'currency'>

/** The limits of these subjects, cleared ones as well. */
export async function findLimits(db: Queryable, keys: readonly LimitKey[]): Promise<LimitState[]> {
  if (keys.length === 0) return []
  const rows = await run(db, findLimitsStatement, [
    plainArray(keys.map(key => key.workspaceId)),
    plainArray(keys.map(key => key.subject)),
    plainArray(keys.map(key => key.currency)),
  ])
  return rows.map(toLimit)
}

function toLimit({ perTransfer, perDay, spent, ...row }: StoredLimit): LimitState {
  return {
    ...row,
    perTransfer: perTransfer === null ? null : new Decimal(perTransfer),
    perDay: perDay === null ? null : new Decimal(perDay),
    spent: new Decimal(spent),
  }
}

/** Workspaces, IDs and bizIds as arrays; null where a name is of the other kind. */
export function namesAsArrays(names: readonly NameKey[]): [string, string, string] {
  return [
    plainArray(names.map(key => key.workspaceId)),
    plainArray(names.map(({ name }) => ('id' in name ? name.id : null))),
    textArray(names.map(({ name }) => ('bizId' in name ? name.bizId : null))),
  ]
}
