import { defineEntity, p } from '@mikro-orm/core'
import { PublicId } from '../database/types.ts'

const AuditEntrySchema = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit',
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    at: p.datetime(3),
    actor: p.text(),
    action: p.text(),
    workspaceId: p.type(new PublicId('workspace')).nullable(),
    target: p.text(),
    before: p.json<unknown>().columnType('json').nullable(),
    after: p.json<unknown>().columnType('json').nullable(),
    reason: p.text().nullable(),
    requestId: p.text().nullable(),
    position: p.bigint('number'),
    mac: p.blob(),
  },
})
export class AuditEntry extends AuditEntrySchema.class {}
AuditEntrySchema.setClass(AuditEntry)

/** The last action of a workspace. The nil UUID is the key for actions on no workspace. */
const AuditHeadSchema = defineEntity({
  name: 'AuditHead',
  tableName: 'audit_head',
  properties: {
    workspaceId: p.uuid().primary(),
    position: p.bigint('number'),
    mac: p.blob(),
  },
})
export class AuditHead extends AuditHeadSchema.class {}
AuditHeadSchema.setClass(AuditHead)
