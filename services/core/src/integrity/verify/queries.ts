import type { Uuid } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { selectColumns } from '../../database/tables/table.ts'
import { transferColumns } from '../../database/tables/transfer.ts'
import { storedWalletColumns } from '../../database/tables/wallet.ts'

type Text = string | null

const walletNames = [...Object.keys(storedWalletColumns), 'lastPostedAt']
/** A wallet as `selectColumns` reads it, with `last_posted_at` of its ledger as PostgreSQL writes it. */
export type WalletText = Record<keyof typeof storedWalletColumns | 'lastPostedAt', Text>

const entryNames = ['walletId', 'sequence', 'direction', 'flowOrderCount', 'balanceAfter', 'mac', 'time'] as const
const flowNames = [...Object.keys(transferColumns), ...entryNames]
/** One flow of a transfer, with its transfer as `selectColumns` reads it. `mac` in hex; `time` as PostgreSQL writes it. */
export type FlowText = Record<keyof typeof transferColumns | (typeof entryNames)[number], Text> & {
  direction: 'OUT' | 'IN'
}

/** All wallets in the order of their keys. UUIDs sort the same as values and as text. */
export async function* walletsInOrder(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<WalletText[]> {
  const sql = `
    select ${selectColumns(storedWalletColumns, 'w')}, l.last_posted_at
    from public.wallet w left join public.ledger l on l.workspace_id = w.workspace_id
    where $1::uuid is null or w.workspace_id = $1
    order by w.workspace_id, w.id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(row => withNames(walletNames, row) as WalletText)
}

/** The flows of one side of all transfers. */
function entriesOf(side: 'source' | 'target'): string {
  return `
    select ${selectColumns(transferColumns, 't')}, ${side}_wallet_id as wallet, ${side}_sequence as sequence,
      '${side === 'source' ? 'OUT' : 'IN'}', ${side}_order_count, ${side}_balance, encode(${side}_mac, 'hex'), created_at
    from public.transfer t where $1::uuid is null or workspace_id = $1`
}

/** All flows in the order of wallets and sequences. */
export async function* flowsInOrder(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
): AsyncGenerator<FlowText[]> {
  const sql = `${entriesOf('source')} union all ${entriesOf('target')} order by "workspaceId", wallet, sequence`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(row => withNames(flowNames, row) as FlowText)
}

function withNames(names: readonly string[], row: TextRow): Record<string, Text> {
  const named: Record<string, Text> = {}
  for (const [at, name] of names.entries()) named[name] = row[at]!
  return named
}
