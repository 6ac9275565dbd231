import { formatBalance } from '@workspace-wallet/contract'
import {
  type Arguments,
  argumentValues,
  bytesArray,
  namedArguments,
  plainArray,
  type Queryable,
  run,
  statement,
  textArray,
} from '../../database/statement.ts'
import type { LedgerRow } from '../../database/tables/ledger.ts'
import type { WalletRow } from '../../database/tables/wallet.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { ChainedPostings, ChainedTransfer } from '../decide/chain-decisions.ts'
import type { Replacing } from '../decide/state.ts'

/** The database's time after writing, and the version (`xmin`) of the rows that were written. */
export type Written = { now: Date; version: string }

/** A batch as `post` takes it. Subscripts of PostgreSQL say which ledger a wallet, and which wallets a transfer belongs to. */
type Batch = ChainedPostings & {
  notAfter: Date | null
  ledgerPlaces: Map<string, number>
  walletPlaces: Map<string, number>
}

/** The arguments of `post` by name: an array with the values of all rows each. */
const postArguments: Arguments<Batch> = {
  ledger_ids: ({ ledgers }) => plainArray(ledgers.map(row => row.workspaceId)),
  ledger_versions: ({ ledgers }) => plainArray(ledgers.map(row => row.version)),
  old_ledger_macs: ({ ledgers }) => bytesArray(ledgers.map(row => row.previousMac)),
  posted_at: ({ ledgers }) => plainArray(ledgers.map(row => row.lastPostedAt.toISOString())),
  order_counts: ({ ledgers }) => plainArray(ledgers.map(row => row.orderCount)),
  ledger_positions: ({ ledgers }) => plainArray(ledgers.map(row => row.position)),
  ledger_macs: ({ ledgers }) => bytesArray(ledgers.map(row => row.mac)),
  wallet_ledgers: ({ wallets, ledgerPlaces }) => plainArray(wallets.map(row => ledgerPlaces.get(row.workspaceId)!)),
  wallet_ids: ({ wallets }) => plainArray(wallets.map(row => row.id)),
  wallet_versions: ({ wallets }) => plainArray(wallets.map(row => row.version)),
  old_wallet_macs: ({ wallets }) => bytesArray(wallets.map(row => row.previousMac)),
  balances: ({ wallets }) => plainArray(wallets.map(row => formatBalance(row.balance, row.currency))),
  sequences: ({ wallets }) => plainArray(wallets.map(row => row.sequence)),
  wallet_orders: ({ wallets }) => plainArray(wallets.map(row => row.orderCount)),
  heads: ({ wallets }) => bytesArray(wallets.map(row => row.head)),
  wallet_macs: ({ wallets }) => bytesArray(wallets.map(row => row.mac)),
  ledgers: ({ transfers, ledgerPlaces }) =>
    plainArray(transfers.map(({ transfer: row }) => ledgerPlaces.get(row.workspaceId)!)),
  ids: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.transferId)),
  positions: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.position)),
  transfer_order_counts: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.orderCount)),
  types: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.type)),
  biz_ids: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.bizId)),
  refs: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.reference)),
  amounts: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.amount)),
  currencies: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.currency)),
  sources: ({ transfers, walletPlaces }) =>
    plainArray(transfers.map(({ transfer: row }) => walletPlaces.get(row.workspaceId + row.sourceWalletId)!)),
  targets: ({ transfers, walletPlaces }) =>
    plainArray(transfers.map(({ transfer: row }) => walletPlaces.get(row.workspaceId + row.targetWalletId)!)),
  source_sequences: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.sourceSequence)),
  target_sequences: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.targetSequence)),
  remarks: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.remark)),
  actors: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.actor)),
  request_ids: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.requestId)),
  client_addresses: ({ transfers }) => textArray(transfers.map(({ transfer: row }) => row.clientAddress)),
  source_balances: ({ transfers }) => plainArray(transfers.map(({ source: entry }) => entry.balanceAfter)),
  target_balances: ({ transfers }) => plainArray(transfers.map(({ target: entry }) => entry.balanceAfter)),
  source_order_counts: ({ transfers }) => plainArray(transfers.map(({ source: entry }) => entry.orderCount)),
  target_order_counts: ({ transfers }) => plainArray(transfers.map(({ target: entry }) => entry.orderCount)),
  source_macs: ({ transfers }) => bytesArray(transfers.map(({ source: entry }) => entry.mac)),
  target_macs: ({ transfers }) => bytesArray(transfers.map(({ target: entry }) => entry.mac)),
  holds: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.holdId)),
  hold_remainders: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.holdRemaining)),
  reversed_ids: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.reversesId)),
  reversed_totals: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.reversedTotal)),
  batches: ({ transfers }) => plainArray(transfers.map(({ transfer: row }) => row.batchId)),
  not_after: ({ notAfter }) => notAfter?.toISOString() ?? null,
}
const writeTransfersStatement = statement<Written | { now: null }>(
  'post-transfers',
  `select now, version::text from post(${namedArguments(postArguments)})`,
)

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
  postings: ChainedPostings,
  notAfter: Date | null,
): Promise<Written | null> {
  const ledgerPlaces = placesOf(postings.ledgers.map(row => row.workspaceId))
  const walletPlaces = placesOf(postings.wallets.map(row => row.workspaceId + row.id))
  const batch = { ...postings, notAfter, ledgerPlaces, walletPlaces }
  const [posted] = await run(db, writeTransfersStatement, argumentValues(postArguments, batch))
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
function placesOf(keys: readonly string[]): Map<string, number> {
  return new Map(keys.map((key, at) => [key, at + 1]))
}
