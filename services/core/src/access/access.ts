import type { KeyObject } from 'node:crypto'
import { idFromUuid, type KeyAccess, uuidFromId } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Queryable } from '../database/statement.ts'
import { type ApiKeyRow, apiKeyMac } from '../database/tables/api-key.ts'
import { memberMac } from '../database/tables/member.ts'
import type { SignedTable } from '../database/tables/table.ts'
import { workspaceMac } from '../database/tables/workspace.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type AccessRow, findAccessRows } from './queries.ts'

type Parts = { reads: Queryable; chainKey: KeyObject; log: Log; metrics: Metrics }

/**
 * What these keys may do, without unknown, deleted and malformed ones, at an access revision and a time of PostgreSQL. Rows that were modified outside the service give no
 * access: the key counts as disabled, the owner as not a member, the workspace as deleted.
 */
export async function findAccess(
  { reads, ...parts }: Parts,
  apiKeys: readonly string[],
): Promise<{ revision: number; now: Date; keys: KeyAccess[] }> {
  const uuids = apiKeys.flatMap(apiKey => uuidFromId('apiKey', apiKey) ?? [])
  const rows = await findAccessRows(reads, uuids)
  const { accessRevision: revision, now } = rows[0]!
  return { revision, now, keys: rows.flatMap(row => accessOf(parts, row) ?? []) }
}

function accessOf({ chainKey, log, metrics }: Omit<Parts, 'reads'>, row: AccessRow): KeyAccess | null {
  if (row.id === null) return null
  const key = { ...row, id: row.id }
  const apiKey = idFromUuid('apiKey', row.id)
  const workspaceId = idFromUuid('workspace', row.workspaceId)
  const isGenuine = (table: SignedTable, mac: Buffer, stored: Buffer) => {
    if (mac.equals(stored)) return true
    metrics.modifiedRow(table)
    log.fatal({ table, apiKey }, 'a row was modified outside the service: the key is refused; run ledger verify')
    return false
  }
  const workspaceIsGenuine = isGenuine('workspace', workspaceMac(chainKey, workspaceOf(row)), row.workspaceMac)
  const memberIsGenuine =
    row.memberMac !== null && isGenuine('member', memberMac(chainKey, memberOf(row)), row.memberMac)
  const access = {
    apiKey,
    workspaceId,
    workspaceExists: workspaceIsGenuine && row.workspaceDeletedAt === null,
    ownerIsMember: memberIsGenuine && row.memberRemovedAt === null,
  }
  const keyIsGenuine = isGenuine('api_key', apiKeyMac(chainKey, key), row.mac)
  if (row.deletedAt) return null
  // The columns of a modified row are not passed on.
  if (!keyIsGenuine) return { ...access, status: 'DISABLED', expiresAt: null, scopes: [], ipAllowlist: [], secrets: [] }
  const { status, expiresAt, scopes, ipAllowlist } = row
  return { ...access, status, expiresAt, scopes, ipAllowlist, secrets: secretsOf(key, row.now) }
}

function workspaceOf(row: AccessRow) {
  return {
    id: row.workspaceId,
    name: row.workspaceName,
    createdAt: row.workspaceCreatedAt,
    updatedAt: row.workspaceUpdatedAt,
    deletedAt: row.workspaceDeletedAt,
    revision: row.workspaceRevision,
  }
}

function memberOf(row: AccessRow) {
  return {
    workspaceId: row.workspaceId,
    userId: row.ownerUserId,
    createdAt: row.memberCreatedAt,
    removedAt: row.memberRemovedAt,
    revision: row.memberRevision,
  }
}

/** The current secret, then the previous one during its grace. */
function secretsOf(key: ApiKeyRow, now: Date): KeyAccess['secrets'] {
  const { secret, secretVersion, previousSecret, previousSecretUntil } = key
  const secrets: KeyAccess['secrets'] = [{ version: secretVersion, ciphertext: secret, validUntil: null }]
  if (previousSecret !== null && previousSecretUntil! > now)
    secrets.push({ version: secretVersion - 1, ciphertext: previousSecret, validUntil: previousSecretUntil })
  return secrets
}
