import { defineEntity, p } from '@mikro-orm/core'
import { DecimalType, PublicId } from '../database/types.ts'

/** Written and read in SQL only: see ledger/posting and queries.ts. */
const TransferSchema = defineEntity({
  name: 'Transfer',
  tableName: 'transfer',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    id: p.type(new PublicId('transfer')).primary(),
    type: p.enum(['TRANSFER', 'DEPOSIT', 'WITHDRAWAL']),
    bizId: p.text().nullable(),
    number: p.bigint('number').nullable(),
    amount: p.type(DecimalType),
    currency: p.text(),
    sourceWalletId: p.type(new PublicId('wallet')),
    targetWalletId: p.type(new PublicId('wallet')),
    sourceSequence: p.bigint('number'),
    targetSequence: p.bigint('number'),
    remark: p.text().nullable(),
    actor: p.text(),
    requestId: p.text(),
    clientAddress: p.text().nullable(),
    createdAt: p.datetime(3),
  },
})
export class Transfer extends TransferSchema.class {}
TransferSchema.setClass(Transfer)

/** One side of a transfer, on one wallet. */
const FlowSchema = defineEntity({
  name: 'Flow',
  tableName: 'flow',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    walletId: p.type(new PublicId('wallet')).primary(),
    sequence: p.bigint('number').primary(),
    transferId: p.type(new PublicId('transfer')),
    direction: p.enum(['IN', 'OUT']),
    amount: p.type(DecimalType),
    balanceAfter: p.type(DecimalType),
    orderNumber: p.bigint('number').nullable(),
    createdAt: p.datetime(3),
    mac: p.blob(),
  },
})
export class Flow extends FlowSchema.class {}
FlowSchema.setClass(Flow)
