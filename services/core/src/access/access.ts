import type { KeyObject } from 'node:crypto'
import { idFromUuid, type KeyAccess, uuidFromId } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Queryable } from '../database/statement.ts'
import { type ApiKeyRow, apiKeyMac } from '../database/tables/api-key.ts'
import { memberMac } from '../database/tables/member.ts'
import type { SignedTable } from '../database/tables/table.ts'
import { workspaceMac } from '../database/tables/workspace.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { claimIn } from '../places/claims.ts'
import { findStoredAccess, type StoredAccess } from './queries.ts'

type Parts = { reads: Queryable; number: number; chainKey: KeyObject; log: Log; metrics: Metrics }

/** What a key may do. `claim`: of its place on the workspace (see places/claims.ts). `isGenuine`: whether core wrote both rows. */
export type ClaimedAccess = KeyAccess & { claim: number; isGenuine: boolean }

/**
 * What these keys may do, without unknown, deleted and malformed ones, at an access revision and a time of PostgreSQL. Rows that were
 * modified outside the service give no access: the key counts as disabled, the owner as not a member, the workspace as deleted.
 */
export async function findAccess(
  { reads, ...parts }: Parts,
  apiKeys: readonly string[],
): Promise<{ revision: number; now: Date; keys: ClaimedAccess[] }> {
  const uuids = apiKeys.flatMap(apiKey => uuidFromId('apiKey', apiKey) ?? [])
  const { revision, now, found } = await findStoredAccess(reads, uuids)
  return { revision, now, keys: found.flatMap(stored => accessOf(parts, stored, now) ?? []) }
}

function accessOf(
  { number, chainKey, log, metrics }: Omit<Parts, 'reads'>,
  { key, workspace, owner, move }: StoredAccess,
  now: Date,
): ClaimedAccess | null {
  const apiKey = idFromUuid('apiKey', key.id)
  const isGenuine = (table: SignedTable, mac: Buffer, stored: Buffer) => {
    if (mac.equals(stored)) return true
    metrics.modifiedRow(table)
    log.fatal({ table, apiKey }, 'a row was modified outside the service: the key is refused; run ledger verify')
    return false
  }
  const workspaceIsGenuine =
    workspace !== null && isGenuine('workspace', workspaceMac(chainKey, workspace), workspace.mac)
  const workspaceExists = workspaceIsGenuine && workspace.deletedAt === null
  const ownerIsMember =
    owner !== null && isGenuine('member', memberMac(chainKey, owner), owner.mac) && owner.removedAt === null
  const keyIsGenuine = isGenuine('api_key', apiKeyMac(chainKey, key), key.mac)
  if (key.deletedAt) return null
  const claim = claimIn(chainKey, number, { workspace, move })
  const workspaceId = idFromUuid('workspace', key.workspaceId)
  const access = {
    apiKey,
    workspaceId,
    workspaceExists,
    ownerIsMember,
    claim,
    isGenuine: keyIsGenuine && workspaceIsGenuine,
  }
  // The columns of a modified row are not passed on.
  if (!keyIsGenuine) return { ...access, status: 'DISABLED', expiresAt: null, scopes: [], ipAllowlist: [], secrets: [] }
  const { status, expiresAt, scopes, ipAllowlist } = key
  return {
    ...access,
    status,
    expiresAt,
    scopes: [...scopes],
    ipAllowlist: [...ipAllowlist],
    secrets: secretsOf(key, now),
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
