import { createHmac, hash, type KeyObject } from 'node:crypto'
import type { Entry, Transfer } from './transfer.ts'

/**
 * The version of the keyed chain's format. Each entry has an HMAC over its own content, the digest of its transfer and
 * the HMAC of the previous entry of the same wallet. The key is never in the database, so nobody who changes, removes or
 * inserts entries there, not even the owner of the tables, can compute a valid chain.
 */
export const chainFormat = 1

/** The head of a wallet that has no entries. */
export const emptyHead = Buffer.alloc(0)

/** SHA-256, in hex, over all fields of a transfer, as a JSON array of scalars, which has only one serialization. */
export function transferDigest(transfer: Transfer): string {
  return hash(
    'sha256',
    JSON.stringify([
      transfer.workspaceId,
      transfer.transferId,
      transfer.type,
      transfer.bizId,
      transfer.reference,
      transfer.position,
      transfer.orderCount,
      transfer.amount,
      transfer.currency,
      transfer.sourceWalletId,
      transfer.targetWalletId,
      transfer.sourceSequence,
      transfer.targetSequence,
      transfer.remark,
      transfer.holdId,
      transfer.holdRemaining,
      transfer.reversesId,
      transfer.reversedTotal,
      transfer.batchId,
      transfer.actor,
      transfer.requestId,
      transfer.clientAddress,
      transfer.createdAt.getTime(),
    ]),
  )
}

/** The MAC of an entry: one byte of format version, then 32 bytes of HMAC-SHA256. */
export function entryMac(key: KeyObject, entry: Entry, digest: string, previous: Buffer): Buffer {
  const content = JSON.stringify([
    chainFormat,
    entry.workspaceId,
    entry.walletId,
    entry.sequence,
    entry.transferId,
    entry.direction,
    entry.amount,
    entry.balanceAfter,
    entry.orderCount,
    entry.createdAt.getTime(),
    digest,
    previous.toString('hex'),
  ])
  return Buffer.concat([Buffer.of(chainFormat), createHmac('sha256', key).update(content).digest()])
}

/** An entry as stored, and the MAC of the entry before it on its wallet; null where missing. */
export type StoredEntry = {
  balanceAfter: string | null
  orderCount: number | null
  mac: Buffer | null
  previous: Buffer | null
}

/** Whether the stored entry of a transfer continues the chain of its wallet. If not, it was written outside the service. */
export function continuesChain(
  key: KeyObject,
  transfer: Transfer,
  direction: Entry['direction'],
  { balanceAfter, orderCount, mac, previous }: StoredEntry,
): boolean {
  if (!mac || balanceAfter === null || orderCount === null) return false
  const { workspaceId, transferId, amount, createdAt } = transfer
  const [walletId, sequence] =
    direction === 'OUT'
      ? [transfer.sourceWalletId, transfer.sourceSequence]
      : [transfer.targetWalletId, transfer.targetSequence]
  const entry = { workspaceId, transferId, walletId, sequence, direction, amount, balanceAfter, orderCount, createdAt }
  return entryMac(key, entry, transferDigest(transfer), previous ?? emptyHead).equals(mac)
}
