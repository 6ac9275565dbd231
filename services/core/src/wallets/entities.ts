import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { uuidFromId, walletStatuses } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { type WalletRow, walletMac } from '../database/signed-rows.ts'
import { DecimalType, PublicId, signature } from '../database/types.ts'

/** Read by the ORM, and written by functions of the database (see ledger/rows/functions.ts). */
const WalletSchema = defineEntity({
  name: 'Wallet',
  tableName: 'wallet',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    id: p.type(new PublicId('wallet')).primary(),
    number: p.bigint('number').nullable(),
    kind: p.enum(['CUSTOMER', 'EXTERNAL']),
    name: p.text(),
    currency: p.text(),
    status: p.enum(walletStatuses),
    balance: p.type(DecimalType),
    sequence: p.bigint('number'),
    orderCount: p.bigint('number'),
    head: p.blob(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class Wallet extends WalletSchema.class implements SignedEntity {
  /** With UUIDs. */
  get row(): WalletRow {
    const { number = null, kind, name, currency, status, balance, sequence, orderCount, createdAt, updatedAt } = this
    const workspaceId = uuidFromId('workspace', this.workspaceId)!
    const id = uuidFromId('wallet', this.id)!
    const head = Buffer.from(this.head)
    const rest = { number, kind, name, currency, status, balance, sequence, orderCount, createdAt, updatedAt }
    return { workspaceId, id, ...rest, head, revision: this.revision }
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
