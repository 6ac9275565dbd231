import { Decimal, idFromUuid, type LedgerChange, listedChanges, uuidFromId } from '../../contract/index.ts'
import { recordAct } from '../audit/operations.ts'
import type { Em } from '../db/orm.ts'
import { Wallet } from '../wallets/entities.ts'
import type { Ledger } from './entities.ts'
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
 * Makes the rows of a halted workspace's wallets, and the counters of its ledger, from its entries, which somebody has
 * verified a moment ago. Entries are read and never written. PostgreSQL lets the service set a wallet to what its last
 * flow says and to nothing else (see the migrations), so this is no way to make money. Each change is an act in the
 * audit, with the row before and after.
 *
 * @param dryRun changes nothing
 * @throws Refusal unless postings of the workspace are stopped
 */
export async function repairLedger(em: Em, actor: string, workspaceId: string, dryRun: boolean): Promise<Changes> {
  const ledger = await findHalted(em, workspaceId)
  const found: Changes = { changes: [], moreChanges: 0 }
  function note(change: LedgerChange): void {
    if (found.changes.length < listedChanges) found.changes.push(change)
    else found.moreChanges++
    if (!dryRun) recordAct(em, { actor, act: 'ledger.repair', workspaceId, ...change })
  }

  let lastFlowAt = ledger.lastPostedAt
  let after: string | null = null
  do {
    const rows = await compareWallets(em, workspaceId, after)
    for (const row of rows) {
      if (row.lastFlowAt !== null && new Date(row.lastFlowAt) > lastFlowAt) lastFlowAt = new Date(row.lastFlowAt)
      const change = changeOf(row)
      if (!change) continue
      note(change)
      if (!dryRun) await writeWallet(em, workspaceId, change)
    }
    await em.flush()
    after = rows.at(-1)?.id ?? null
  } while (after !== null)

  const due = { ...(await countersDue(em, workspaceId)), lastPostedAt: lastFlowAt }
  const before = countersOf(ledger)
  const counters = countersOf(due)
  if (JSON.stringify(before) !== JSON.stringify(counters)) {
    note({ target: workspaceId, before, after: counters })
    if (!dryRun) Object.assign(ledger, due)
  }
  await em.flush()
  return found
}

type Counters = Pick<Ledger, 'walletCount' | 'orderCount' | 'lastPostedAt'>

function countersOf({ walletCount, orderCount, lastPostedAt }: Counters): LedgerChange['before'] {
  return { walletCount, orderCount, lastPostedAt: lastPostedAt.toISOString() }
}

/** Wallets and transfers are numbered without gaps: that was verified. */
async function countersDue(em: Em, workspaceId: string): Promise<Omit<Counters, 'lastPostedAt'>> {
  const id = uuidFromId('workspace', workspaceId)
  const [row] = await em.execute<{ wallets: string; orders: string }[]>(
    `select (select coalesce(max(number), 0)::text from public.wallet where workspace_id = ?) as wallets,
       (select coalesce(max(number), 0)::text from public.transfer where workspace_id = ?) as orders`,
    [id, id],
  )
  return { walletCount: Number(row!.wallets), orderCount: Number(row!.orders) }
}

async function writeWallet(em: Em, workspaceId: string, { target: id, after }: WalletChange): Promise<void> {
  const wallet = await em.findOneOrFail(Wallet, { workspaceId, id })
  wallet.balance = new Decimal(after.balance)
  wallet.sequence = after.sequence
  wallet.orderCount = after.orderCount
  wallet.head = Buffer.from(after.head, 'hex')
}

type WalletChange = LedgerChange & { after: WalletState }

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

function changeOf(row: ComparedRow): WalletChange | null {
  const before = {
    balance: row.balance,
    sequence: Number(row.sequence),
    orderCount: Number(row.orderCount),
    head: row.head,
  }
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
  return isSame ? null : { target: idFromUuid('wallet', row.id), before, after }
}
