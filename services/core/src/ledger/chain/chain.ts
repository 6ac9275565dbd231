import { createHmac, hash, type KeyObject } from 'node:crypto'
import type { Entry, Transfer } from './transfer.ts'

/**
 * The keyed chain. Each flow carries an HMAC over its own content, the digest of its transfer and the HMAC of
 * the flow before it on the same wallet. The key never enters the database, so whoever changes, removes or
 * inserts an entry there, the owner of the tables included, cannot make the chain continue.
 */
export const chainFormat = 1

/** The head of a wallet that has no flows yet. */
export const emptyHead = Buffer.alloc(0)

/** SHA-256 over everything a transfer says. The JSON of an array of scalars has one spelling. */
export function transferDigest(transfer: Transfer): string {
  return hash(
    'sha256',
    JSON.stringify([
      transfer.workspaceId,
      transfer.transferId,
      transfer.type,
      transfer.bizId,
      transfer.number,
      transfer.amount,
      transfer.currency,
      transfer.sourceWalletId,
      transfer.targetWalletId,
      transfer.sourceSequence,
      transfer.targetSequence,
      transfer.remark,
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
    entry.orderNumber,
    entry.createdAt.getTime(),
    digest,
    previous.toString('hex'),
  ])
  return Buffer.concat([Buffer.of(chainFormat), createHmac('sha256', key).update(content).digest()])
}
