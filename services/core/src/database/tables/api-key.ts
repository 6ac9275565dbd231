import type { KeyObject } from 'node:crypto'
import { keyStatuses, type Scope } from '@workspace-wallet/contract'
import { bigint, integer, list, oneOf, orNull, primary, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac, withMac } from './table.ts'

/** `last_used_at` and `access_revision` are not among them: they give no access, and change without a new revision. */
export const apiKeyColumns = {
  id: primary(uuid('apiKey')),
  workspaceId: uuid('workspace'),
  ownerUserId: text,
  name: text,
  status: oneOf(keyStatuses),
  scopes: list<Scope>(),
  ipAllowlist: list<string>(),
  secret: text,
  secretVersion: integer,
  previousSecret: orNull(text),
  previousSecretUntil: orNull(time),
  expiresAt: orNull(time),
  deletedAt: orNull(time),
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type ApiKeyRow = RowOf<typeof apiKeyColumns>
export const storedApiKeyColumns = withMac(apiKeyColumns)

export function apiKeyMac(key: KeyObject, row: ApiKeyRow): Buffer {
  return rowMac(key, 'api_key', apiKeyColumns, row)
}
