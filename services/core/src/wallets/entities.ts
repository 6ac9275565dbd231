import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { Decimal, uuidFromId, walletStatuses } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { walletMac } from '../database/signed-rows.ts'
import { DecimalType, PublicId, signature } from '../database/types.ts'

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
    balance: p.type(DecimalType).onCreate(() => new Decimal(0)),
    sequence: p.bigint('number').onCreate(() => 0),
    orderCount: p.bigint('number').onCreate(() => 0),
    head: p.blob().onCreate(() => Buffer.alloc(0)),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class Wallet extends WalletSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return walletMac(chainKey, {
      ...this,
      workspaceId: uuidFromId('workspace', this.workspaceId)!,
      id: uuidFromId('wallet', this.id)!,
      number: this.number ?? null,
      head: Buffer.from(this.head),
    })
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
