import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { uuidFromId } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { type LimitRow, limitMac } from '../database/signed-rows.ts'
import { DecimalType, PublicId, signature } from '../database/types.ts'
import { isSet } from '../ledger/decide/spending.ts'

/** Read by the ORM, and written by functions of the database (see ledger/rows/functions.ts). */
const SpendingLimitSchema = defineEntity({
  name: 'SpendingLimit',
  tableName: 'spending_limit',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    subject: p.text().primary(),
    currency: p.text().primary(),
    perTransfer: p.type(DecimalType).nullable(),
    perDay: p.type(DecimalType).nullable(),
    day: p.date(),
    spent: p.type(DecimalType),
    countedFrom: p.bigint('number'),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class SpendingLimit extends SpendingLimitSchema.class implements SignedEntity {
  /** The row as the database stores it, with UUIDs in place of prefixed IDs. */
  get row(): LimitRow {
    return {
      workspaceId: uuidFromId('workspace', this.workspaceId),
      subject: this.subject,
      currency: this.currency,
      perTransfer: this.perTransfer ?? null,
      perDay: this.perDay ?? null,
      day: this.day,
      spent: this.spent,
      countedFrom: this.countedFrom,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      revision: this.revision,
    }
  }

  /** Whether it has not been cleared. */
  get isSet(): boolean {
    return isSet(this.row)
  }

  macUnder(chainKey: KeyObject): Buffer {
    return limitMac(chainKey, this.row)
  }
}
SpendingLimitSchema.setClass(SpendingLimit)
