import { type EventType, eventTypes, maxPassedPositions, type Uuid } from '@workspace-wallet/contract'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import type { HoldRow, LedgerRow, WalletRow } from '../database/signed-rows.ts'
import { arrayStatement, plainArray } from '../database/statement.ts'
import type { JournalEntry, JournalType } from '../ledger/chain/journal.ts'
import type { Transfer } from '../ledger/chain/transfer.ts'
import { hex, holdJson, type JsonOf, ledgerJson, milliseconds, walletJson } from '../ledger/store/row-json.ts'

/** The transfers that are events of these types. Events of all other types are rows of the journal. */
const transferTypes: Partial<Record<EventType, string>> = {
  'transfer.completed': 'TRANSFER',
  'wallet.deposited': 'DEPOSIT',
  'wallet.withdrawn': 'WITHDRAWAL',
}

/**
 * What a page is about. `previous`: wallet, sequence and MAC of the entries before those of the page that are not in the page.
 */
export type PageInfo = { ledger: JsonOf<LedgerRow>; after: number; last: number; previous: [string, number, string][] }

/** MACs are hex. */
type StoredSide = { balanceAfter: string; orderCount: number; mac: string }

/** A transfer with its entries. */
export type StoredTransfer = { transfer: Transfer; source: StoredSide; target: StoredSide }

/**
 * A row of the journal. `previous`: the MAC of the row before it, if that is not in the page. `hold` and `wallet`: the row of the
 * hold for events of holds, and of the wallet for events of wallets.
 */
export type StoredEntry = {
  entry: JournalEntry
  mac: string
  previous: string | null
  hold: JsonOf<HoldRow> | null
  wallet: JsonOf<WalletRow> | null
}

export type StoredEvent = StoredTransfer | StoredEntry

export function positionOf(event: StoredEvent): number {
  return 'transfer' in event ? event.transfer.position : event.entry.position
}

/** The columns of a row, as they are read: those of an event, or `info`. */
type Columns = {
  info: PageInfo | null
  position: number | null
  id: Uuid<'transfer' | 'event'>
  type: string
  orderCount: number
  holdId: Uuid<'hold'> | null
  actor: string
  requestId: string
  clientAddress: string | null
  createdAtMs: number
  bizId: string | null
  reference: string | null
  amount: string
  currency: string
  remark: string | null
  holdRemaining: string | null
  reversesId: Uuid<'transfer'> | null
  reversedTotal: string | null
  batchId: Uuid<'transfer'> | null
  sourceWalletId: Uuid<'wallet'>
  sourceSequence: number
  sourceOrderCount: number
  sourceBalance: string
  sourceMac: string
  targetWalletId: Uuid<'wallet'>
  targetSequence: number
  targetOrderCount: number
  targetBalance: string
  targetMac: string
  walletId: Uuid<'wallet'>
  captured: string | null
  remaining: string | null
  status: string
  mac: string | null
  previous: string | null
  hold: JsonOf<HoldRow> | null
  wallet: JsonOf<WalletRow> | null
}

/** What the columns select, of `transfer t` and of `journal j`. */
const columns: Record<Exclude<keyof Columns, 'info'>, [ofTransfer: string, ofJournal: string]> = {
  position: ['t.position', 'j.position'],
  id: ['t.id', 'j.id'],
  type: ['t.type', 'j.type'],
  orderCount: ['t.order_count', 'j.order_count'],
  holdId: ['t.hold_id', 'j.hold_id'],
  actor: ['t.actor', 'j.actor'],
  requestId: ['t.request_id', 'j.request_id'],
  clientAddress: ['t.client_address', 'j.client_address'],
  createdAtMs: [milliseconds('t.created_at'), milliseconds('j.created_at')],
  bizId: ['t.biz_id', 'null'],
  reference: ['t.reference', 'null'],
  amount: ['t.amount', 'null'],
  currency: ['t.currency', 'null'],
  remark: ['t.remark', 'null'],
  holdRemaining: ['t.hold_remaining', 'null'],
  reversesId: ['t.reverses_id', 'null'],
  reversedTotal: ['t.reversed_total', 'null'],
  batchId: ['t.batch_id', 'null'],
  sourceWalletId: ['t.source_wallet_id', 'null'],
  sourceSequence: ['t.source_sequence', 'null'],
  sourceOrderCount: ['t.source_order_count', 'null'],
  sourceBalance: ['t.source_balance', 'null'],
  sourceMac: [hex('t.source_mac'), 'null'],
  targetWalletId: ['t.target_wallet_id', 'null'],
  targetSequence: ['t.target_sequence', 'null'],
  targetOrderCount: ['t.target_order_count', 'null'],
  targetBalance: ['t.target_balance', 'null'],
  targetMac: [hex('t.target_mac'), 'null'],
  walletId: ['null::uuid', 'j.wallet_id'],
  captured: ['null::numeric', 'j.captured'],
  remaining: ['null::numeric', 'j.remaining'],
  status: ['null::text', 'j.status'],
  mac: ['null::text', hex('j.mac')],
  previous: ['null::text', 'j.previous'],
  hold: ['null::json', 'h.content'],
  wallet: ['null::json', 'w.content'],
}
const columnNames = Object.keys(columns) as (keyof typeof columns)[]
const columnsOf = (table: 0 | 1) => columnNames.map(name => `${columns[name][table]} as "${name}"`).join(', ')

/** Selects rows of one table in the span, at most a page. */
const rowsInSpan = (table: 'transfer' | 'journal', types: string) => `
  select * from ${table} e
  where e.workspace_id = $1 and e.position > (select after from span) and e.position <= (select upto from span)
    and cardinality(${types}) > 0 and e.type = any (${types})
  order by e.position limit $4`

/** Selects the rows of one table at the ends of the page, if they are not in it. */
const rowsAtEnds = (table: 'transfer' | 'journal') => `
  select e.* from ends cross join lateral (
    select * from ${table} where workspace_id = $1 and position >= ends.position order by position limit 1) e
  where e.position = ends.position`

/** Selects the rows of one table in the page and at its ends. */
const shown = (table: 'transfers' | 'journal') => `(
  select * from found_${table} where position <= (select last from cut) union all select * from ${table}_at_ends)`

/** Selects the last entry on one side of a wallet before an entry. */
const entryBefore = (side: 'source' | 'target') => `
  (select t.${side}_sequence as sequence, t.${side}_mac as mac from transfer t
   where t.workspace_id = $1 and t.${side}_wallet_id = unlinked.wallet_id and t.${side}_sequence < unlinked.sequence
   order by t.${side}_sequence desc limit 1)`

/**
 * One statement, so that all of it sees the same log. $2: the position after which the page begins, null for the end of the
 * log. $3: how many positions it passes at most. $4: its size. $5 and $6: the types of transfers and rows of the journal. $7:
 * whether these are not all types.
 *
 * Most entries follow another one of the page. Only the MACs before the others are looked up. Without a filter, the same holds
 * for rows of the journal. Entries are compared with their neighbours in order and not by a join, whose plan would depend on
 * statistics. One row has the `info`, and the others have the events, in any order.
 */
const readEventsStatement = arrayStatement<unknown[]>(
  'read-events',
  `with span as materialized (
     select after, least(after + $3::bigint, position) as upto
     from (select position, coalesce($2::bigint, position) as after from ledger where workspace_id = $1::uuid) _),
   found_transfers as materialized (${rowsInSpan('transfer', '$5::text[]')}),
   found_journal as materialized (${rowsInSpan('journal', '$6::text[]')}),
   found as (select position from found_transfers union all select position from found_journal),
   cut as materialized (
     select case when count(*) = $4 then max(position) else (select upto from span) end as last
     from (select position from found order by position limit $4::bigint) _),
   ends as materialized (
     select position from (select after as position from span union select last from cut) _
     where position not in (select position from found)),
   transfers_at_ends as materialized (${rowsAtEnds('transfer')}),
   journal_at_ends as materialized (${rowsAtEnds('journal')}),
   unlinked as materialized (
     select wallet_id, sequence from (
       select *, lag(sequence) over (partition by wallet_id order by sequence) as before from (
         select source_wallet_id as wallet_id, source_sequence as sequence from ${shown('transfers')} _
         union all select target_wallet_id, target_sequence from ${shown('transfers')} _) _) entry
     where sequence > 1 and before is distinct from sequence - 1),
   previous as (
     select unlinked.wallet_id, entry.sequence, entry.mac
     from unlinked cross join lateral (
       select * from (${entryBefore('source')} union all ${entryBefore('target')}) _
       order by sequence desc limit 1) entry),
   info as (
     select json_build_object('ledger', ${ledgerJson}, 'after', span.after, 'last', cut.last, 'previous', (
       select coalesce(json_agg(json_build_array(wallet_id, sequence, ${hex('mac')})), '[]') from previous)) as info
     from ledger l, span, cut where l.workspace_id = $1)
   select null::json as info, ${columnsOf(0)} from ${shown('transfers')} t
   union all
   select null, ${columnsOf(1)} from (
     select *, case when $7::boolean or position = (select min(position) from ${shown('journal')} _) then (
       select ${hex('b.mac')} from journal b where b.workspace_id = $1 and b.position < e.position
       order by b.position desc limit 1) end as previous
     from ${shown('journal')} e) j
   left join lateral (
     select ${holdJson} as content from hold where workspace_id = $1 and id between j.hold_id and j.hold_id order by id limit 1) h on true
   left join lateral (
     select ${walletJson} as content from wallet
     where workspace_id = $1 and id = j.wallet_id and j.hold_id is null limit 1) w on true
   union all
   select info, ${columnNames.map(() => 'null').join(', ')} from info`,
)

/** Where the columns are in a row. */
const places = Object.fromEntries(['info', ...columnNames].map((name, place) => [name, place])) as Record<
  keyof Columns,
  number
>
function read<Name extends keyof Columns>(row: unknown[], name: Name): Columns[Name] {
  return row[places[name]] as Columns[Name]
}

/** The events of a page in order of position, and those at its ends. */
export type StoredPage = { info: PageInfo; events: StoredEvent[] }

/**
 * Reads a page, without checking it. Without `types`: of all types. A page costs the same at any position. Null if there is no such
 * workspace.
 *
 * @throws DomainError S002 if too many lists wait
 */
export async function readStoredPage(
  db: ListDatabase,
  workspaceId: Uuid<'workspace'>,
  { after, size, types }: { after: number | 'head'; size: number; types: readonly EventType[] },
): Promise<StoredPage | null> {
  const wanted = types.length === 0 ? eventTypes : types
  const rows = await db.read({
    workspace: workspaceId,
    cost: 'bounded',
    statement: readEventsStatement,
    values: [
      workspaceId,
      after === 'head' ? null : after,
      types.length === 0 ? size : maxPassedPositions,
      size,
      plainArray(wanted.flatMap(type => transferTypes[type] ?? [])),
      plainArray(wanted.filter(type => !(type in transferTypes))),
      types.length > 0,
    ],
  })
  const info = rows.map(row => read(row, 'info')).find(found => found !== null)
  if (!info) return null
  const events = rows.flatMap(row => (read(row, 'position') === null ? [] : toStoredEvent(workspaceId, row)))
  return { info, events: events.sort((a, b) => positionOf(a) - positionOf(b)) }
}

/** Whatever the type of a damaged row, only rows of the journal have a MAC of their own. */
function toStoredEvent(workspaceId: Uuid<'workspace'>, row: unknown[]): StoredEvent {
  return read(row, 'mac') === null ? toStoredTransfer(workspaceId, row) : toStoredEntry(workspaceId, row)
}

function toStoredTransfer(workspaceId: Uuid<'workspace'>, row: unknown[]): StoredTransfer {
  return {
    transfer: {
      type: read(row, 'type') as Transfer['type'],
      workspaceId,
      transferId: read(row, 'id') as Uuid<'transfer'>,
      bizId: read(row, 'bizId'),
      reference: read(row, 'reference'),
      sourceWalletId: read(row, 'sourceWalletId'),
      targetWalletId: read(row, 'targetWalletId'),
      amount: read(row, 'amount'),
      currency: read(row, 'currency'),
      remark: read(row, 'remark'),
      holdId: read(row, 'holdId'),
      holdRemaining: read(row, 'holdRemaining'),
      reversesId: read(row, 'reversesId'),
      reversedTotal: read(row, 'reversedTotal'),
      batchId: read(row, 'batchId'),
      actor: read(row, 'actor'),
      requestId: read(row, 'requestId'),
      clientAddress: read(row, 'clientAddress'),
      position: read(row, 'position')!,
      orderCount: read(row, 'orderCount'),
      sourceSequence: read(row, 'sourceSequence'),
      targetSequence: read(row, 'targetSequence'),
      createdAt: new Date(read(row, 'createdAtMs')),
    },
    source: {
      balanceAfter: read(row, 'sourceBalance'),
      orderCount: read(row, 'sourceOrderCount'),
      mac: read(row, 'sourceMac'),
    },
    target: {
      balanceAfter: read(row, 'targetBalance'),
      orderCount: read(row, 'targetOrderCount'),
      mac: read(row, 'targetMac'),
    },
  }
}

function toStoredEntry(workspaceId: Uuid<'workspace'>, row: unknown[]): StoredEntry {
  return {
    entry: {
      workspaceId,
      position: read(row, 'position')!,
      orderCount: read(row, 'orderCount'),
      id: read(row, 'id') as Uuid<'event'>,
      type: read(row, 'type') as JournalType,
      walletId: read(row, 'walletId'),
      holdId: read(row, 'holdId'),
      captured: read(row, 'captured'),
      remaining: read(row, 'remaining'),
      status: read(row, 'status'),
      actor: read(row, 'actor'),
      requestId: read(row, 'requestId'),
      clientAddress: read(row, 'clientAddress'),
      createdAt: new Date(read(row, 'createdAtMs')),
    },
    mac: read(row, 'mac')!,
    previous: read(row, 'previous'),
    hold: read(row, 'hold'),
    wallet: read(row, 'wallet'),
  }
}
