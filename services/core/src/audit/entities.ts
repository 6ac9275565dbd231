import { defineEntity, p } from '@mikro-orm/core'
import { auditColumns } from '../database/tables/audit.ts'
import { propertiesOf } from '../database/tables/properties.ts'

const AuditEntrySchema = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit',
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    ...propertiesOf(auditColumns),
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
