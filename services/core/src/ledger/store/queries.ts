import type { Uuid } from '@workspace-wallet/contract'
import { plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import { type HoldRow, storedHoldColumns } from '../../database/tables/hold.ts'
import { type LedgerRow, storedLedgerColumns } from '../../database/tables/ledger.ts'
import { storedLimitColumns } from '../../database/tables/spending-limit.ts'
import { type FoundRow, rowFrom, selectColumns, type WithMac } from '../../database/tables/table.ts'
import { entryColumns, transferColumns } from '../../database/tables/transfer.ts'
import { storedWalletColumns } from '../../database/tables/wallet.ts'
import type { TransferWithEntries } from '../chain/chain.ts'
import type { NameKey, RowKey } from '../decide/requests.ts'
import type { HoldState, LimitState, WalletState } from '../decide/state.ts'

export type LockedLedger = WithMac<LedgerRow> & { version: string }

const lockLedgersStatement = statement<FoundRow<typeof storedLedgerColumns> & { version: string }>(
  'lock-ledgers',
  `select ${selectColumns(storedLedgerColumns, '(locked)')}, version::text from lock_ledgers($1::uuid[])`,
)

/** Locks the ledgers of these workspaces until the transaction ends, always in order of ID, which prevents deadlocks. */
export async function lockLedgers(db: Queryable, workspaceIds: Uuid<'workspace'>[]): Promise<LockedLedger[]> {
  const rows = await run(db, lockLedgersStatement, [plainArray(workspaceIds)])
  return rows.map(({ version, ...found }) => ({ ...rowFrom(storedLedgerColumns, found), version }))
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

/** A wallet as PostgreSQL returns it. */
type FoundWallet = FoundRow<typeof storedWalletColumns> & { version: string; now: Date }

const selectedWallet = `${selectColumns(storedWalletColumns, 'w')}, w.xmin::text as version,
  date_trunc('milliseconds', clock_timestamp()) as now`

// Separate from the statement that locks: it sees what was committed while that one waited, and its clock is read after
// the locks were granted.
const loadWalletsStatement = statement<FoundWallet>(
  'load-wallets',
  `select ${selectedWallet}
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
 * the planner use the index of this column, because it may not sort (see database/session-settings.ts). For an equal value, it may look
 * in any index that begins with the workspace if it expects few rows.
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

const loadNamedWalletsStatement = statement<FoundWallet>(
  'load-wallets-of-holds-and-orders',
  `select ${selectedWallet}
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

function toLoadedWallet({ now, version, ...found }: FoundWallet): LoadedWallet {
  return { wallet: { ...rowFrom(storedWalletColumns, found), version }, now }
}

/** A transfer as stored. Its last reversal has the sum of all of them; null without any. */
export type FoundTransfer = TransferWithEntries & { lastReversalId: Uuid<'transfer'> | null }

/**
 * SQL: the MAC of the entry before this one on its wallet, in hex; null for the first. The order makes the planner use the index of
 * sequences (see `post`).
 */
const macBefore = (side: 'source' | 'target') => `(
  select encode(f.mac, 'hex') from flow f where f.workspace_id = t.workspace_id and f.wallet_id = t.${side}_wallet_id
    and f.sequence < t.${side}_sequence order by f.sequence desc limit 1)`

type FoundColumns = FoundRow<typeof transferColumns> & {
  [Side in 'source' | 'target' as `${Side}Balance` | `${Side}Mac` | `${Side}Previous`]: string | null
} & { sourceOrderCount: number | null; targetOrderCount: number | null; lastReversalId: Uuid<'transfer'> | null }

const selectedTransfer = `
  ${selectColumns({ ...transferColumns, ...entryColumns }, 't')},
  ${macBefore('source')} as "sourcePrevious", ${macBefore('target')} as "targetPrevious", (
    select r.id from transfer r where r.workspace_id = t.workspace_id and r.reverses_id between t.id and t.id
    order by r.reverses_id desc, r.position desc limit 1) as "lastReversalId"`

const findTransfersStatement = statement<FoundColumns>(
  'find-transfers',
  `select ${selectedTransfer} from ${rowsNamed('transfer')} t`,
)

/** The existing transfers with these names. */
export async function findTransfers(db: Queryable, names: readonly NameKey<'transfer'>[]): Promise<FoundTransfer[]> {
  return names.length === 0 ? [] : (await run(db, findTransfersStatement, namesAsArrays(names))).map(toFoundTransfer)
}

function toFoundTransfer(found: FoundColumns): FoundTransfer {
  const { sourceBalance, sourceOrderCount, sourceMac, sourcePrevious, lastReversalId } = found
  const { targetBalance, targetOrderCount, targetMac, targetPrevious } = found
  return {
    transfer: rowFrom(transferColumns, found),
    source: { balanceAfter: sourceBalance, orderCount: sourceOrderCount, mac: sourceMac, previous: sourcePrevious },
    target: { balanceAfter: targetBalance, orderCount: targetOrderCount, mac: targetMac, previous: targetPrevious },
    lastReversalId,
  }
}

/** The names of the last reversals of these transfers. */
export function lastReversalsOf(found: readonly FoundTransfer[]): NameKey<'transfer'>[] {
  return found.flatMap(({ transfer: { workspaceId }, lastReversalId }) =>
    lastReversalId === null ? [] : [{ workspaceId, name: { id: lastReversalId } }],
  )
}

/** A hold as PostgreSQL returns it. */
export type FoundHold = FoundRow<typeof storedHoldColumns>

const findHoldsStatement = statement<FoundHold>(
  'find-holds',
  `select ${selectColumns(storedHoldColumns, 'h')} from ${rowsNamed('hold')} h`,
)

/** The existing holds with these names. */
export async function findHolds(db: Queryable, names: readonly NameKey<'hold'>[]): Promise<HoldState[]> {
  return names.length === 0 ? [] : (await run(db, findHoldsStatement, namesAsArrays(names))).map(toHold)
}

/** Maximum number of holds that a batch expires. Its wallets share it equally, and its workspaces take turns. */
export const dueHoldLimit = 100
/** SQL: maximum number of holds of one wallet that a batch expires. However many wallets have many due holds, it reads few rows. */
const dueHoldsOfWallet = `greatest(1, ${dueHoldLimit} / cardinality($1::uuid[]))`

/** `dueInWorkspace`: more than are found if more holds of its workspace are due. */
const findDueHoldsStatement = statement<FoundHold & { dueInWorkspace: number }>(
  'find-due-holds',
  `select ${selectColumns(storedHoldColumns, 'h')}, h.due_in_workspace as "dueInWorkspace"
   from (
     select h.*, row_number() over (partition by h.workspace_id order by h.expires_at) as turn,
       row_number() over (partition by h.workspace_id, h.wallet_id order by h.expires_at) as turn_in_wallet,
       count(*) over (partition by h.workspace_id) as due_in_workspace
     from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as asked (workspace_id, id, at)
     cross join lateral (
       select * from hold where hold.workspace_id = asked.workspace_id and hold.wallet_id = asked.id
         and hold.status = 'OPEN' and hold.expires_at <= asked.at
       order by hold.expires_at limit ${dueHoldsOfWallet} + 1) h) h
   where h.turn_in_wallet <= ${dueHoldsOfWallet}
   order by h.turn limit ${dueHoldLimit}`,
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
  /** Workspaces of which more holds are due. */
  withMore: ReadonlySet<Uuid<'workspace'>>
  nextExpiries: (RowKey<'wallet'> & { expiresAt: Date | null })[]
}

/** The due holds of these wallets at a time each, in the order in which those of a workspace expire, up to the limit. */
export async function findDueHolds(
  db: Queryable,
  wallets: readonly (RowKey<'wallet'> & { at: Date })[],
): Promise<DueHolds> {
  if (wallets.length === 0) return { due: [], withMore: new Set(), nextExpiries: [] }
  const values = [
    plainArray(wallets.map(key => key.workspaceId)),
    plainArray(wallets.map(key => key.id)),
    plainArray(wallets.map(key => key.at.toISOString())),
  ]
  const [found, nextExpiries] = await Promise.all([
    run(db, findDueHoldsStatement, values),
    run(db, findNextExpiriesStatement, values),
  ])
  const due = found.map(toHold)
  const byWorkspace = Map.groupBy(due, ({ workspaceId }) => workspaceId)
  const hasMore = ({ workspaceId }: HoldState, at: number) =>
    byWorkspace.get(workspaceId)!.length < found[at]!.dueInWorkspace
  return { due, withMore: new Set(due.filter(hasMore).map(({ workspaceId }) => workspaceId)), nextExpiries }
}

function toHold(found: FoundHold): WithMac<HoldRow> {
  return rowFrom(storedHoldColumns, found)
}

const findLimitsStatement = statement<FoundRow<typeof storedLimitColumns>>(
  'find-limits',
  `select ${selectColumns(storedLimitColumns, 'l')}
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
  return rows.map(found => rowFrom(storedLimitColumns, found))
}

/** Workspaces, IDs and bizIds as arrays; null where a name is of the other kind. */
export function namesAsArrays(names: readonly NameKey[]): [string, string, string] {
  return [
    plainArray(names.map(key => key.workspaceId)),
    plainArray(names.map(({ name }) => ('id' in name ? name.id : null))),
    textArray(names.map(({ name }) => ('bizId' in name ? name.bizId : null))),
  ]
}
