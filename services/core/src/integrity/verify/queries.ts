import type { Uuid } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { selectColumns } from '../../database/tables/table.ts'
import { transferColumns } from '../../database/tables/transfer.ts'
import { storedWalletColumns } from '../../database/tables/wallet.ts'
import { type Extent, eventsOf } from './extent.ts'
import type { Scope } from './scope.ts'

type Text = string | null

const walletNames = [...Object.keys(storedWalletColumns), 'lastPostedAt']
/** A wallet as `selectColumns` reads it, with `last_posted_at` of its ledger as PostgreSQL writes it. */
export type WalletText = Record<keyof typeof storedWalletColumns | 'lastPostedAt', Text>

const entryNames = [
  'walletId',
  'sequence',
  'direction',
  'flowOrderCount',
  'balanceAfter',
  'mac',
  'time',
  'previousMac',
] as const
const flowNames = [...Object.keys(transferColumns), ...entryNames]
/**
 * One flow of a transfer, with its transfer as `selectColumns` reads it. MACs in hex; `time` as PostgreSQL writes it. An incremental
 * verification has the stored MAC of the flow before the first one that it reads of a wallet: `previousMac`.
 */
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
    from {here}.wallet w left join {here}.ledger l on l.workspace_id = w.workspace_id
    where $1::uuid is null or w.workspace_id = $1
    order by w.workspace_id, w.id`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(row => withNames(walletNames, row) as WalletText)
}

/** The flows of one side of the transfers. */
function entriesOf(side: 'source' | 'target', extent: Extent): string {
  return `
    select ${selectColumns(transferColumns, 't')}, ${side}_wallet_id as wallet, ${side}_sequence as sequence,
      '${side === 'source' ? 'OUT' : 'IN'}', ${side}_order_count, ${side}_balance, encode(${side}_mac, 'hex'), created_at
    from ${eventsOf('transfer', extent)} t where $1::uuid is null or workspace_id = $1`
}

const previousMac = `
  case when sequence > 1 and row_number() over (partition by "workspaceId", wallet order by sequence) = 1 then coalesce(
    (select encode(p.source_mac, 'hex') from {here}.transfer p where p.workspace_id = "workspaceId"
      and p.source_wallet_id = wallet and p.source_sequence = sequence - 1 limit 1),
    (select encode(p.target_mac, 'hex') from {here}.transfer p where p.workspace_id = "workspaceId"
      and p.target_wallet_id = wallet and p.target_sequence = sequence - 1 limit 1)) end`

/** The flows in the order of wallets and sequences. */
export async function* flowsInOrder({ snapshot, workspaceId, extent }: Scope): AsyncGenerator<FlowText[]> {
  const flows = `${entriesOf('source', extent)} union all ${entriesOf('target', extent)}`
  const read = extent === 'WHOLE' ? `select *, null from (${flows})` : `select *, ${previousMac} from (${flows})`
  const sql = `${read} order by "workspaceId", wallet, sequence`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    yield rows.map(row => withNames(flowNames, row) as FlowText)
}

function withNames(names: readonly string[], row: TextRow): Record<string, Text> {
  const named: Record<string, Text> = {}
  for (const [at, name] of names.entries()) named[name] = row[at]!
  return named
}
