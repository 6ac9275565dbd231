import { defineEntity, p } from '@mikro-orm/core'
import { instanceKinds } from '@workspace-wallet/contract'

const InstanceSchema = defineEntity({
  name: 'Instance',
  tableName: 'instance',
  properties: {
    id: p.uuid().primary(),
    kind: p.enum(instanceKinds),
    name: p.text(),
    host: p.text(),
    version: p.text(),
    startedAt: p.datetime(3),
    seenAt: p.datetime(3),
    fault: p.text().nullable(),
    waiting: p.integer(),
    unhealthyCores: p.integer(),
  },
})
export class Instance extends InstanceSchema.class {}
InstanceSchema.setClass(Instance)
