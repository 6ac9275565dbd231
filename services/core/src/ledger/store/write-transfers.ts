import { formatBalance } from '@workspace-wallet/contract'
import {
  type Arguments,
  argumentValues,
  type Field,
  namedArguments,
  type Queryable,
  rowArray,
  run,
  statement,
} from '../../database/statement.ts'
import type { LedgerRow } from '../../database/tables/ledger.ts'
import type { WalletRow } from '../../database/tables/wallet.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { ChainedPostings, ChainedTransfer } from '../decide/chain-decisions.ts'
import type { Replacing } from '../decide/state.ts'

/** The database's time after writing, and the version (`xmin`) of the rows that were written. */
export type Written = { now: Date; version: string }

const writeTransfersStatement = statement<Written | { now: null }>(
  'post-transfers',
  'select now, version::text from post($1, $2, $3, $4, $5)',
)

/** How a batch is posted whose ledgers are not locked: until when, by the database's clock, and its name (see transaction.ts). */
export type Unlocked = { notAfter: Date; name: string }

/**
 * Writes decisions with one call of the database function `post`, the only way to write flows (see
 * database/migrations/initial/posting.ts): inserts transfers with their flows, and updates each wallet and ledger once. Outside a
 * transaction, it commits by itself.
 *
 * @param unlocked null when the ledgers are locked
 * @returns null when nothing was written, because another transaction has changed the rows of all ledgers
 * @throws DatabaseError restrict_violation when the decision does not continue from the stored rows, serialization_failure when it is
 *   too late or another transaction has changed the row of a ledger
 */
export async function writeTransfers(
  db: Queryable,
  { ledgers, wallets, transfers }: ChainedPostings,
  unlocked: Unlocked | null,
): Promise<Written | null> {
  const ledgerPlaces = placesOf(ledgers.map(row => row.workspaceId))
  const walletPlaces = placesOf(wallets.map(row => row.workspaceId + row.id))
  const [posted] = await run(db, writeTransfersStatement, [
    rowArray(ledgers.map(ledgerFields)),
    rowArray(wallets.map(row => walletFields(row, ledgerPlaces))),
    rowArray(transfers.map(row => transferFields(row, ledgerPlaces, walletPlaces))),
    unlocked?.notAfter.toISOString() ?? null,
    unlocked?.name ?? null,
  ])
  return posted!.now === null ? null : posted!
}

/** The fields of `posted_ledger`, in order, as those of the other two types below. */
function ledgerFields(row: Replacing<LedgerRow>): Field[] {
  const { workspaceId, version, previousMac, lastPostedAt, orderCount, position, mac } = row
  return [workspaceId, version, previousMac, lastPostedAt.toISOString(), orderCount, position, mac]
}

function walletFields(row: Replacing<WalletRow>, ledgerPlaces: Places): Field[] {
  const { workspaceId, id, version, previousMac, balance, currency, sequence, orderCount, head, mac } = row
  const ledger = ledgerPlaces.get(workspaceId) ?? null
  return [ledger, id, version, previousMac, formatBalance(balance, currency), sequence, orderCount, head, mac]
}

function transferFields(
  { transfer, source, target }: ChainedTransfer,
  ledgerPlaces: Places,
  walletPlaces: Places,
): Field[] {
  const { workspaceId, sourceWalletId, targetWalletId } = transfer
  return [
    ledgerPlaces.get(workspaceId) ?? null,
    transfer.transferId,
    transfer.position,
    transfer.orderCount,
    transfer.type,
    transfer.bizId,
    transfer.reference,
    transfer.amount,
    transfer.currency,
    transfer.remark,
    transfer.holdId,
    transfer.holdRemaining,
    transfer.reversesId,
    transfer.reversedTotal,
    transfer.batchId,
    transfer.actor,
    transfer.requestId,
    transfer.clientAddress,
    walletPlaces.get(workspaceId + sourceWalletId) ?? null,
    transfer.sourceSequence,
    source.orderCount,
    source.balanceAfter,
    source.mac,
    walletPlaces.get(workspaceId + targetWalletId) ?? null,
    transfer.targetSequence,
    target.orderCount,
    target.balanceAfter,
    target.mac,
  ]
}

type Single = {
  transfer: Transfer
  ledger: Replacing<LedgerRow>
  source: Replacing<WalletRow>
  target: Replacing<WalletRow>
}

/**
 * The rows of one transfer between two wallets that captures no hold, reverses nothing and is not part of a batch of the API; null
 * for any others. The flows of such a transfer say the same as its wallets.
 */
export function singleOf({ transfers, wallets, ledgers }: ChainedPostings): Single | null {
  const [first, ...others] = transfers
  const [ledger] = ledgers
  if (!first || !ledger || others.length > 0 || ledgers.length > 1 || wallets.length !== 2) return null
  const { transfer } = first
  const walletOf = (id: string, sequence: number, { balanceAfter, orderCount, mac }: ChainedTransfer['source']) =>
    wallets.find(
      wallet =>
        wallet.id === id &&
        wallet.workspaceId === transfer.workspaceId &&
        wallet.currency === transfer.currency &&
        wallet.sequence === sequence &&
        wallet.orderCount === orderCount &&
        formatBalance(wallet.balance, wallet.currency) === balanceAfter &&
        wallet.head.equals(mac),
    )
  const source = walletOf(transfer.sourceWalletId, transfer.sourceSequence, first.source)
  const target = walletOf(transfer.targetWalletId, transfer.targetSequence, first.target)
  const { type, holdId, holdRemaining, reversesId, reversedTotal, batchId } = transfer
  const isPlain = type === 'TRANSFER' && (holdId ?? holdRemaining ?? reversesId ?? reversedTotal ?? batchId) === null
  const isOfLedger =
    ledger.workspaceId === transfer.workspaceId &&
    ledger.orderCount === transfer.orderCount &&
    ledger.position === transfer.position
  return source && target && isPlain && isOfLedger ? { transfer, ledger, source, target } : null
}

/** What `post_transfer` takes. `name`: that of the batch (see transaction.ts). */
type SingleCall = Single & { notAfter: Date; name: string }

/** The arguments of `post_transfer` by name. */
const postTransferArguments: Arguments<SingleCall> = {
  workspace: ({ ledger }) => ledger.workspaceId,
  ledger_version: ({ ledger }) => ledger.version,
  old_ledger_mac: ({ ledger }) => ledger.previousMac,
  posted_at: ({ ledger }) => ledger.lastPostedAt.toISOString(),
  ledger_orders: ({ ledger }) => ledger.orderCount,
  ledger_position: ({ ledger }) => ledger.position,
  ledger_mac: ({ ledger }) => ledger.mac,
  ...walletArguments('source'),
  ...walletArguments('target'),
  id: ({ transfer }) => transfer.transferId,
  biz_id: ({ transfer }) => transfer.bizId,
  reference: ({ transfer }) => transfer.reference,
  amount: ({ transfer }) => transfer.amount,
  currency: ({ transfer }) => transfer.currency,
  remark: ({ transfer }) => transfer.remark,
  actor: ({ transfer }) => transfer.actor,
  request_id: ({ transfer }) => transfer.requestId,
  client_address: ({ transfer }) => transfer.clientAddress,
  not_after: ({ notAfter }) => notAfter.toISOString(),
  name: ({ name }) => name,
}

function walletArguments(side: 'source' | 'target'): Arguments<SingleCall> {
  return {
    [side]: call => call[side].id,
    [`${side}_version`]: call => call[side].version,
    [`old_${side}_mac`]: call => call[side].previousMac,
    [`${side}_balance`]: call => formatBalance(call[side].balance, call[side].currency),
    [`${side}_sequence`]: call => call[side].sequence,
    [`${side}_orders`]: call => call[side].orderCount,
    [`${side}_head`]: call => call[side].head,
    [`${side}_mac`]: call => call[side].mac,
  }
}

const writeSingleStatement = statement<Written | { now: null }>(
  'post-transfer',
  `select now, version::text from post_transfer(${namedArguments(postTransferArguments)})`,
)

/**
 * Writes one transfer with one call of the database function `post_transfer`, which commits by itself outside a transaction.
 *
 * @param notAfter the latest time to post, by the database's clock
 * @param name the name of the batch (see transaction.ts)
 * @returns null when nothing was written, because another transaction has changed the row of the ledger
 * @throws DatabaseError restrict_violation when the transfer does not continue from the rows of its wallets,
 *   serialization_failure when it is too late
 */
export async function writeSingle(
  db: Queryable,
  single: Single,
  notAfter: Date,
  name: string,
): Promise<Written | null> {
  const values = argumentValues(postTransferArguments, { ...single, notAfter, name })
  const [posted] = await run(db, writeSingleStatement, values)
  return posted!.now === null ? null : posted!
}

/** The subscript of each key in a PostgreSQL array, from 1. */
type Places = Map<string, number>

function placesOf(keys: readonly string[]): Places {
  return new Map(keys.map((key, at) => [key, at + 1]))
}
