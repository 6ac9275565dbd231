import { defineEntity, p } from '@mikro-orm/core'
import { holdStatuses } from '@workspace-wallet/contract'
import { DecimalType, PublicId, signature } from '../database/types.ts'

/** Written and read in SQL only: see ledger/posting and queries.ts. */
const HoldSchema = defineEntity({
  name: 'Hold',
  tableName: 'hold',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    id: p.type(new PublicId('hold')).primary(),
    number: p.bigint('number'),
    walletNumber: p.bigint('number'),
    bizId: p.text(),
    walletId: p.type(new PublicId('wallet')),
    currency: p.text(),
    amount: p.type(DecimalType),
    captured: p.type(DecimalType),
    remaining: p.type(DecimalType),
    status: p.enum(holdStatuses),
    expiresAt: p.datetime(3),
    reference: p.text().nullable(),
    remark: p.text().nullable(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class Hold extends HoldSchema.class {}
HoldSchema.setClass(Hold)
