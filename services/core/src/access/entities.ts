import { defineEntity, p } from '@mikro-orm/core'

/** Counts the changes of what keys may do: see revision.ts. */
const AccessRevisionSchema = defineEntity({
  name: 'AccessRevision',
  tableName: 'access_revision',
  properties: {
    singleton: p.boolean().primary(),
    revision: p.bigint('number'),
  },
})
export class AccessRevision extends AccessRevisionSchema.class {}
AccessRevisionSchema.setClass(AccessRevision)

/** The epoch of an access revision, written by a trigger. */
const AccessChangeSchema = defineEntity({
  name: 'AccessChange',
  tableName: 'access_change',
  properties: {
    revision: p.bigint('number').primary().autoincrement(false),
    epoch: p.uuid(),
  },
})
export class AccessChange extends AccessChangeSchema.class {}
AccessChangeSchema.setClass(AccessChange)
