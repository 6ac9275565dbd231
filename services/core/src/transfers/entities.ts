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
    position: p.bigint('number'),
    orderCount: p.bigint('number'),
    bizId: p.text().nullable(),
    reference: p.text().nullable(),
    amount: p.type(DecimalType),
    currency: p.text(),
    remark: p.text().nullable(),
    holdId: p.type(new PublicId('hold')).nullable(),
    holdRemaining: p.type(DecimalType).nullable(),
    reversesId: p.type(new PublicId('transfer')).nullable(),
    reversedTotal: p.type(DecimalType).nullable(),
    batchId: p.type(new PublicId('transfer')).nullable(),
    actor: p.text(),
    requestId: p.text(),
    clientAddress: p.text().nullable(),
    createdAt: p.datetime(3),
    sourceWalletId: p.type(new PublicId('wallet')),
    sourceSequence: p.bigint('number'),
    sourceOrderCount: p.bigint('number'),
    sourceBalance: p.type(DecimalType),
    sourceMac: p.blob(),
    targetWalletId: p.type(new PublicId('wallet')),
    targetSequence: p.bigint('number'),
    targetOrderCount: p.bigint('number'),
    targetBalance: p.type(DecimalType),
    targetMac: p.blob(),
  },
})
export class Transfer extends TransferSchema.class {}
TransferSchema.setClass(Transfer)
