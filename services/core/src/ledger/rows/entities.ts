import type { KeyObject } from 'node:crypto'
import { defineEntity } from '@mikro-orm/core'
import type { SignedEntity } from '../../database/row-signer.ts'
import { type LedgerRow, ledgerColumns, ledgerMac } from '../../database/tables/ledger.ts'
import { propertiesOf } from '../../database/tables/properties.ts'
import { rowOfEntity } from '../../database/tables/table.ts'
import { signature } from '../../database/types.ts'

/** A workspace's lock and counters. The ORM only reads it; database functions write it (see functions.ts). */
const LedgerSchema = defineEntity({
  name: 'Ledger',
  tableName: 'ledger',
  properties: { ...propertiesOf(ledgerColumns), ...signature() },
})
export class Ledger extends LedgerSchema.class implements SignedEntity {
  /** The row that the MAC covers. */
  get row(): LedgerRow {
    return rowOfEntity(ledgerColumns, this)
  }

  macUnder(chainKey: KeyObject): Buffer {
    return ledgerMac(chainKey, this.row)
  }
}
LedgerSchema.setClass(Ledger)
