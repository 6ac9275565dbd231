import { defineEntity, p } from '@mikro-orm/core'

/** Where the last sound verification that core scheduled ended, for each workspace. The nil UUID stands for actions on no workspace. */
const VerifiedLedgerSchema = defineEntity({
  name: 'VerifiedLedger',
  tableName: 'verified_ledger',
  properties: {
    workspaceId: p.uuid().primary(),
    position: p.bigint('number'),
    orderCount: p.bigint('number'),
    postedAt: p.datetime(3).nullable(),
    journalHead: p.blob(),
    auditPosition: p.bigint('number'),
    auditMac: p.blob(),
    wallets: p.blob(),
    audit: p.blob(),
  },
})
export class VerifiedLedger extends VerifiedLedgerSchema.class {}
VerifiedLedgerSchema.setClass(VerifiedLedger)
