import { z } from 'zod'
import { label } from './text.ts'
import { userId } from './workspaces.ts'

/** Section 5.4. */
export const scopes = ['wallet:read', 'transfer:read', 'transfer:create'] as const
export const scope = z.enum(scopes)
export type Scope = z.infer<typeof scope>

export const keyStatuses = ['ACTIVE', 'DISABLED'] as const

const scopeList = z
  .array(scope)
  .min(1, `a key needs at least one scope of ${scopes.join(', ')}`)
  .transform(list => [...new Set(list)])
/** IPv4 and IPv6 addresses and CIDR blocks; empty admits every address. Core refuses a malformed entry. */
const ipAllowlist = z.array(z.string()).max(256)

/** A time that PostgreSQL can keep: a Date reaches further, both ways. */
const keptTime = z.date().min(new Date(0)).max(new Date('9999-12-31T23:59:59.999Z'))

export const createKeyInput = z.object({
  workspaceId: z.string(),
  ownerUserId: userId,
  scopes: scopeList,
  ipAllowlist: ipAllowlist.default([]),
  name: label.default(''),
  expiresAt: keptTime.optional(),
})
export const keyInput = z.object({ apiKey: z.string() })
export const setScopesInput = keyInput.extend({ scopes: scopeList })
export const setIpsInput = keyInput.extend({ ipAllowlist })
/** A time that has passed ends the key at once; null lets it live. */
export const setExpiryInput = keyInput.extend({ expiresAt: keptTime.nullable() })
/**
 * `graceMs`: how long the old secret still verifies. Zero stops it at once, and with it the one before. A key has two
 * secrets at most: with a grace, while an earlier one lasts, a rotation is refused unless forced to end the earlier.
 */
export const rotateKeyInput = keyInput.extend({
  graceMs: z
    .int()
    .min(0)
    .max(30 * 24 * 3600_000)
    .default(0),
  force: z.boolean().default(false),
})

/** Keys in the order of their creation, those after one of them. */
export const listKeysInput = z.object({
  workspaceId: z.string().optional(),
  apiKey: z.string().optional(),
  after: z.string().optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type KeyListing = z.infer<typeof listKeysInput>

/** The only moment at which a secret is shown. */
export const issuedKey = z.object({ apiKey: z.string(), apiSecret: z.string() })

/** A key as operators see it: never its secret. */
export const keyRecord = z.object({
  apiKey: z.string(),
  workspaceId: z.string(),
  ownerUserId: z.string(),
  name: z.string(),
  status: z.enum(keyStatuses),
  scopes: z.array(scope),
  ipAllowlist: z.array(z.string()),
  expiresAt: z.date().nullable(),
  /** While a rotation's grace lasts: when the old secret stops. */
  oldSecretUntil: z.date().nullable(),
  lastUsedAt: z.date().nullable(),
  createdAt: z.date(),
  updatedAt: z.date(),
})
export type KeyRecord = z.infer<typeof keyRecord>
/** `next`: what to give as `after` for more; null at the end. */
export const keyPage = z.object({ keys: z.array(keyRecord), next: z.string().nullable() })
export type KeyPage = z.infer<typeof keyPage>

/**
 * What a gateway needs to judge a request under a key (steps 1 to 3, 6, 7 and 8 of section 5.3).
 * Secrets are ciphertext (`v1.kek-id.iv.tag.ct`); the gateway holds the key-encryption key.
 */
export const keyAccess = z.object({
  apiKey: z.string(),
  workspaceId: z.string(),
  status: z.enum(keyStatuses),
  expiresAt: z.date().nullable(),
  workspaceExists: z.boolean(),
  ownerIsMember: z.boolean(),
  scopes: z.array(scope),
  ipAllowlist: z.array(z.string()),
  /** The current secret first; a rotated one while its grace lasts. */
  secrets: z.array(z.object({ version: z.int(), ciphertext: z.string(), validUntil: z.date().nullable() })),
})
export type KeyAccess = z.infer<typeof keyAccess>

export const lookupAccessInput = z.object({ apiKeys: z.array(z.string().max(64)).min(1).max(500) })
/** Keys that exist, read in one snapshot together with the revision at which they held. */
export const accessSnapshot = z.object({ revision: z.int(), keys: z.array(keyAccess) })

/** How often a gateway asks which keys have changed. */
export const accessPollMs = 50

/**
 * The last revision that a gateway has heard of, and its epoch: a random name that no other change ever has. A database
 * that was restored, or that failed over to a copy behind, counts the same numbers again, but not with the same epochs.
 */
export const accessChangesInput = z.object({ since: z.int().min(0), epoch: z.uuid().nullable() })
/** The keys that changed after it; `complete` is false when they cannot be named, or are too many: drop all keys. */
export const accessChanges = z.object({
  revision: z.int(),
  epoch: z.uuid().nullable(),
  complete: z.boolean(),
  apiKeys: z.array(z.string()),
  /** Under which core checkpoints the ids of keys (see key-ids.ts). It never changes. */
  checksumKey: z.string(),
})

/** When keys were last used. */
export const usedKeysInput = z.object({
  uses: z.array(z.object({ apiKey: z.string().max(64), usedAt: keptTime })).max(500),
})

/** A generation of the nonce store. It is the first one when no request can have been accepted before it. */
export const nonceGenerationInput = z.object({ generationId: z.uuid() })
export const nonceGeneration = z.object({ isFirst: z.boolean() })
