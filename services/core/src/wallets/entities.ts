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
    bizId: p.text().nullable(),
    name: p.text(),
    currency: p.text(),
    status: p.enum(walletStatuses),
    frozenBy: p.enum(['WORKSPACE', 'OPERATOR']).nullable(),
    balance: p.type(DecimalType),
    held: p.type(DecimalType),
    heldUntil: p.datetime(3).nullable(),
    sequence: p.bigint('number'),
    orderCount: p.bigint('number'),
    holdCount: p.bigint('number'),
    head: p.blob(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class Wallet extends WalletSchema.class implements SignedEntity {
  /** With UUIDs. */
  get row(): WalletRow {
    return {
      workspaceId: uuidFromId('workspace', this.workspaceId),
      id: uuidFromId('wallet', this.id),
      number: this.number ?? null,
      kind: this.kind,
      bizId: this.bizId ?? null,
      name: this.name,
      currency: this.currency,
      status: this.status,
      frozenBy: this.frozenBy ?? null,
      balance: this.balance,
      held: this.held,
      heldUntil: this.heldUntil ?? null,
      sequence: this.sequence,
      orderCount: this.orderCount,
      holdCount: this.holdCount,
      head: Buffer.from(this.head),
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      revision: this.revision,
    }
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
