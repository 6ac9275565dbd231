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
import { isGenuine, replaceRow } from '../../database/row-signer.ts'
import { statusAfter } from '../../wallets/audited-status.ts'
import { Wallet } from '../../wallets/entities.ts'
import type { Ledger } from '../posting/entities.ts'
import { findHalted } from './reopen.ts'

/** Wallets of one step: each statement stays short, and memory small. */
const walletsPerStep = 1000

/** What the entries of a wallet come to, beside its row. `head` in hex. */
type WalletState = { balance: string; sequence: number; orderCount: number; head: string }
type ComparedRow = { id: string; lastFlowAt: string | null } & Record<
  keyof WalletState | `due_${keyof WalletState}`,
  string
>

export type Changes = { changes: LedgerChange[]; moreChanges: number }

/**
 * Makes the rows of a halted workspace's wallets, and the counters of its ledger, from its entries, and name and status
 * of a wallet whose row no core wrote from its audit. Entries are read and never written. PostgreSQL lets the service
 * set a wallet to what its last flow says and to nothing else (see the migrations), so this is no way to make money.
 * Each change is an action in the audit, with the row before and after.
 *
 * What is signed here becomes genuine. So nothing is that was inserted after `verified` was read: there are as many
 * flows as then, actions continue their chain, and each wallet was created by an action.
 *
 * @param verified what a verification of this workspace found a moment ago
 * @param dryRun changes nothing
 * @throws AdminError unless postings of the workspace are stopped; when rows were inserted outside the service
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
  function note(change: LedgerChange): void {
    if (found.changes.length < listedChanges) found.changes.push(change)
    else found.moreChanges++
    if (!dryRun) recordAction(em, { actor, action: 'ledger.repair', workspaceId, ...change })
  }

  const totals = { flows: 0, orderFlows: 0, wallets: 0 }
  let latestAt = new Date(0)
  let after: string | null = null
  do {
    const rows = await compareWallets(em, workspaceId, after)
    const wallets = await em.find(Wallet, { workspaceId, id: { $in: rows.map(row => idFromUuid('wallet', row.id)) } })
    const walletById = new Map(wallets.map(wallet => [wallet.id, wallet]))
    const labels = await labelsDue(em, chainKey, wallets)
    for (const row of rows) {
      const wallet = walletById.get(idFromUuid('wallet', row.id))!
      totals.flows += Number(row.due_sequence)
      totals.orderFlows += Number(row.due_orderCount)
      if (wallet.kind === 'CUSTOMER') totals.wallets++
      // The time of a row that no core wrote says nothing.
      const createdAt = isGenuine(wallet) ? wallet.createdAt : null
      for (const time of [createdAt, row.lastFlowAt === null ? null : new Date(row.lastFlowAt)])
        if (time && time > latestAt) latestAt = time
      const change = changeOf(row, wallet, labels.get(wallet.id))
      if (!change) continue
      note(change)
      if (!dryRun) writeWallet(wallet, change)
    }
    await em.flush()
    em.clear()
    after = rows.at(-1)?.id ?? null
  } while (after !== null)
  if (totals.flows !== verified.flows)
    throw new AdminError(
      'NOT_ALLOWED',
      `Flows of ${workspaceId} were inserted outside the service while it was verified: nothing was repaired, run ledger verify.`,
    )

  const ledger = await findHalted(em, workspaceId)
  const isOurs = isGenuine(ledger)
  const latest = isOurs && lastPostedAt > latestAt ? lastPostedAt : latestAt
  // Each transfer between wallets has two flows: that was verified.
  const due = { walletCount: totals.wallets, orderCount: totals.orderFlows / 2, lastPostedAt: latest }
  const before = countersOf(ledger)
  const counters = countersOf(due)
  if (!isOurs || JSON.stringify(before) !== JSON.stringify(counters)) {
    note({ target: workspaceId, ...(isOurs ? { before, after: counters } : signed({ before, after: counters })) })
    if (!dryRun) {
      Object.assign(ledger, due)
      replaceRow(ledger)
    }
  }
  await em.flush()
  return found
}

/** What is told of a row that no core wrote, also when it says nothing wrong. */
function signed<State extends object>({ before, after }: { before: State; after: State }) {
  return { before: { ...before, row: 'modified outside the service' }, after: { ...after, row: 'signed' } }
}

type Counters = Pick<Ledger, 'walletCount' | 'orderCount' | 'lastPostedAt'>

function countersOf({ walletCount, orderCount, lastPostedAt }: Counters): LedgerChange['before'] {
  return { walletCount, orderCount, lastPostedAt: lastPostedAt.toISOString() }
}

function writeWallet(wallet: Wallet, { after }: WalletChange): void {
  wallet.balance = new Decimal(after.balance)
  wallet.sequence = after.sequence
  wallet.orderCount = after.orderCount
  wallet.head = Buffer.from(after.head, 'hex')
  wallet.name = after.name ?? wallet.name
  wallet.status = after.status ?? wallet.status
  replaceRow(wallet)
}

type WalletChange = LedgerChange & { after: WalletState & Partial<Labels> }

/** The next wallets, in the order of their ids. Their flows have no gaps: that was verified. */
function compareWallets(em: Em, workspaceId: string, after: string | null): Promise<ComparedRow[]> {
  return em.execute<ComparedRow[]>(
    `select w.id, w.balance::text as balance, w.sequence::text as sequence, w.order_count::text as "orderCount",
       encode(w.head, 'hex') as head, f.created_at as "lastFlowAt",
       coalesce(f.balance_after, 0)::text as due_balance, coalesce(f.sequence, 0)::text as due_sequence,
       coalesce(o.order_number, 0)::text as "due_orderCount", coalesce(encode(f.mac, 'hex'), '') as due_head
     from (
       select * from public.wallet where workspace_id = ? and id > ? order by id limit ${walletsPerStep}) w
     left join lateral (
       select sequence, balance_after, mac, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
       from public.flow f where f.workspace_id = w.workspace_id and f.wallet_id = w.id order by sequence desc limit 1
     ) f on true
     left join lateral (
       select order_number from public.flow f
       where f.workspace_id = w.workspace_id and f.wallet_id = w.id and f.order_number is not null
       order by order_number desc limit 1) o on true
     order by w.id`,
    [uuidFromId('workspace', workspaceId), after ?? '00000000-0000-0000-0000-000000000000'],
  )
}

type Labels = Pick<Wallet, 'name' | 'status'>

/**
 * What these wallets are called, and whether they are frozen, as the audit tells of those that no core wrote.
 *
 * @throws AdminError when no action created a wallet: its row would be signed although the service never made it
 */
async function labelsDue(em: Em, chainKey: KeyObject, wallets: Wallet[]): Promise<Map<string, Labels>> {
  const due = new Map<string, Labels>()
  for (const wallet of wallets.filter(each => !isGenuine(each))) {
    // The hidden wallets have no actions: nobody names or freezes those.
    if (wallet.kind === 'EXTERNAL') {
      due.set(wallet.id, { name: 'external', status: 'ACTIVE' })
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
        `${wallet.id} was inserted outside the service, no action in the audit created it: delete its row as the owner of the tables, then run ledger repair again.`,
      )
    due.set(wallet.id, labels)
  }
  return due
}

/** The actions that made a wallet what it is, oldest first. @throws AdminError when one does not continue its chain */
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

/** @param labels of a wallet whose row no core wrote */
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
    balance: row.due_balance,
    sequence: Number(row.due_sequence),
    orderCount: Number(row.due_orderCount),
    head: row.due_head,
  }
  const isSame =
    new Decimal(before.balance).equals(after.balance) &&
    before.sequence === after.sequence &&
    before.orderCount === after.orderCount &&
    before.head === after.head
  return isSame ? null : { before, after }
}
