import { defineEntity, p } from '@mikro-orm/core'
import { PublicId, signature } from '../database/types.ts'

/** A workspace's lock and counters: see ledger/batch.ts. */
const LedgerSchema = defineEntity({
  name: 'Ledger',
  tableName: 'ledger',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    status: p.enum(['OPEN', 'CLOSED', 'HALTED']),
    walletCount: p.bigint('number'),
    orderCount: p.bigint('number'),
    lastPostedAt: p.datetime(3),
    haltReason: p.text().nullable(),
    ...signature(),
  },
})
export class Ledger extends LedgerSchema.class {}
LedgerSchema.setClass(Ledger)
