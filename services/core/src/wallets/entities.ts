import { defineEntity, p } from '@mikro-orm/core'
import { walletStatuses } from '../../contract/index.ts'
import { DecimalType, PublicId } from '../db/types.ts'

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
    balance: p.type(DecimalType).defaultRaw('0'),
    sequence: p.bigint('number').defaultRaw('0'),
    orderCount: p.bigint('number').defaultRaw('0'),
    head: p.blob().defaultRaw("''"),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
  },
})
export class Wallet extends WalletSchema.class {}
WalletSchema.setClass(Wallet)
