import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { uuidFromId } from '@workspace-wallet/contract'
import type { SignedEntity } from '../../database/row-signer.ts'
import { type LedgerRow, ledgerMac } from '../../database/signed-rows.ts'
import { PublicId, signature } from '../../database/types.ts'

/** A workspace's lock and counters. The ORM only reads it; database functions write it (see functions.ts). */
const LedgerSchema = defineEntity({
  name: 'Ledger',
  tableName: 'ledger',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    status: p.enum(['OPEN', 'CLOSED', 'HALTED']),
    walletCount: p.bigint('number'),
    orderCount: p.bigint('number'),
    holdCount: p.bigint('number'),
    limitCount: p.bigint('number'),
    position: p.bigint('number'),
    journalHead: p.blob(),
    lastPostedAt: p.datetime(3),
    haltReason: p.text().nullable(),
    ...signature(),
  },
})
export class Ledger extends LedgerSchema.class implements SignedEntity {
  /** The row that the MAC covers. */
  get row(): LedgerRow {
    const {
      status,
      walletCount,
      orderCount,
      holdCount,
      limitCount,
      position,
      lastPostedAt,
      haltReason = null,
      revision,
    } = this
    const workspaceId = uuidFromId('workspace', this.workspaceId)
    const journalHead = Buffer.from(this.journalHead)
    const counts = { walletCount, orderCount, holdCount, limitCount, position }
    return { workspaceId, status, ...counts, journalHead, lastPostedAt, haltReason, revision }
  }

  macUnder(chainKey: KeyObject): Buffer {
    return ledgerMac(chainKey, this.row)
  }
}
LedgerSchema.setClass(Ledger)
