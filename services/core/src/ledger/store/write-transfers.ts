import { formatBalance, type Uuid } from '@workspace-wallet/contract'
import type { LedgerRow, WalletRow } from '../../database/signed-rows.ts'
import { bytesArray, plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { ChainedPostings, ChainedTransfer } from '../decide/chain-decisions.ts'
import type { Replacing } from '../decide/state.ts'

const parametersOf = (count: number) => Array.from({ length: count }, (_, at) => `$${at + 1}`).join(', ')
const writeTransfersStatement = statement<Written | { now: null }>(
  'post-transfers',
  `select now, version::text from post(${parametersOf(45)})`,
)

/** The database's time after writing, and the version (`xmin`) of the rows that were written. */
export type Written = { now: Date; version: string }

/**
 * Writes decisions with one call of the database function `post`, the only way to write flows (see
 * database/migrations/initial/posting.ts): inserts transfers with their flows, and updates each wallet and ledger once.
 *
 * @param notAfter null when the ledgers are locked; otherwise the latest time to post, by the database's clock
 * @returns null when nothing was written, because it is too late or another transaction has changed one of the rows
 * @throws DatabaseError restrict_violation when the decision does not continue from the stored rows
 */
export async function writeTransfers(
  db: Queryable,
  { transfers, wallets, ledgers }: ChainedPostings,
  notAfter: Date | null,
): Promise<Written | null> {
  const ledgerPlaces = placesOf(ledgers.map(row => row.workspaceId))
  const walletPlaces = placesOf(wallets.map(row => row.workspaceId + row.id))
  const placeOfWallet = (row: Transfer, walletId: Uuid<'wallet'>) => walletPlaces.get(row.workspaceId + walletId)!
  const rows = transfers.map(({ transfer }) => transfer)
  const sources = transfers.map(({ source }) => source)
  const targets = transfers.map(({ target }) => target)
  const [posted] = await run(db, writeTransfersStatement, [
    plainArray(ledgers.map(row => row.workspaceId)),
    plainArray(ledgers.map(row => row.version)),
    bytesArray(ledgers.map(row => row.previousMac)),
    plainArray(ledgers.map(row => row.lastPostedAt.toISOString())),
    plainArray(ledgers.map(row => row.orderCount)),
    plainArray(ledgers.map(row => row.position)),
    bytesArray(ledgers.map(row => row.mac)),
    plainArray(wallets.map(row => ledgerPlaces.get(row.workspaceId)!)),
    plainArray(wallets.map(row => row.id)),
    plainArray(wallets.map(row => row.version)),
    bytesArray(wallets.map(row => row.previousMac)),
    plainArray(wallets.map(row => formatBalance(row.balance, row.currency))),
    plainArray(wallets.map(row => row.sequence)),
    plainArray(wallets.map(row => row.orderCount)),
    bytesArray(wallets.map(row => row.head)),
    bytesArray(wallets.map(row => row.mac)),
    plainArray(rows.map(row => ledgerPlaces.get(row.workspaceId)!)),
    plainArray(rows.map(row => row.transferId)),
    plainArray(rows.map(row => row.position)),
    plainArray(rows.map(row => row.orderCount)),
    plainArray(rows.map(row => row.type)),
    textArray(rows.map(row => row.bizId)),
    textArray(rows.map(row => row.reference)),
    plainArray(rows.map(row => row.amount)),
    plainArray(rows.map(row => row.currency)),
    plainArray(rows.map(row => placeOfWallet(row, row.sourceWalletId))),
    plainArray(rows.map(row => placeOfWallet(row, row.targetWalletId))),
    plainArray(rows.map(row => row.sourceSequence)),
    plainArray(rows.map(row => row.targetSequence)),
    textArray(rows.map(row => row.remark)),
    textArray(rows.map(row => row.actor)),
    textArray(rows.map(row => row.requestId)),
    textArray(rows.map(row => row.clientAddress)),
    plainArray(sources.map(entry => entry.balanceAfter)),
    plainArray(targets.map(entry => entry.balanceAfter)),
    plainArray(sources.map(entry => entry.orderCount)),
    plainArray(targets.map(entry => entry.orderCount)),
    bytesArray(sources.map(entry => entry.mac)),
    bytesArray(targets.map(entry => entry.mac)),
    plainArray(rows.map(row => row.holdId)),
    plainArray(rows.map(row => row.holdRemaining)),
    plainArray(rows.map(row => row.reversesId)),
    plainArray(rows.map(row => row.reversedTotal)),
    plainArray(rows.map(row => row.batchId)),
    notAfter?.toISOString() ?? null,
  ])
  return posted!.now === null ? null : posted!
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

const writeSingleStatement = statement<Written | { now: null }>(
  'post-transfer',
  `select now, version::text from post_transfer(${parametersOf(34)})`,
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
  { transfer, ledger, source, target }: Single,
  notAfter: Date,
  name: string,
): Promise<Written | null> {
  const valuesOf = ({
    id,
    version,
    previousMac,
    balance,
    currency,
    sequence,
    orderCount,
    head,
    mac,
  }: Single['source']) => [id, version, previousMac, formatBalance(balance, currency), sequence, orderCount, head, mac]
  const [posted] = await run(db, writeSingleStatement, [
    ledger.workspaceId,
    ledger.version,
    ledger.previousMac,
    ledger.lastPostedAt.toISOString(),
    ledger.orderCount,
    ledger.position,
    ledger.mac,
    ...valuesOf(source),
    ...valuesOf(target),
    transfer.transferId,
    transfer.bizId,
    transfer.reference,
    transfer.amount,
    transfer.currency,
    transfer.remark,
    transfer.actor,
    transfer.requestId,
    transfer.clientAddress,
    notAfter.toISOString(),
    name,
  ])
  return posted!.now === null ? null : posted!
}

/** The subscript of each key in a PostgreSQL array, from 1. */
function placesOf(keys: readonly string[]): Map<string, number> {
  return new Map(keys.map((key, at) => [key, at + 1]))
}
