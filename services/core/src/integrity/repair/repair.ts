import type { KeyObject } from 'node:crypto'
import {
  AdminError,
  Decimal,
  type Id,
  idFromUuid,
  type LedgerChange,
  listedChanges,
  type Uuid,
  uuidFromId,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { recordAction } from '../../audit/record.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { runIn } from '../../database/run.ts'
import type { Ledger } from '../../ledger/rows/entities.ts'
import { repairLedgerRow, repairWalletRow } from '../../ledger/rows/functions.ts'
import type { CheckedReads } from '../../ledger/store/require-signed.ts'
import { Wallet } from '../../wallets/entities.ts'
import { auditedLabels, type Labels, labelsOf } from './audited-labels.ts'
import { findHalted } from './reopen.ts'
import { requireSources, type WalletState } from './sources.ts'

/** Wallets in one step: keeps statements short and memory small. */
const walletsPerStep = 1000

type ComparedRow = {
  id: Uuid<'wallet'>
  lastFlowAt: string | null
  lastTransferId: Uuid<'transfer'> | null
  stored: WalletState
  expected: WalletState
}

export type Changes = { changes: LedgerChange[]; moreChanges: number }

/** What the wallets of a workspace come to. Each transfer between wallets has two of the `orderFlows`. */
type Totals = { flows: number; orderFlows: number; holds: number; wallets: number; latestAt: Date }

/**
 * Recomputes the wallets of a halted workspace, and the counters of its ledger, from its flows, holds and journal. The
 * name and bizId of a wallet whose row was modified outside the service come from the audit, and its status from the journal. Flows,
 * holds and journal are never written, and PostgreSQL lets the service set a wallet only to what its last flow and its holds say
 * (see the migrations). Each change is an action in the audit.
 *
 * Signing a row makes it genuine, so rows that were inserted or changed after `verified` was read must not be signed: the numbers of
 * flows, holds and journal entries must be the same, the service must have written the last flow and the holds of each changed wallet,
 * journal entries must continue their chain, and a genuine action must have created each wallet.
 *
 * @param verified the report of a verification of this workspace, taken just before
 * @param dryRun returns the changes without making them
 * @throws AdminError NOT_FOUND; NOT_ALLOWED unless the workspace is halted, if rows were inserted outside the service, or if the
 *   ledger is ahead of the clock
 */
export async function repairLedger(
  em: Em,
  { actor, chainKey, reads }: { actor: string } & CheckedReads,
  workspaceId: Id<'workspace'>,
  verified: VerifyReport,
  dryRun: boolean,
): Promise<Changes> {
  const { lastPostedAt } = await findHalted(em, workspaceId)
  const found: Changes = { changes: [], moreChanges: 0 }
  const record = (change: LedgerChange) => {
    if (found.changes.length < listedChanges) found.changes.push(change)
    else found.moreChanges++
    if (!dryRun) recordAction(em, { actor, action: 'ledger.repair', workspaceId, ...change })
  }
  const repair = { em, chainKey, reads, dryRun, record }
  const totals = await repairWallets(repair, workspaceId)
  const log = await readLogEnd(em, workspaceId)
  if (totals.flows !== verified.flows) throw inserted('Flows', workspaceId)
  if (totals.holds !== verified.holds) throw inserted('Holds', workspaceId)
  if (log.journalEntries !== verified.journalEntries) throw inserted('Journal entries', workspaceId)
  // Read again: each step of the wallets has cleared the entity manager.
  await repairCounters(repair, await findHalted(em, workspaceId), totals, log, lastPostedAt)
  return found
}

function inserted(what: string, workspaceId: Id<'workspace'>): AdminError {
  return new AdminError(
    'NOT_ALLOWED',
    `${what} of ${workspaceId} were inserted or deleted outside the service during the verification: nothing was repaired, run ledger verify.`,
  )
}

type Repair = CheckedReads & { em: Em; dryRun: boolean; record: (change: LedgerChange) => void }

async function repairWallets(
  { em, chainKey, reads, dryRun, record }: Repair,
  workspaceId: Id<'workspace'>,
): Promise<Totals> {
  const totals: Totals = { flows: 0, orderFlows: 0, holds: 0, wallets: 0, latestAt: new Date(0) }
  let rows = await compareWallets(em, workspaceId, null)
  while (rows.length > 0) {
    const wallets = await em.find(Wallet, { workspaceId, id: { $in: rows.map(row => idFromUuid('wallet', row.id)) } })
    const walletById = new Map(wallets.map(wallet => [wallet.id, wallet]))
    const labels = await auditedLabels(em, chainKey, wallets)
    for (const row of rows) {
      const wallet = walletById.get(idFromUuid('wallet', row.id))!
      addTo(totals, row, wallet)
      requireEntries(row, wallet)
      const change = changeOf(row, wallet, labels.get(wallet.id))
      if (!change) continue
      const key = { workspaceId: uuidFromId('workspace', workspaceId), id: row.id }
      await requireSources({ reads, chainKey }, key, row.lastTransferId, row.expected)
      record(change)
      if (!dryRun) await writeWallet(em, chainKey, wallet, change)
    }
    em.clear()
    rows = await compareWallets(em, workspaceId, rows.at(-1)!.id)
  }
  return totals
}

/** @throws AdminError if the wallet has lost flows or holds: its genuine row counts more than there are */
function requireEntries({ expected }: ComparedRow, wallet: Wallet): void {
  if (!isGenuine(wallet)) return
  if (wallet.sequence > expected.sequence) throw deleted(`Flows of ${wallet.id} after sequence ${expected.sequence}`)
  if (wallet.holdCount > expected.holdCount) throw deleted(`Holds of ${wallet.id}`)
}

function deleted(what: string): AdminError {
  return new AdminError(
    'NOT_ALLOWED',
    `${what} were deleted outside the service: nothing was repaired, restore a backup.`,
  )
}

function addTo(totals: Totals, row: ComparedRow, wallet: Wallet): void {
  totals.flows += row.expected.sequence
  totals.orderFlows += row.expected.orderCount
  totals.holds += row.expected.holdCount
  if (wallet.kind === 'CUSTOMER') totals.wallets++
  // The time in a modified row is ignored.
  const times = [isGenuine(wallet) ? wallet.createdAt : null, row.lastFlowAt === null ? null : new Date(row.lastFlowAt)]
  for (const time of times) if (time && time > totals.latestAt) totals.latestAt = time
}

/** The end of a workspace's event log, and the number of its limits. `journalHead` in hex. */
type LogEnd = {
  position: number
  journalEntries: number
  journalHead: string
  lastEntryAt: string | null
  limits: number
  /** The clock of PostgreSQL. */
  now: string
}

/** The verification has shown that the positions have no gaps. */
async function readLogEnd(em: Em, workspaceId: Id<'workspace'>): Promise<LogEnd> {
  const [row] = await em.execute<[LogEnd]>(
    `with entry as (select position, mac, created_at from journal where workspace_id = ?),
       last as (select * from entry order by position desc limit 1)
     select
       ((select count(*) from transfer where workspace_id = ?) + (select count(*) from entry))::float8 as position,
       (select count(*) from entry)::float8 as "journalEntries",
       coalesce((select encode(mac, 'hex') from last), '') as "journalHead",
       (select ${isoTime('created_at')} from last) as "lastEntryAt",
       (select count(*) from spending_limit
        where workspace_id = ? and num_nonnulls(per_transfer, per_day) > 0)::float8 as limits,
       ${isoTime('clock_timestamp()')} as now`,
    Array(3).fill(uuidFromId('workspace', workspaceId)),
  )
  return row
}

async function repairCounters(
  { em, chainKey, dryRun, record }: Repair,
  ledger: Ledger,
  { wallets, orderFlows, holds, latestAt }: Totals,
  { position, journalHead, lastEntryAt, limits, now }: LogEnd,
  lastPostedAt: Date,
): Promise<void> {
  const wasGenuine = isGenuine(ledger)
  if (wasGenuine && ledger.position > position)
    throw deleted(`Events of ${ledger.workspaceId} up to position ${ledger.position}`)
  const times = [wasGenuine ? lastPostedAt : latestAt, latestAt, lastEntryAt ? new Date(lastEntryAt) : latestAt]
  const expected = {
    walletCount: wallets,
    orderCount: orderFlows / 2,
    holdCount: holds,
    limitCount: limits,
    position,
    journalHead: Buffer.from(journalHead, 'hex'),
    lastPostedAt: new Date(Math.max(...times.map(Number))),
  }
  const change = { before: countersOf(ledger), after: countersOf(expected) }
  if (expected.lastPostedAt > new Date(now)) throw aheadOfClock(ledger, expected.lastPostedAt)
  if (wasGenuine && JSON.stringify(change.before) === JSON.stringify(change.after)) return
  record({ target: ledger.workspaceId, ...(wasGenuine ? change : signed(change)) })
  if (!dryRun) await repairLedgerRow(runIn(em), chainKey, ledger.row, expected)
}

/** PostgreSQL rejects a ledger with a time in the future. */
function aheadOfClock({ workspaceId }: Ledger, lastPostedAt: Date): AdminError {
  return new AdminError(
    'NOT_ALLOWED',
    `${workspaceId} last posted at ${lastPostedAt.toISOString()}, when the clock of PostgreSQL was ahead: nothing was repaired, repair it after that time.`,
  )
}

/** Adds that a modified row is signed, even if its other values are right. */
function signed<State extends object>({ before, after }: { before: State; after: State }) {
  return { before: { ...before, row: 'modified outside the service' }, after: { ...after, row: 'signed' } }
}

type Counters = Pick<
  Ledger,
  'walletCount' | 'orderCount' | 'holdCount' | 'limitCount' | 'position' | 'journalHead' | 'lastPostedAt'
>

function countersOf({ journalHead, lastPostedAt, ...counts }: Counters): LedgerChange['before'] {
  const { walletCount, orderCount, holdCount, limitCount, position } = counts
  return {
    walletCount,
    orderCount,
    holdCount,
    limitCount,
    position,
    journalHead: Buffer.from(journalHead).toString('hex'),
    lastPostedAt: lastPostedAt.toISOString(),
  }
}

async function writeWallet(em: Em, chainKey: KeyObject, wallet: Wallet, { after }: WalletChange): Promise<void> {
  const { balance, head, held, heldUntil, ...rest } = after
  await repairWalletRow(runIn(em), chainKey, wallet.row, {
    ...rest,
    balance: new Decimal(balance),
    head: Buffer.from(head, 'hex'),
    held: new Decimal(held),
    heldUntil: heldUntil === null ? null : new Date(heldUntil),
  })
}

type WalletChange = LedgerChange & { after: WalletState & Partial<Labels> }

/** SQL: a time in ISO 8601. */
function isoTime(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}

/**
 * The next wallets in the order of their IDs. The verification has shown that their flows have no gaps. A `held_until`
 * before the first expiry is right too.
 */
function compareWallets(em: Em, workspaceId: Id<'workspace'>, after: string | null): Promise<ComparedRow[]> {
  return em.execute<ComparedRow[]>(
    `select w.id, ${isoTime('f.created_at')} as "lastFlowAt", f.transfer_id as "lastTransferId",
       json_build_object('balance', w.balance::text, 'sequence', w.sequence, 'orderCount', w.order_count,
         'head', encode(w.head, 'hex'), 'held', w.held::text, 'heldUntil', ${isoTime('w.held_until')},
         'holdCount', w.hold_count) as stored,
       json_build_object('balance', coalesce(f.balance_after, 0)::text, 'sequence', coalesce(f.sequence, 0),
         'orderCount', coalesce(f.order_count, 0), 'head', coalesce(encode(f.mac, 'hex'), ''), 'held', h.held::text,
         'heldUntil', ${isoTime('case when h.expires_at is not null then least(w.held_until, h.expires_at) end')},
         'holdCount', h.found) as expected
     from (
       select * from wallet where workspace_id = ? and id > ? order by id limit ${walletsPerStep}) w
     left join lateral (
       select sequence, balance_after, order_count, mac, created_at, transfer_id
       from flow f where f.workspace_id = w.workspace_id and f.wallet_id = w.id order by sequence desc limit 1
     ) f on true
     cross join lateral (
       select count(*) as found, coalesce(sum(remaining) filter (where status = 'OPEN'), 0) as held,
         min(expires_at) filter (where status = 'OPEN') as expires_at
       from hold h where h.workspace_id = w.workspace_id and h.wallet_id = w.id
     ) h
     order by w.id`,
    [uuidFromId('workspace', workspaceId), after ?? '00000000-0000-0000-0000-000000000000'],
  )
}

/** @param labels the audited ones, for a row that was modified outside the service */
function changeOf(row: ComparedRow, wallet: Wallet, labels: Labels | undefined): WalletChange | null {
  const change = changeOfState(row)
  if (!labels) return change && { target: wallet.id, ...change }
  const { before, after } = change ?? { before: row.stored, after: row.stored }
  return {
    target: wallet.id,
    ...signed<WalletState & Labels>({
      before: { ...before, ...labelsOf(wallet.row) },
      after: { ...after, ...labels },
    }),
  }
}

function changeOfState({ stored, expected }: ComparedRow): { before: WalletState; after: WalletState } | null {
  const { balance, held, ...others } = expected
  const isSame =
    new Decimal(stored.balance).equals(balance) &&
    new Decimal(stored.held).equals(held) &&
    Object.entries(others).every(([name, value]) => stored[name as keyof typeof others] === value)
  return isSame ? null : { before: stored, after: expected }
}
