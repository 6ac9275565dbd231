import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { deliveryErrors, type EventType, uuidFromId, webhookStatuses } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { webhookMac } from '../database/signed-rows.ts'
import { PublicId, signature } from '../database/types.ts'

/** The columns after `updatedAt` are the delivery state, which is not signed (see database/row-signer.ts). */
const WebhookSchema = defineEntity({
  name: 'Webhook',
  tableName: 'webhook',
  properties: {
    id: p.type(new PublicId('webhook')).primary(),
    workspaceId: p.type(new PublicId('workspace')),
    bizId: p.text(),
    bizIdMac: p.blob(),
    url: p.text(),
    types: p.array<EventType>(),
    concurrency: p.smallint(),
    status: p.enum(webhookStatuses),
    secret: p.text(),
    secretVersion: p.integer(),
    previousSecret: p.text().nullable(),
    previousSecretUntil: p.datetime(3).nullable(),
    deletedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
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
    return webhookMac(chainKey, {
      ...this,
      id: uuidFromId('webhook', this.id),
      workspaceId: uuidFromId('workspace', this.workspaceId),
      previousSecret: this.previousSecret ?? null,
      previousSecretUntil: this.previousSecretUntil ?? null,
      deletedAt: this.deletedAt ?? null,
    })
  }
}
WebhookSchema.setClass(Webhook)
