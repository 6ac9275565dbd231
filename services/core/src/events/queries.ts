import { type EventType, eventTypes, maxPassedPositions, type Uuid } from '@workspace-wallet/contract'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { arrayStatement, plainArray } from '../database/statement.ts'
import { bytes } from '../database/tables/columns.ts'
import { type HoldRow, storedHoldColumns } from '../database/tables/hold.ts'
import { journalColumns } from '../database/tables/journal.ts'
import { type LedgerRow, storedLedgerColumns } from '../database/tables/ledger.ts'
import {
  arrayReader,
  type Columns,
  type FoundRow,
  jsonOf,
  readColumn,
  rowFrom,
  type WithMac,
  withMac,
} from '../database/tables/table.ts'
import { entryColumns, transferColumns } from '../database/tables/transfer.ts'
import { storedWalletColumns, type WalletRow } from '../database/tables/wallet.ts'
import type { JournalEntry } from '../ledger/chain/journal.ts'
import type { Transfer } from '../ledger/chain/transfer.ts'

/** The transfers that are events of these types. Events of all other types are rows of the journal. */
const transferTypes: Partial<Record<EventType, string>> = {
  'transfer.completed': 'TRANSFER',
  'wallet.deposited': 'DEPOSIT',
  'wallet.withdrawn': 'WITHDRAWAL',
}

/**
 * What a page is about. `previous`: wallet, sequence and MAC of the entries before those of the page that are not in the page.
 */
export type PageInfo = {
  ledger: WithMac<LedgerRow>
  after: number
  last: number
  previous: [string, number, string][]
}
type FoundInfo = Omit<PageInfo, 'ledger'> & { ledger: FoundRow<typeof storedLedgerColumns> }

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
  hold: WithMac<HoldRow> | null
  wallet: WithMac<WalletRow> | null
}

export type StoredEvent = StoredTransfer | StoredEntry

export function positionOf(event: StoredEvent): number {
  return 'transfer' in event ? event.transfer.position : event.entry.position
}

/** The columns of both tables. A row has those of its table, and null in the others. */
const ofTransfer: Columns = { ...transferColumns, ...entryColumns }
const ofJournal: Columns = withMac(journalColumns)
const columnNames = [...new Set([...Object.keys(ofTransfer), ...Object.keys(ofJournal)])]
const columnsOf = (columns: Columns, alias: string) =>
  columnNames.map(name => (columns[name] ? readColumn(name, columns[name], alias) : 'null')).join(', ')
/** What the elements of a row are: `info`, or the columns of an event and what belongs to it. */
const names = ['info', ...columnNames, 'previous', 'hold', 'wallet']

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
     select json_build_object('ledger', ${jsonOf(storedLedgerColumns, 'l')}, 'after', span.after, 'last', cut.last, 'previous', (
       select coalesce(json_agg(json_build_array(wallet_id, sequence, ${bytes.read('mac')})), '[]') from previous)) as info
     from ledger l, span, cut where l.workspace_id = $1)
   select null::json as info, ${columnsOf(ofTransfer, 't')}, null as previous, null::json as hold, null::json as wallet from ${shown('transfers')} t
   union all
   select null, ${columnsOf(ofJournal, 'j')}, j.previous, h.content, w.content from (
     select *, case when $7::boolean or position = (select min(position) from ${shown('journal')} _) then (
       select ${bytes.read('b.mac')} from journal b where b.workspace_id = $1 and b.position < e.position
       order by b.position desc limit 1) end as previous
     from ${shown('journal')} e) j
   left join lateral (
     select ${jsonOf(storedHoldColumns, 'hold')} as content from hold where workspace_id = $1 and id between j.hold_id and j.hold_id order by id limit 1) h on true
   left join lateral (
     select ${jsonOf(storedWalletColumns, 'wallet')} as content from wallet
     where workspace_id = $1 and id = j.wallet_id and j.hold_id is null limit 1) w on true
   union all
   select info, ${names.slice(1).map(() => 'null')} from info`,
)

const place = Object.fromEntries(names.map((name, at) => [name, at]))
const valueIn = <Value>(row: readonly unknown[], name: string) => row[place[name]!] as Value
const toTransfer = arrayReader(transferColumns, names)
const toEntry = arrayReader(journalColumns, names)

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
    cost: 'events',
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
  const info = rows.map(row => valueIn<FoundInfo | null>(row, 'info')).find(found => found !== null)
  if (!info) return null
  const events = rows.flatMap(row => (valueIn(row, 'position') === null ? [] : toStoredEvent(row)))
  return {
    info: { ...info, ledger: rowFrom(storedLedgerColumns, info.ledger) },
    events: events.sort((a, b) => positionOf(a) - positionOf(b)),
  }
}

/** Whatever the type of a damaged row, only rows of the journal have a MAC of their own. */
function toStoredEvent(row: readonly unknown[]): StoredEvent {
  if (valueIn(row, 'mac') === null) {
    const [source, target] = [sideOf(row, 'source'), sideOf(row, 'target')]
    return { transfer: toTransfer(row), source, target }
  }
  const hold = valueIn<FoundRow<typeof storedHoldColumns> | null>(row, 'hold')
  const wallet = valueIn<FoundRow<typeof storedWalletColumns> | null>(row, 'wallet')
  return {
    entry: toEntry(row),
    mac: valueIn(row, 'mac'),
    previous: valueIn(row, 'previous'),
    hold: hold && rowFrom(storedHoldColumns, hold),
    wallet: wallet && rowFrom(storedWalletColumns, wallet),
  }
}

function sideOf(row: readonly unknown[], side: 'source' | 'target'): StoredSide {
  return {
    balanceAfter: valueIn(row, `${side}Balance`),
    orderCount: valueIn(row, `${side}OrderCount`),
    mac: valueIn(row, `${side}Mac`),
  }
}
