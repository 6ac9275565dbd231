import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { type WalletRow, walletColumns, walletMac } from '../database/tables/wallet.ts'
import { signature } from '../database/types.ts'

/** Read by the ORM, and written by functions of the database (see ledger/rows/functions.ts). */
const WalletSchema = defineEntity({
  name: 'Wallet',
  tableName: 'wallet',
  properties: { ...propertiesOf(walletColumns), ...signature() },
})
export class Wallet extends WalletSchema.class implements SignedEntity {
  /** The row that the MAC covers. */
  get row(): WalletRow {
    return rowOfEntity(walletColumns, this)
  }

  macUnder(chainKey: KeyObject): Buffer {
    return walletMac(chainKey, this.row)
  }
}
WalletSchema.setClass(Wallet)

/** The migration step writes the rows. */
const CurrencySchema = defineEntity({
  name: 'Currency',
  tableName: 'currency',
  properties: {
    code: p.text().primary(),
    decimals: p.smallint(),
  },
})
export class Currency extends CurrencySchema.class {}
CurrencySchema.setClass(Currency)
