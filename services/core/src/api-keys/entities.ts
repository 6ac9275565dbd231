import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { keyStatuses, type Scope, uuidFromId } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { apiKeyMac } from '../database/signed-rows.ts'
import { PublicId, signature } from '../database/types.ts'

const ApiKeySchema = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.type(new PublicId('apiKey')).primary(),
    workspaceId: p.type(new PublicId('workspace')),
    ownerUserId: p.text(),
    name: p.text(),
    status: p.enum(keyStatuses),
    scopes: p.array<Scope>(),
    ipAllowlist: p.array<string>(),
    secret: p.text(),
    secretVersion: p.integer(),
    previousSecret: p.text().nullable(),
    previousSecretUntil: p.datetime(3).nullable(),
    expiresAt: p.datetime(3).nullable(),
    deletedAt: p.datetime(3).nullable(),
    lastUsedAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    accessRevision: p.bigint('number'),
    ...signature(),
  },
})
export class ApiKey extends ApiKeySchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return apiKeyMac(chainKey, {
      ...this,
      id: uuidFromId('apiKey', this.id),
      workspaceId: uuidFromId('workspace', this.workspaceId),
      previousSecret: this.previousSecret ?? null,
      previousSecretUntil: this.previousSecretUntil ?? null,
      expiresAt: this.expiresAt ?? null,
      deletedAt: this.deletedAt ?? null,
    })
  }
}
ApiKeySchema.setClass(ApiKey)
