import { defineEntity, p } from '@mikro-orm/core'
import { PublicId } from '../db/types.ts'

const AuditEntrySchema = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit',
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    at: p.datetime(3).defaultRaw('clock_timestamp()'),
    actor: p.text(),
    act: p.text(),
    workspaceId: p.type(new PublicId('workspace')).nullable(),
    target: p.text(),
    before: p.json<unknown>().nullable(),
    after: p.json<unknown>().nullable(),
  },
})
export class AuditEntry extends AuditEntrySchema.class {}
AuditEntrySchema.setClass(AuditEntry)
