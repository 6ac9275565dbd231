import { randomBytes } from 'node:crypto'
import {
  AdminError,
  type AuditAction,
  isAddressOrBlock,
  type KeyListing,
  type KeyPage,
  type KeyRecord,
  type Scope,
} from '@workspace-wallet/contract'
import { encryptSecret, type KeyRing, mintKeyId } from '@workspace-wallet/runtime'
import { beginAccessChange } from '../access/revision.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow } from '../database/row-signer.ts'
import { Member } from '../workspaces/entities.ts'
import { findWorkspace } from '../workspaces/operations.ts'
import { ApiKey } from './entities.ts'

export type NewKey = {
  workspaceId: string
  ownerUserId: string
  name: string
  scopes: Scope[]
  ipAllowlist: string[]
  expiresAt?: Date | undefined
}
export type IssuedKey = { apiKey: string; apiSecret: string }

/** Issues a key to a member. The secret is in the answer and nowhere else in plain text. */
export async function createKey(
  em: Em,
  { keyRing, keyIdChecksumKey }: { keyRing: KeyRing; keyIdChecksumKey: string },
  actor: string,
  key: NewKey,
): Promise<IssuedKey> {
  const { workspaceId, ownerUserId, name, scopes } = key
  await findWorkspace(em, workspaceId)
  if (!(await em.findOne(Member, { workspaceId, userId: ownerUserId, removedAt: null })))
    throw new AdminError('NOT_ALLOWED', `${ownerUserId} is no member of ${workspaceId}: add the member first.`)
  const apiKey = mintKeyId(keyIdChecksumKey)
  const apiSecret = newSecret()
  const { accessRevision, now } = await beginAccessChange(em)
  const expiresAt = key.expiresAt ?? null
  if (expiresAt && expiresAt <= now) throw new AdminError('NOT_ALLOWED', 'The expiry lies in the past.')
  const ipAllowlist = checkedAllowlist(key.ipAllowlist)
  const created = em.create(ApiKey, {
    id: apiKey,
    workspaceId,
    ownerUserId,
    name,
    status: 'ACTIVE',
    scopes,
    ipAllowlist,
    secret: encryptSecret(keyRing, { apiKey, workspaceId, version: 1 }, apiSecret),
    secretVersion: 1,
    expiresAt,
    createdAt: now,
    updatedAt: now,
    accessRevision,
  })
  const after = { ownerUserId, name, ...auditView(created) }
  recordAction(em, { actor, action: 'key.create', workspaceId, target: apiKey, after })
  await em.flush()
  return { apiKey, apiSecret }
}

export type Rotation = { apiKey: string; graceMs: number; force: boolean }

/**
 * Gives a key a new secret under the same id. With a grace the old secret verifies beside it for so long; with none it
 * stops at once.
 *
 * @throws AdminError NOT_ALLOWED when that would end the grace of an earlier rotation, unless forced. Without a grace
 *   nobody expects an old secret to work: then every one of them stops.
 */
export async function rotateKey(
  em: Em,
  keyRing: KeyRing,
  actor: string,
  { apiKey, graceMs, force }: Rotation,
): Promise<IssuedKey> {
  const apiSecret = newSecret()
  await changeKey(em, actor, 'key.rotate', apiKey, (key, now) => {
    const keepsOld = graceMs > 0
    const promised = oldSecretUntil(key, now)
    if (promised && keepsOld && !force)
      throw new AdminError(
        'NOT_ALLOWED',
        `The secret before this one works until ${promised.toISOString()}, and another rotation would end it now: wait until then, or give --force.`,
      )
    key.previousSecret = keepsOld ? key.secret : null
    key.previousSecretUntil = keepsOld ? new Date(now.getTime() + graceMs) : null
    key.secretVersion += 1
    key.secret = encryptSecret(keyRing, { apiKey, workspaceId: key.workspaceId, version: key.secretVersion }, apiSecret)
  })
  return { apiKey, apiSecret }
}

export async function setKeyStatus(em: Em, actor: string, apiKey: string, status: ApiKey['status']): Promise<void> {
  const action = status === 'ACTIVE' ? 'key.enable' : 'key.disable'
  await changeKey(em, actor, action, apiKey, key => {
    key.status = status
  })
}

/**
 * From now on the key is unknown: GA2011. Its row stays, for the audit and the transfers that name it; its secrets do
 * not.
 */
export async function deleteKey(em: Em, actor: string, apiKey: string): Promise<void> {
  await changeKey(em, actor, 'key.delete', apiKey, (key, now) => {
    // A row that was modified outside the service can be deleted as well: nothing of it is left that opens anything.
    replaceRow(key)
    key.deletedAt ??= now
    key.secret = ''
    key.previousSecret = key.previousSecretUntil = null
  })
}

/** Answers with the expiry as it is now: a time that has passed becomes the present, and the key ends. */
export async function setKeyExpiry(
  em: Em,
  actor: string,
  apiKey: string,
  wanted: Date | null,
): Promise<{ expiresAt: Date | null }> {
  const { expiresAt = null } = await changeKey(em, actor, 'key.set-expiry', apiKey, (key, now) => {
    key.expiresAt = wanted && wanted < now ? now : wanted
  })
  return { expiresAt }
}

export async function setKeyScopes(em: Em, actor: string, apiKey: string, scopes: Scope[]): Promise<void> {
  await changeKey(em, actor, 'key.set-scopes', apiKey, key => {
    key.scopes = scopes
  })
}

export async function setKeyIps(em: Em, actor: string, apiKey: string, ipAllowlist: string[]): Promise<void> {
  const checked = checkedAllowlist(ipAllowlist)
  await changeKey(em, actor, 'key.set-ips', apiKey, key => {
    key.ipAllowlist = checked
  })
}

/** A page of the keys of a workspace, or of all, oldest first: ids sort by time. */
export async function listKeys(em: Em, { workspaceId, apiKey, after, limit }: KeyListing): Promise<KeyPage> {
  const found = await em.find(
    ApiKey,
    {
      deletedAt: null,
      ...(workspaceId !== undefined && { workspaceId }),
      ...(apiKey !== undefined && { id: apiKey }),
      ...(after !== undefined && { id: { $gt: after } }),
    },
    { orderBy: { id: 'asc' }, limit: limit + 1 },
  )
  const now = await databaseTime(em)
  const keys = found.slice(0, limit).map(key => toRecord(key, now))
  return { keys, next: found.length > limit ? keys.at(-1)!.apiKey : null }
}

async function changeKey(
  em: Em,
  actor: string,
  action: AuditAction,
  apiKey: string,
  change: (key: ApiKey, now: Date) => void,
): Promise<ApiKey> {
  const { accessRevision, now } = await beginAccessChange(em)
  const key = await em.findOne(ApiKey, { id: apiKey })
  if (!key || (key.deletedAt && isGenuine(key))) throw new AdminError('NOT_FOUND', `There is no key ${apiKey}.`)
  const before = auditView(key)
  change(key, now)
  key.accessRevision = accessRevision
  key.updatedAt = now
  recordAction(em, { actor, action, workspaceId: key.workspaceId, target: apiKey, before, after: auditView(key) })
  await em.flush()
  return key
}

/** What the audit says of a key: everything but its secrets. */
function auditView(key: ApiKey) {
  const { status, scopes, ipAllowlist, secretVersion } = key
  const { previousSecretUntil = null, expiresAt = null, deletedAt = null } = key
  return { status, scopes, ipAllowlist, secretVersion, previousSecretUntil, expiresAt, deletedAt }
}

function toRecord(key: ApiKey, now: Date): KeyRecord {
  const { id, workspaceId, ownerUserId, name, status, scopes, ipAllowlist, createdAt, updatedAt } = key
  const { expiresAt = null, lastUsedAt = null } = key
  return {
    apiKey: id,
    workspaceId,
    ownerUserId,
    name,
    status,
    scopes,
    ipAllowlist,
    expiresAt,
    oldSecretUntil: oldSecretUntil(key, now),
    lastUsedAt,
    createdAt,
    updatedAt,
  }
}

/** When the grace of the last rotation ends; null when none lasts. */
function oldSecretUntil({ previousSecretUntil }: ApiKey, now: Date): Date | null {
  return previousSecretUntil && previousSecretUntil > now ? previousSecretUntil : null
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** @throws AdminError NOT_ALLOWED naming the first malformed entry */
function checkedAllowlist(entries: string[]): string[] {
  for (const entry of entries)
    if (!isAddressOrBlock(entry))
      throw new AdminError(
        'NOT_ALLOWED',
        `"${entry}" is neither an IP address nor a CIDR block such as 203.0.113.0/24.`,
      )
  return entries
}
