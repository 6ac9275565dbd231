import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { apiKeyColumns, apiKeyMac } from '../database/tables/api-key.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { signature } from '../database/types.ts'

const ApiKeySchema = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    ...propertiesOf(apiKeyColumns),
    lastUsedAt: p.datetime(3).nullable(),
    accessRevision: p.bigint('number'),
    ...signature(),
  },
})
export class ApiKey extends ApiKeySchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return apiKeyMac(chainKey, rowOfEntity(apiKeyColumns, this))
  }
}
ApiKeySchema.setClass(ApiKey)
