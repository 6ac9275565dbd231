import type { KeyObject } from 'node:crypto'
import { defineEntity } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { type LimitRow, limitColumns, limitMac } from '../database/tables/spending-limit.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { signature } from '../database/types.ts'
import { isSet } from '../ledger/decide/spending.ts'

/** Read by the ORM, and written by functions of the database (see ledger/rows/functions.ts). */
const SpendingLimitSchema = defineEntity({
  name: 'SpendingLimit',
  tableName: 'spending_limit',
  properties: { ...propertiesOf(limitColumns), ...signature() },
})
export class SpendingLimit extends SpendingLimitSchema.class implements SignedEntity {
  /** The row that the MAC covers. */
  get row(): LimitRow {
    return rowOfEntity(limitColumns, this)
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
