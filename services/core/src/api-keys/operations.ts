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
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow } from '../database/row-signer.ts'
import { idToFind } from '../database/types.ts'
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

/**
 * Issues a key to a member. Only the result contains the plain secret.
 *
 * @throws AdminError NOT_FOUND; NOT_ALLOWED for an owner who is not a member, a past expiry or a malformed address
 */
export async function createKey(
  em: Em,
  { keyRing, keyIdChecksumKey }: { keyRing: KeyRing; keyIdChecksumKey: string },
  actor: string,
  key: NewKey,
): Promise<IssuedKey> {
  const { workspaceId, ownerUserId, name, scopes } = key
  const { id } = await findWorkspace(em, workspaceId)
  const member = await em.findOne(Member, { workspaceId: id, userId: ownerUserId, removedAt: null })
  if (!member || !isGenuine(member))
    throw new AdminError('NOT_ALLOWED', `${ownerUserId} is not a member of ${workspaceId}: add the member first.`)
  const apiKey = mintKeyId(keyIdChecksumKey)
  const apiSecret = newSecret()
  const { accessRevision, now } = await beginAccessChange(em)
  const expiresAt = key.expiresAt ?? null
  if (expiresAt && expiresAt <= now)
    throw new AdminError('NOT_ALLOWED', 'The expiry is in the past: give a later time.')
  const ipAllowlist = checkedAllowlist(key.ipAllowlist)
  const created = em.create(ApiKey, {
    id: apiKey,
    workspaceId: id,
    ownerUserId,
    name,
    status: 'ACTIVE',
    scopes,
    ipAllowlist,
    secret: encryptSecret(keyRing, { id: apiKey, workspaceId, version: 1 }, apiSecret),
    secretVersion: 1,
    expiresAt,
    createdAt: now,
    updatedAt: now,
    accessRevision,
  })
  const after = { ownerUserId, name, ...auditView(created) }
  recordAction(em, { actor, action: 'key.create', workspaceId: id, target: apiKey, after })
  await em.flush()
  return { apiKey, apiSecret }
}

export type Rotation = { apiKey: string; graceMs: number; force: boolean }

/**
 * Gives a key a new secret. The old one remains valid for `graceMs`; with zero it stops at once, as does the one before it.
 *
 * @throws AdminError NOT_FOUND; NOT_ALLOWED if a rotation with a grace would end the grace of an earlier one, unless forced
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
    const graceEndsAt = oldSecretUntil(key, now)
    if (graceEndsAt && keepsOld && !force)
      throw new AdminError(
        'NOT_ALLOWED',
        `The previous secret is valid until ${graceEndsAt.toISOString()}, and another rotation would end it now: wait until then, or give --force.`,
      )
    key.previousSecret = keepsOld ? key.secret : null
    key.previousSecretUntil = keepsOld ? new Date(now.getTime() + graceMs) : null
    key.secretVersion += 1
    key.secret = encryptSecret(
      keyRing,
      { id: apiKey, workspaceId: key.workspaceId, version: key.secretVersion },
      apiSecret,
    )
  })
  return { apiKey, apiSecret }
}

export async function setKeyStatus(em: Em, actor: string, apiKey: string, status: ApiKey['status']): Promise<void> {
  const action = status === 'ACTIVE' ? 'key.enable' : 'key.disable'
  await changeKey(em, actor, action, apiKey, key => {
    key.status = status
  })
}

/** Deletes a key: requests get GA2011. Its row remains, without secrets, for the transfers and the audit that name it. */
export async function deleteKey(em: Em, actor: string, apiKey: string): Promise<void> {
  await changeKey(em, actor, 'key.delete', apiKey, (key, now) => {
    // A row that was modified outside the service can be deleted too: what remains gives no access.
    replaceRow(key)
    key.deletedAt ??= now
    key.secret = ''
    key.previousSecret = key.previousSecretUntil = null
  })
}

/** Sets the expiry; a past time becomes the current time. Returns the new expiry. */
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
      ...(workspaceId !== undefined && { workspaceId: idToFind('workspace', workspaceId) }),
      ...(apiKey !== undefined && { id: idToFind('apiKey', apiKey) }),
      ...(after !== undefined && { id: { $gt: idToFind('apiKey', after) } }),
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
  const key = await em.findOne(ApiKey, { id: idToFind('apiKey', apiKey) })
  if (!key || (key.deletedAt && isGenuine(key))) throw new AdminError('NOT_FOUND', `There is no key ${apiKey}.`)
  const before = auditView(key)
  change(key, now)
  key.accessRevision = accessRevision
  key.updatedAt = now
  recordAction(em, { actor, action, workspaceId: key.workspaceId, target: apiKey, before, after: auditView(key) })
  await em.flush()
  return key
}

/** The state of a key in the audit, without secrets. The verification compares it with the row (integrity/verify/audited-rows.ts). */
function auditView(key: ApiKey) {
  const { status, scopes, ipAllowlist, secretVersion } = key
  const { previousSecretUntil = null, expiresAt = null, deletedAt = null } = key
  return { status, scopes, ipAllowlist, secretVersion, previousSecretUntil, expiresAt, deletedAt }
}

function toRecord(key: ApiKey, now: Date): KeyRecord {
  const { id, workspaceId, ownerUserId, name, status, createdAt, updatedAt } = key
  const { expiresAt = null, lastUsedAt = null } = key
  const isModified = !isGenuine(key)
  return {
    apiKey: id,
    workspaceId,
    ownerUserId,
    name,
    status,
    // A modified row can have anything there, such as null in place of a text, and gives no access.
    scopes: isModified ? [] : key.scopes,
    ipAllowlist: isModified ? [] : key.ipAllowlist,
    expiresAt,
    oldSecretUntil: oldSecretUntil(key, now),
    lastUsedAt,
    createdAt,
    updatedAt,
    isModified,
  }
}

/** The end of the grace of the last rotation; null if there is none or it has ended. */
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
