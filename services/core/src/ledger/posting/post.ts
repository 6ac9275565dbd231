import { formatBalance } from '@workspace-wallet/contract'
import { bytesArray, plainArray, type Queryable, run, statement, textArray } from '../../database/statement.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'
import type { Decision, WalletState } from './posting.ts'

const parameters = Array.from({ length: 37 }, (_, at) => `$${at + 1}`).join(', ')
const postStatement = statement<Posted | { now: null }>(
  'post-transfers',
  `select now, version::text from post(${parameters})`,
)

/** The database's time after posting, and the version of the rows that were written. */
export type Posted = { now: Date; version: string }

/** An entry beside its transfer: what the transfer does not say of it already. */
type ChainedEntry = Pick<Entry, 'balanceAfter' | 'orderNumber'> & { mac: Buffer }
export type ChainedTransfer = { transfer: Transfer; source: ChainedEntry; target: ChainedEntry }

/** What is written of one or more decisions: rows as they will be, with the version and the MAC of those that they replace. */
export type ChainedPostings = {
  transfers: ChainedTransfer[]
  wallets: (WalletState & Replaced)[]
  ledgers: (Decision['ledger'] & Replaced)[]
}

type Replaced = { previousMac: Buffer }

/**
 * Writes what was decided, in one call of the database's `post`, the only way to write entries (see
 * database/migrations/initial/posting.ts): transfers, their entries, one update of each wallet and ledger.
 *
 * @param notAfter for ledgers that are not locked: when it is too late to post, by the database's clock; null for locked ones
 * @returns null when it is too late, or somebody else has written to a ledger: then nothing was written
 * @throws DatabaseError restrict_violation when the decision does not continue from the rows of wallets and ledgers
 */
export async function post(
  db: Queryable,
  { transfers, wallets, ledgers }: ChainedPostings,
  notAfter: Date | null,
): Promise<Posted | null> {
  const ledgerPlaces = placesOf(ledgers.map(row => row.workspaceId))
  const walletPlaces = placesOf(wallets.map(row => row.workspaceId + row.id))
  const placeOfWallet = (row: Transfer, walletId: string) => walletPlaces.get(row.workspaceId + walletId)!
  const rows = transfers.map(({ transfer }) => transfer)
  const sources = transfers.map(({ source }) => source)
  const targets = transfers.map(({ target }) => target)
  const [answer] = await run(db, postStatement, [
    plainArray(ledgers.map(row => row.workspaceId)),
    plainArray(ledgers.map(row => row.version)),
    bytesArray(ledgers.map(row => row.previousMac)),
    plainArray(ledgers.map(row => row.lastPostedAt.toISOString())),
    plainArray(ledgers.map(row => row.orderCount)),
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
    plainArray(rows.map(row => row.type)),
    textArray(rows.map(row => row.bizId)),
    plainArray(rows.map(row => row.number)),
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
    plainArray(sources.map(entry => entry.orderNumber)),
    plainArray(targets.map(entry => entry.orderNumber)),
    bytesArray(sources.map(entry => entry.mac)),
    bytesArray(targets.map(entry => entry.mac)),
    notAfter?.toISOString() ?? null,
  ])
  return answer!.now === null ? null : answer!
}

/** The place of each key in a PostgreSQL array, from 1. */
function placesOf(keys: readonly string[]): Map<string, number> {
  return new Map(keys.map((key, at) => [key, at + 1]))
}
