import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { deliveryErrors } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { webhookColumns, webhookMac } from '../database/tables/webhook.ts'
import { signature } from '../database/types.ts'

/** The columns after those of the MAC are the delivery state (see database/row-signer.ts). */
const WebhookSchema = defineEntity({
  name: 'Webhook',
  tableName: 'webhook',
  properties: {
    ...propertiesOf(webhookColumns),
    position: p.bigint('number'),
    generation: p.uuid(),
    leasedGeneration: p.uuid().nullable(),
    leasedUntil: p.datetime(3),
    nextAttemptAt: p.datetime(3),
    failures: p.integer(),
    failingSince: p.datetime(3).nullable(),
    lastStatus: p.integer().nullable(),
    lastError: p.enum(deliveryErrors).nullable(),
    lastAttemptAt: p.datetime(3).nullable(),
    ...signature(),
  },
})
export class Webhook extends WebhookSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return webhookMac(chainKey, rowOfEntity(webhookColumns, this))
  }
}
WebhookSchema.setClass(Webhook)
