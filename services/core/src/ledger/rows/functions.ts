import type { KeyObject } from 'node:crypto'
import { mintId, type Uuid, uuidFromId, type WalletChanger, type WalletStatus } from '@workspace-wallet/contract'
import type { Run } from '../../database/run.ts'
import { type Arguments, argumentValues, bytesText, namedArguments, statement } from '../../database/statement.ts'
import { type LedgerRow, ledgerMac } from '../../database/tables/ledger.ts'
import { type LimitRow, limitMac } from '../../database/tables/spending-limit.ts'
import { type WalletRow, walletMac } from '../../database/tables/wallet.ts'
import { emptyJournalHead, type JournalEntry, type JournalType, journalMac } from '../chain/journal.ts'

// Database functions write the rows of ledgers and wallets and check each change (see database/migrations/initial/ledger-rows.ts;
// for postings, store/write-transfers.ts). Callers lock the ledger first and pass rows whose MACs they have checked. All throw a
// DatabaseError, restrict_violation, when a change does not continue from the stored rows.

/** The rows after a change. */
type Changed = { ledger: LedgerRow; wallet: WalletRow }

const openLedgerStatement = statement('open-ledger', 'select open_ledger($1, $2, $3)')

/** Inserts the empty ledger of a new workspace. */
export async function openLedger(
  run: Run,
  chainKey: KeyObject,
  workspaceId: Uuid<'workspace'>,
  now: Date,
): Promise<void> {
  const ledger: LedgerRow = {
    workspaceId,
    status: 'OPEN',
    walletCount: 0,
    orderCount: 0,
    holdCount: 0,
    limitCount: 0,
    position: 0,
    journalHead: emptyJournalHead,
    lastPostedAt: now,
    haltReason: null,
    revision: 1,
  }
  await run(openLedgerStatement, [workspaceId, now, ledgerMac(chainKey, ledger)])
}

/** Rows as a function leaves them, and the event that it appends. */
type Signed<Event> = { wallet: WalletRow; mac: Buffer; ledgerMac: Buffer; event: Event }

const createWalletArguments: Arguments<Signed<ChainedEvent | null>> = {
  workspace: ({ wallet }) => wallet.workspaceId,
  wallet: ({ wallet }) => wallet.id,
  wallet_number: ({ wallet }) => wallet.number,
  wallet_biz_id: ({ wallet }) => wallet.bizId,
  wallet_name: ({ wallet }) => wallet.name,
  wallet_currency: ({ wallet }) => wallet.currency,
  at: ({ wallet }) => wallet.createdAt,
  new_mac: ({ mac }) => mac,
  new_ledger_mac: ({ ledgerMac }) => ledgerMac,
  entry: ({ event }) => event && toJson(event),
}
const createWalletStatement = statement(
  'create-wallet',
  `select create_wallet(${namedArguments(createWalletArguments)})`,
)

/**
 * Inserts an empty wallet. One of a customer has the next number of the ledger, and is an event by `author`. A hidden one
 * has neither.
 */
export async function insertWallet(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow,
  wallet: WalletRow,
  author: EventAuthor,
): Promise<Changed> {
  const { number } = wallet
  const isHidden = number === null
  const event = isHidden ? null : chainEvent(chainKey, before, wallet, 'wallet.created', author)
  const ledger = {
    ...before,
    walletCount: number ?? before.walletCount,
    position: event?.position ?? before.position,
    journalHead: event?.mac ?? before.journalHead,
    lastPostedAt: wallet.createdAt,
    revision: before.revision + 1,
  }
  const signed = { wallet, mac: walletMac(chainKey, wallet), ledgerMac: ledgerMac(chainKey, ledger), event }
  await run(createWalletStatement, argumentValues(createWalletArguments, signed))
  return { ledger, wallet }
}

const changeWalletStatusArguments: Arguments<Signed<ChainedEvent>> = {
  workspace: ({ wallet }) => wallet.workspaceId,
  wallet: ({ wallet }) => wallet.id,
  new_status: ({ wallet }) => wallet.status,
  new_frozen_by: ({ wallet }) => wallet.frozenBy,
  at: ({ wallet }) => wallet.updatedAt,
  new_mac: ({ mac }) => mac,
  new_ledger_mac: ({ ledgerMac }) => ledgerMac,
  entry: ({ event }) => toJson(event),
}
const changeWalletStatusStatement = statement(
  'change-wallet-status',
  `select change_wallet_status(${namedArguments(changeWalletStatusArguments)})`,
)

/** Freezes, unfreezes or closes a wallet, which is an event by `author`. `frozenBy` is null unless it becomes FROZEN. */
export async function changeWalletStatus(
  run: Run,
  chainKey: KeyObject,
  before: Changed,
  { status, frozenBy, at }: { status: WalletStatus; frozenBy: WalletChanger | null; at: Date },
  author: EventAuthor,
): Promise<Changed> {
  const wallet = { ...before.wallet, status, frozenBy, updatedAt: at, revision: before.wallet.revision + 1 }
  const event = chainEvent(chainKey, before.ledger, wallet, eventOfStatus[status], author)
  const ledger = {
    ...before.ledger,
    position: event.position,
    journalHead: event.mac,
    lastPostedAt: at,
    revision: before.ledger.revision + 1,
  }
  const signed = { wallet, mac: walletMac(chainKey, wallet), ledgerMac: ledgerMac(chainKey, ledger), event }
  await run(changeWalletStatusStatement, argumentValues(changeWalletStatusArguments, signed))
  return { ledger, wallet }
}

/** The event of a change to this status. */
const eventOfStatus = {
  ACTIVE: 'wallet.unfrozen',
  FROZEN: 'wallet.frozen',
  CLOSED: 'wallet.closed',
} as const satisfies Record<WalletStatus, JournalType>

/** Who caused an event, for its row in the journal. */
export type EventAuthor = Pick<JournalEntry, 'actor' | 'requestId' | 'clientAddress'>

type ChainedEvent = JournalEntry & { mac: Buffer }

/** The next event of the ledger: what happened to a wallet, whose row is given as the event leaves it. */
function chainEvent(
  chainKey: KeyObject,
  { position, orderCount, journalHead }: LedgerRow,
  { workspaceId, id: walletId, status, updatedAt }: WalletRow,
  type: JournalType,
  author: EventAuthor,
): ChainedEvent {
  const entry: JournalEntry = {
    workspaceId,
    position: position + 1,
    orderCount,
    id: uuidFromId('event', mintId('event')),
    type,
    walletId,
    holdId: null,
    captured: null,
    remaining: null,
    status,
    ...author,
    createdAt: updatedAt,
  }
  return { ...entry, mac: journalMac(chainKey, entry, journalHead) }
}

/** What a database function cannot read from the rows that it writes. */
function toJson({ position, id, type, actor, requestId, clientAddress, mac }: ChainedEvent): string {
  return JSON.stringify({
    position,
    id,
    type,
    actor,
    request_id: requestId,
    client_address: clientAddress,
    mac: bytesText(mac),
  })
}

const changeLedgerStatusStatement = statement('change-ledger-status', 'select change_ledger_status($1, $2, $3, $4)')

/**
 * Halts, reopens or closes a ledger.
 *
 * @param sign whether to compute a new MAC. Without it the row keeps its MAC, so a row that was modified outside the
 *   service stays detectable.
 */
export async function changeLedgerStatus(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow & { mac: Uint8Array },
  { status, haltReason }: Pick<LedgerRow, 'status' | 'haltReason'>,
  sign: boolean,
): Promise<void> {
  const ledger = { ...before, status, haltReason, revision: before.revision + 1 }
  const mac = sign ? ledgerMac(chainKey, ledger) : before.mac
  await run(changeLedgerStatusStatement, [ledger.workspaceId, status, haltReason, mac])
}

const repairWalletArguments: Arguments<WalletRow & { mac: Buffer }> = {
  workspace: row => row.workspaceId,
  wallet: row => row.id,
  new_balance: row => row.balance.toFixed(),
  new_sequence: row => row.sequence,
  new_order_count: row => row.orderCount,
  new_head: row => row.head,
  new_held: row => row.held.toFixed(),
  new_held_until: row => row.heldUntil,
  new_hold_count: row => row.holdCount,
  new_name: row => row.name,
  new_biz_id: row => row.bizId,
  new_status: row => row.status,
  new_frozen_by: row => row.frozenBy,
  new_mac: row => row.mac,
}
const repairWalletStatement = statement(
  'repair-wallet',
  `select repair_wallet(${namedArguments(repairWalletArguments)})`,
)

/** Writes a wallet's values as recomputed from its flows and holds. The ledger must be halted. */
export async function repairWalletRow(
  run: Run,
  chainKey: KeyObject,
  before: WalletRow,
  change: Partial<WalletRow>,
): Promise<void> {
  const wallet = { ...before, ...change, revision: before.revision + 1 }
  const mac = walletMac(chainKey, wallet)
  await run(repairWalletStatement, argumentValues(repairWalletArguments, { ...wallet, mac }))
}

const repairLedgerArguments: Arguments<LedgerRow & { mac: Buffer }> = {
  workspace: row => row.workspaceId,
  new_wallet_count: row => row.walletCount,
  new_order_count: row => row.orderCount,
  new_hold_count: row => row.holdCount,
  new_limit_count: row => row.limitCount,
  new_position: row => row.position,
  new_journal_head: row => row.journalHead,
  at: row => row.lastPostedAt,
  new_mac: row => row.mac,
}
const repairLedgerStatement = statement(
  'repair-ledger',
  `select repair_ledger(${namedArguments(repairLedgerArguments)})`,
)

/** Writes a ledger's counters and the end of its event log as recomputed. The ledger must be halted. */
export async function repairLedgerRow(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow,
  counters: Partial<LedgerRow>,
): Promise<void> {
  const ledger = { ...before, ...counters, revision: before.revision + 1 }
  const mac = ledgerMac(chainKey, ledger)
  await run(repairLedgerStatement, argumentValues(repairLedgerArguments, { ...ledger, mac }))
}

type SignedLimit = { limit: LimitRow; mac: Buffer; limitCount: number; ledgerMac: Buffer }

const setLimitArguments: Arguments<SignedLimit> = {
  workspace: ({ limit }) => limit.workspaceId,
  limit_subject: ({ limit }) => limit.subject,
  limit_currency: ({ limit }) => limit.currency,
  new_per_transfer: ({ limit }) => limit.perTransfer?.toFixed() ?? null,
  new_per_day: ({ limit }) => limit.perDay?.toFixed() ?? null,
  new_day: ({ limit }) => limit.day,
  new_spent: ({ limit }) => limit.spent.toFixed(),
  new_counted_from: ({ limit }) => limit.countedFrom,
  at: ({ limit }) => limit.updatedAt,
  new_mac: ({ mac }) => mac,
  new_limit_count: ({ limitCount }) => limitCount,
  new_ledger_mac: ({ ledgerMac }) => ledgerMac,
}
const setLimitStatement = statement('set-limit', `select set_limit(${namedArguments(setLimitArguments)})`)

/** Writes a limit as it is set, changed or cleared. `limitCount`: the number of limits afterwards. */
export async function writeLimit(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow,
  limit: LimitRow,
  limitCount: number,
): Promise<void> {
  const ledger = { ...before, limitCount, lastPostedAt: limit.updatedAt, revision: before.revision + 1 }
  const signed = { limit, mac: limitMac(chainKey, limit), limitCount, ledgerMac: ledgerMac(chainKey, ledger) }
  await run(setLimitStatement, argumentValues(setLimitArguments, signed))
}
