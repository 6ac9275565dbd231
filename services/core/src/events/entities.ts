import { defineEntity, p } from '@mikro-orm/core'
import { DecimalType, PublicId } from '../database/types.ts'
import { journalTypes } from '../ledger/chain/journal.ts'

/** The events of a workspace that are not transfers. Written and read in SQL only. */
const JournalSchema = defineEntity({
  name: 'Journal',
  tableName: 'journal',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    position: p.bigint('number').primary(),
    orderCount: p.bigint('number'),
    id: p.type(new PublicId('event')),
    type: p.enum(journalTypes),
    walletId: p.type(new PublicId('wallet')),
    holdId: p.type(new PublicId('hold')).nullable(),
    captured: p.type(DecimalType).nullable(),
    remaining: p.type(DecimalType).nullable(),
    status: p.text(),
    actor: p.text(),
    requestId: p.text(),
    clientAddress: p.text().nullable(),
    createdAt: p.datetime(3),
    mac: p.blob(),
  },
})
export class Journal extends JournalSchema.class {}
JournalSchema.setClass(Journal)
