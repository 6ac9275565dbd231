import { createHmac, type Hmac, hash, type KeyObject } from 'node:crypto'
import { signedValues } from '../../database/tables/table.ts'
import { transferColumns } from '../../database/tables/transfer.ts'
import type { Entry, Transfer } from './transfer.ts'

/**
 * The version of the keyed chain's format. Each flow has an HMAC over its own content, the digest of its transfer and
 * the HMAC of the previous flow of the same wallet. The key is never in the database, so nobody who changes, removes or
 * inserts flows there, not even the owner of the tables, can compute a valid chain.
 */
export const chainFormat = 1

/** The head of a wallet that has no flows. */
export const emptyHead = Buffer.alloc(0)

/** SHA-256, in hex, over all columns of a transfer, as a JSON array of scalars, which has only one serialization. */
export function transferDigest(transfer: Transfer): string {
  return hash('sha256', JSON.stringify(signedValues(transferColumns, transfer)))
}

/** What an entry says besides its transfer. */
type EntrySide = Pick<Entry, 'direction' | 'balanceAfter' | 'orderCount'>

/** The MAC of an entry: one byte of format version, then 32 bytes of HMAC-SHA256. */
export function entryMac(key: KeyObject, entry: EntrySide, digest: string, previous: Buffer): Buffer {
  return Buffer.concat([Buffer.of(chainFormat), entryHmac(key, entry, digest, previous.toString('hex')).digest()])
}

/** The digest covers everything else that an entry says: its wallet and sequence, the amount and the time. @param previous in hex */
function entryHmac(key: KeyObject, side: EntrySide, digest: string, previous: string): Hmac {
  const { direction, balanceAfter, orderCount } = side
  const content = JSON.stringify([chainFormat, direction, balanceAfter, orderCount, digest, previous])
  return createHmac('sha256', key).update(content)
}

/** An entry as stored, and the MAC of the entry before it on its wallet; null where missing. MACs in hex. */
export type StoredEntry = {
  balanceAfter: string | null
  orderCount: number | null
  mac: string | null
  previous: string | null
}

/** A transfer with both of its entries. */
export type TransferWithEntries = { transfer: Transfer; source: StoredEntry; target: StoredEntry }

/** Whether both entries of a transfer continue the chains of their wallets. If not, it was written outside the service. */
export function continueChains(key: KeyObject, stored: TransferWithEntries): boolean {
  const { source, target } = findContinued(key, stored)
  return source && target
}

/** Which of the entries of a transfer continue the chains of their wallets. */
export function findContinued(
  key: KeyObject,
  { transfer, source, target }: TransferWithEntries,
): { source: boolean; target: boolean } {
  const digest = transferDigest(transfer)
  return { source: isEntryOf(key, digest, 'OUT', source), target: isEntryOf(key, digest, 'IN', target) }
}

const formatInHex = chainFormat.toString(16).padStart(2, '0')

function isEntryOf(
  key: KeyObject,
  digest: string,
  direction: Entry['direction'],
  { balanceAfter, orderCount, mac, previous }: StoredEntry,
): boolean {
  if (mac === null || balanceAfter === null || orderCount === null) return false
  const side = { direction, balanceAfter, orderCount }
  return mac === formatInHex + entryHmac(key, side, digest, previous ?? '').digest('hex')
}
