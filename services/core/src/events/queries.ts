import {
  Decimal,
  DomainError,
  type Event,
  type EventPage,
  type EventType,
  eventTypes,
  idFromUuid,
  maxPassedPositions,
  type ReadEventsInput,
  uuidFromId,
  type WalletStatus,
} from '@workspace-wallet/contract'
import { changerOf } from '../audit/chain/actors.ts'
import type { ListDatabase } from '../database/lists/list-reader.ts'
import { plainArray, statement } from '../database/statement.ts'
import { toHold } from '../holds/operations.ts'
import type { JournalType } from '../ledger/chain/journal.ts'
import { type ShownTransfer, toOrder } from '../transfers/operations.ts'
import { type ShownFunding, toReceipt } from '../wallets/operations.ts'

/** The transfers that are events of these types. Events of all other types are rows of the journal. */
const transferTypes: Partial<Record<EventType, string>> = {
  'transfer.completed': 'TRANSFER',
  'wallet.deposited': 'DEPOSIT',
  'wallet.withdrawn': 'WITHDRAWAL',
}

/** The ends of a page. `afterId` and `lastId`: the UUIDs of the events at these positions; null at 0. */
type Ends = { head: number; after: number; afterId: string | null; last: number; lastId: string | null }

type Sides = { sourceSequence: number; sourceBalance: string; targetSequence: number; targetBalance: string }
type TransferRow = Omit<ShownTransfer, 'transferId' | 'reversedAmount'> & Sides & { holdRemaining: string | null }
/** Fields that never change are from the row of the hold, the others from that of the journal. */
type HoldRow = {
  holdId: string
  bizId: string
  walletId: string
  currency: string
  amount: string
  captured: string
  remaining: string
  status: string
  expiresAt: Date
  reference: string | null
  remark: string | null
  holdCreatedAt: Date
}
type WalletRow = { walletId: string; bizId: string | null; currency: string; status: WalletStatus; actor: string }

type EventRow = { position: number; id: string; createdAt: Date } & (
  | (TransferRow & { type: 'TRANSFER' | 'DEPOSIT' | 'WITHDRAWAL' })
  | (HoldRow & { type: Extract<JournalType, `hold.${string}`> })
  | (WalletRow & { type: Extract<JournalType, `wallet.${string}`> })
)

const idAt = (position: string) => `
  (select id from transfer t where t.workspace_id = $1 and t.position = ${position}
   union all select id from journal j where j.workspace_id = $1 and j.position = ${position} limit 1)`

/** Selects rows of one table in the span, at most a page. */
const rowsOf = (table: 'transfer' | 'journal', columns: string, types: string) => `
  (select e.position, ${columns} from ${table} e
   where e.workspace_id = $1 and e.position > (select after from span) and e.position <= (select upto from span)
     and cardinality(${types}) > 0 and e.type = any (${types})
   order by e.position limit $4)`

/**
 * One statement, so that all of it sees the same log. $2: the position after which the page begins, null for the end of the
 * log. $3: how many positions it passes at most. $4: its size. $5 and $6: the types of transfers and rows of the journal.
 */
const readEventsStatement = statement<Ends & (EventRow | { position: null })>(
  'read-events',
  `with span as materialized (
     select position as head, coalesce($2::bigint, position) as after,
       least(coalesce($2::bigint, position) + $3::bigint, position) as upto
     from ledger where workspace_id = $1::uuid),
   page as materialized (
     select * from (
       ${rowsOf('transfer', 'e as transfer, null::journal as journal', '$5::text[]')}
       union all
       ${rowsOf('journal', 'null::transfer, e', '$6::text[]')}) e
     order by position limit $4::bigint),
   ends as materialized (
     select *, ${idAt('after')} as "afterId", ${idAt('last')} as "lastId"
     from (select head, after, case when count = $4 then latest else upto end as last
       from span, (select count(*), max(position) as latest from page) page) _)
   select ends.*, e.position,
     coalesce((e.transfer).id, (e.journal).id) as id, coalesce((e.transfer).type, (e.journal).type) as type,
     coalesce((e.transfer).created_at, (e.journal).created_at) as "createdAt",
     coalesce((e.transfer).biz_id, h.biz_id, w.biz_id) as "bizId", coalesce((e.transfer).currency, w.currency) as currency,
     coalesce((e.transfer).amount, h.amount) as amount, coalesce((e.transfer).reference, h.reference) as reference,
     coalesce((e.transfer).remark, h.remark) as remark, coalesce((e.transfer).hold_id, (e.journal).hold_id) as "holdId",
     (e.transfer).hold_remaining as "holdRemaining", (e.transfer).reverses_id as "reversesId",
     (e.transfer).batch_id as "batchId", (e.transfer).source_wallet_id as "sourceWalletId",
     (e.transfer).source_sequence as "sourceSequence", (e.transfer).source_balance as "sourceBalance",
     (e.transfer).target_wallet_id as "targetWalletId", (e.transfer).target_sequence as "targetSequence",
     (e.transfer).target_balance as "targetBalance", (e.journal).wallet_id as "walletId", (e.journal).captured,
     (e.journal).remaining, (e.journal).status, (e.journal).actor, h.expires_at as "expiresAt",
     h.created_at as "holdCreatedAt"
   from ends left join page e on true
   left join lateral (
     select * from hold where hold.workspace_id = $1 and hold.id = (e.journal).hold_id limit 1) h on true
   left join lateral (
     select * from wallet where wallet.workspace_id = $1 and wallet.id = (e.journal).wallet_id limit 1) w on true
   order by e.position`,
)

/**
 * The events of a workspace after a position, in order of position. Without `types`: of all types. A page costs the same at
 * any position.
 *
 * @throws DomainError GA2032; E001 if the log ends before `after`; S002 if too many lists wait
 */
export async function readEvents(
  db: ListDatabase,
  workspaceId: string,
  { after, size, types }: Pick<ReadEventsInput, 'after' | 'size' | 'types'>,
): Promise<EventPage> {
  const workspace = uuidFromId('workspace', workspaceId)
  if (!workspace) throw new DomainError('GA2032')
  const passed = types.length === 0 ? size : maxPassedPositions
  const read = types.length === 0 ? eventTypes : types
  const rows = await db.read({
    workspace,
    cost: 'bounded',
    statement: readEventsStatement,
    values: [
      workspace,
      after === 'head' ? null : after,
      passed,
      size,
      plainArray(read.flatMap(type => transferTypes[type] ?? [])),
      plainArray(read.filter(type => !(type in transferTypes))),
    ],
  })
  const [ends] = rows
  if (!ends) throw new DomainError('GA2032')
  if (ends.after > ends.head) throw new DomainError('E001', { position: ends.head })
  return {
    content: rows.flatMap(row => (row.position === null ? [] : toEvent(workspaceId, row))),
    after: ends.after,
    afterEventId: after === 'head' ? null : eventIdOf(ends.afterId),
    types,
    last: ends.last,
    lastEventId: eventIdOf(ends.lastId),
    more: ends.last < ends.head,
  }
}

function eventIdOf(uuid: string | null): string | null {
  return uuid && idFromUuid('event', uuid)
}

function toEvent(workspaceId: string, row: EventRow): Event {
  const { id, position, createdAt } = row
  const event = { eventId: idFromUuid('event', id), position, timestamp: createdAt, workspaceId }
  switch (row.type) {
    case 'TRANSFER':
      return { ...event, type: 'transfer.completed', data: transferData(row) }
    case 'DEPOSIT': {
      const { target } = balancesOf(row)
      return { ...event, type: 'wallet.deposited', data: { ...fundingData(row, row.type), balances: { target } } }
    }
    case 'WITHDRAWAL': {
      const { source } = balancesOf(row)
      return { ...event, type: 'wallet.withdrawn', data: { ...fundingData(row, row.type), balances: { source } } }
    }
    case 'hold.created':
    case 'hold.released':
    case 'hold.expired':
      return { ...event, type: row.type, data: { hold: holdOf(row, createdAt) } }
    default:
      return { ...event, type: row.type, data: walletData(row) }
  }
}

function transferData(row: TransferRow & { id: string }) {
  // Reversals are later events.
  const { reversedAmount: _, ...transfer } = toOrder({ ...row, transferId: row.id, reversedAmount: null })
  return { transfer, balances: balancesOf(row), holdRemaining: holdRemainingOf(row) }
}

function fundingData(row: TransferRow & { id: string }, type: ShownFunding['type']) {
  return { funding: toReceipt({ ...row, transferId: row.id, type }), holdRemaining: holdRemainingOf(row) }
}

function balancesOf(row: TransferRow) {
  return {
    source: {
      walletId: idFromUuid('wallet', row.sourceWalletId),
      sequence: row.sourceSequence,
      balanceAfter: new Decimal(row.sourceBalance),
    },
    target: {
      walletId: idFromUuid('wallet', row.targetWalletId),
      sequence: row.targetSequence,
      balanceAfter: new Decimal(row.targetBalance),
    },
  }
}

function holdRemainingOf({ holdRemaining }: TransferRow): Decimal | null {
  return holdRemaining === null ? null : new Decimal(holdRemaining)
}

/** The hold after the event. An expired hold was changed when it expired, not when the expiry was written. */
function holdOf({ holdId, holdCreatedAt, ...row }: HoldRow, at: Date) {
  const updatedAt = row.status === 'EXPIRED' ? row.expiresAt : at
  return toHold({ ...row, id: holdId, createdAt: holdCreatedAt, updatedAt })
}

function walletData({ walletId, bizId, currency, status, actor }: WalletRow) {
  return { walletId: idFromUuid('wallet', walletId), bizId, currency, status, by: changerOf(actor) }
}
