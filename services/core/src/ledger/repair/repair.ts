import type { KeyObject } from 'node:crypto'
import {
  AdminError,
  Decimal,
  idFromUuid,
  type LedgerChange,
  listedChanges,
  uuidFromId,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { type AuditRow, auditMac, emptyAuditMac } from '../../audit/chain/chain.ts'
import { recordAction } from '../../audit/chain/record.ts'
import type { Em } from '../../database/orm.ts'
import { isGenuine } from '../../database/row-signer.ts'
import { runIn } from '../../database/run.ts'
import { statusAfter } from '../../wallets/audited-status.ts'
import { Wallet } from '../../wallets/entities.ts'
import type { Ledger } from '../rows/entities.ts'
import { repairLedgerRow, repairWalletRow } from '../rows/functions.ts'
import { findHalted } from './reopen.ts'

/** Wallets in one step: keeps statements short and memory small. */
const walletsPerStep = 1000

/** The columns of a wallet that follow from its entries. `head` in hex. */
type WalletState = { balance: string; sequence: number; orderCount: number; head: string }
type ComparedRow = { id: string; lastFlowAt: string | null } & Record<
  keyof WalletState | `expected_${keyof WalletState}`,
  string
>

export type Changes = { changes: LedgerChange[]; moreChanges: number }

/** What all entries of a workspace come to. Each transfer between wallets has two of the `orderFlows`. */
type Totals = { flows: number; orderFlows: number; wallets: number; latestAt: Date }

/**
 * Recomputes the wallets of a halted workspace, and the counters of its ledger, from its entries. The name and status of a
 * wallet whose row was modified outside the service come from the audit. Entries are never written, and PostgreSQL lets
 * the service set a wallet only to what its last flow says (see the migrations). Each change is an action in the audit.
 *
 * Signing a row makes it genuine, so rows that were inserted after `verified` was read must not be signed: the number of
 * flows must be the same, actions must continue their chain, and an action must have created each wallet.
 *
 * @param verified the report of a verification of this workspace, taken just before
 * @param dryRun returns the changes without making them
 * @throws AdminError NOT_FOUND; NOT_ALLOWED unless the workspace is halted, or if rows were inserted outside the service
 */
export async function repairLedger(
  em: Em,
  { actor, chainKey }: { actor: string; chainKey: KeyObject },
  workspaceId: string,
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
  const repair = { em, chainKey, dryRun, record }
  const totals = await repairWallets(repair, workspaceId)
  if (totals.flows !== verified.flows)
    throw new AdminError(
      'NOT_ALLOWED',
      `Flows of ${workspaceId} were inserted outside the service during the verification: nothing was repaired, run ledger verify.`,
    )
  // Read again: each step of the wallets has cleared the entity manager.
  await repairCounters(repair, await findHalted(em, workspaceId), totals, lastPostedAt)
  return found
}

type Repair = { em: Em; chainKey: KeyObject; dryRun: boolean; record: (change: LedgerChange) => void }

async function repairWallets({ em, chainKey, dryRun, record }: Repair, workspaceId: string): Promise<Totals> {
  const totals: Totals = { flows: 0, orderFlows: 0, wallets: 0, latestAt: new Date(0) }
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
      record(change)
      if (!dryRun) await writeWallet(em, chainKey, wallet, change)
    }
    em.clear()
    rows = await compareWallets(em, workspaceId, rows.at(-1)!.id)
  }
  return totals
}

/** @throws AdminError if the wallet has lost entries: its genuine row counts more than there are */
function requireEntries({ expected_sequence: found }: ComparedRow, wallet: Wallet): void {
  if (!isGenuine(wallet) || wallet.sequence <= Number(found)) return
  throw new AdminError(
    'NOT_ALLOWED',
    `Entries of ${wallet.id} after sequence ${found} were deleted outside the service: nothing was repaired, restore a backup.`,
  )
}

function addTo(totals: Totals, row: ComparedRow, wallet: Wallet): void {
  totals.flows += Number(row.expected_sequence)
  totals.orderFlows += Number(row.expected_orderCount)
  if (wallet.kind === 'CUSTOMER') totals.wallets++
  // The time in a modified row is ignored.
  const times = [isGenuine(wallet) ? wallet.createdAt : null, row.lastFlowAt === null ? null : new Date(row.lastFlowAt)]
  for (const time of times) if (time && time > totals.latestAt) totals.latestAt = time
}

async function repairCounters(
  { em, chainKey, dryRun, record }: Repair,
  ledger: Ledger,
  { wallets, orderFlows, latestAt }: Totals,
  lastPostedAt: Date,
): Promise<void> {
  const wasGenuine = isGenuine(ledger)
  const latest = wasGenuine && lastPostedAt > latestAt ? lastPostedAt : latestAt
  const expected = { walletCount: wallets, orderCount: orderFlows / 2, lastPostedAt: latest }
  const change = { before: countersOf(ledger), after: countersOf(expected) }
  if (wasGenuine && JSON.stringify(change.before) === JSON.stringify(change.after)) return
  record({ target: ledger.workspaceId, ...(wasGenuine ? change : signed(change)) })
  if (!dryRun) await repairLedgerRow(runIn(em), chainKey, ledger.row, expected)
}

/** Adds that a modified row is signed, even if its other values are right. */
function signed<State extends object>({ before, after }: { before: State; after: State }) {
  return { before: { ...before, row: 'modified outside the service' }, after: { ...after, row: 'signed' } }
}

type Counters = Pick<Ledger, 'walletCount' | 'orderCount' | 'lastPostedAt'>

function countersOf({ walletCount, orderCount, lastPostedAt }: Counters): LedgerChange['before'] {
  return { walletCount, orderCount, lastPostedAt: lastPostedAt.toISOString() }
}

async function writeWallet(em: Em, chainKey: KeyObject, wallet: Wallet, { after }: WalletChange): Promise<void> {
  const { balance, head, sequence, orderCount, name = wallet.name, status = wallet.status } = after
  const state = { balance: new Decimal(balance), head: Buffer.from(head, 'hex'), sequence, orderCount }
  await repairWalletRow(runIn(em), chainKey, wallet.row, { ...state, name, status })
}

type WalletChange = LedgerChange & { after: WalletState & Partial<Labels> }

/** The next wallets in the order of their IDs. The verification has shown that their flows have no gaps. */
function compareWallets(em: Em, workspaceId: string, after: string | null): Promise<ComparedRow[]> {
  return em.execute<ComparedRow[]>(
    `select w.id, w.balance::text as balance, w.sequence::text as sequence, w.order_count::text as "orderCount",
       encode(w.head, 'hex') as head, f.created_at as "lastFlowAt",
       coalesce(f.balance_after, 0)::text as expected_balance, coalesce(f.sequence, 0)::text as expected_sequence,
       coalesce(f.order_count, 0)::text as "expected_orderCount", coalesce(encode(f.mac, 'hex'), '') as expected_head
     from (
       select * from public.wallet where workspace_id = ? and id > ? order by id limit ${walletsPerStep}) w
     left join lateral (
       select sequence, balance_after, order_count, mac, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
       from public.flow f where f.workspace_id = w.workspace_id and f.wallet_id = w.id order by sequence desc limit 1
     ) f on true
     order by w.id`,
    [uuidFromId('workspace', workspaceId), after ?? '00000000-0000-0000-0000-000000000000'],
  )
}

type Labels = Pick<Wallet, 'name' | 'status'>

/**
 * The name and status in the audit of the wallets whose row was modified outside the service.
 *
 * @throws AdminError NOT_ALLOWED if no action created such a wallet, because signing its row would make it genuine
 */
async function auditedLabels(em: Em, chainKey: KeyObject, wallets: Wallet[]): Promise<Map<string, Labels>> {
  const labelsById = new Map<string, Labels>()
  for (const wallet of wallets.filter(each => !isGenuine(each))) {
    // EXTERNAL wallets have no actions: nobody can name or freeze them.
    if (wallet.kind === 'EXTERNAL') {
      labelsById.set(wallet.id, { name: 'external', status: 'ACTIVE' })
      continue
    }
    const labels: Labels = { name: wallet.name, status: wallet.status }
    let isCreated = false
    for (const { action, after } of await actionsOn(em, chainKey, wallet)) {
      labels.status = statusAfter[action as keyof typeof statusAfter]
      if (action !== 'wallet.create') continue
      const created = JSON.parse(after!) as { name: string; currency: string }
      labels.name = created.name
      isCreated = created.currency === wallet.currency
    }
    if (!isCreated)
      throw new AdminError(
        'NOT_ALLOWED',
        `${wallet.id} was inserted outside the service: no action in the audit created it. Delete its row as the owner of the tables, then run ledger repair again.`,
      )
    labelsById.set(wallet.id, labels)
  }
  return labelsById
}

/** The actions that set the name and status of a wallet, oldest first. @throws AdminError if one does not continue its chain */
async function actionsOn(em: Em, chainKey: KeyObject, { workspaceId, id }: Wallet): Promise<AuditRow[]> {
  const actions = Object.keys(statusAfter)
  const rows = await em.execute<(AuditRow & { ms: string; mac: Buffer; previous: Buffer | null })[]>(
    `select a.actor, a.action, a.workspace_id as "workspaceId", a.target, a.before::text, a.after::text,
       a.position::int, (extract(epoch from a.at) * 1000)::bigint::text as ms, a.mac, p.mac as previous
     from public.audit a
     left join public.audit p on p.workspace_id = a.workspace_id and p.position = a.position - 1
     where a.workspace_id = ? and a.target = ? and a.action in (${actions.map(() => '?').join(', ')})
     order by a.position`,
    [uuidFromId('workspace', workspaceId), id, ...actions],
  )
  return rows.map(({ ms, mac, previous, ...row }) => {
    const action = { ...row, at: new Date(Number(ms)) }
    if (!auditMac(chainKey, action, previous ?? emptyAuditMac).equals(mac))
      throw new AdminError(
        'NOT_ALLOWED',
        `Action ${row.position} in the audit of ${workspaceId} was inserted outside the service: nothing was repaired, run ledger verify.`,
      )
    return action
  })
}

/** @param labels the audited ones, for a row that was modified outside the service */
function changeOf(row: ComparedRow, wallet: Wallet, labels: Labels | undefined): WalletChange | null {
  const change = changeOfState(row)
  if (!labels) return change && { target: wallet.id, ...change }
  const { name, status } = wallet
  const { before, after } = change ?? { before: stateOf(row), after: stateOf(row) }
  return {
    target: wallet.id,
    ...signed<WalletState & Labels>({ before: { ...before, name, status }, after: { ...after, ...labels } }),
  }
}

function stateOf(row: ComparedRow): WalletState {
  const { balance, sequence, orderCount, head } = row
  return { balance, sequence: Number(sequence), orderCount: Number(orderCount), head }
}

function changeOfState(row: ComparedRow): { before: WalletState; after: WalletState } | null {
  const before = stateOf(row)
  const after = {
    balance: row.expected_balance,
    sequence: Number(row.expected_sequence),
    orderCount: Number(row.expected_orderCount),
    head: row.expected_head,
  }
  const isSame =
    new Decimal(before.balance).equals(after.balance) &&
    before.sequence === after.sequence &&
    before.orderCount === after.orderCount &&
    before.head === after.head
  return isSame ? null : { before, after }
}
