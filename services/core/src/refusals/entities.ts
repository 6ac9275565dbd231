import { defineEntity, p } from '@mikro-orm/core'

const RefusalSchema = defineEntity({
  name: 'Refusal',
  tableName: 'refusal',
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    receivedAt: p.datetime(3),
    at: p.datetime(3),
    gateway: p.text(),
    method: p.text(),
    route: p.text(),
    code: p.text(),
    step: p.text(),
    detail: p.text(),
    apiKey: p.text().nullable(),
    address: p.text(),
    requestId: p.text(),
    isSigned: p.boolean(),
  },
})
export class Refusal extends RefusalSchema.class {}
RefusalSchema.setClass(Refusal)
