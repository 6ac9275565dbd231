import { z } from 'zod'
import { label, reason } from './text.ts'
import { userId } from './workspaces.ts'

/** Scopes of API keys (section 5.4). */
export const scopes = [
  'wallet:read',
  'transfer:read',
  'transfer:create',
  'transfer:reverse',
  'hold:read',
  'hold:create',
  'event:read',
  'wallet:manage',
  'webhook:manage',
] as const
export const scope = z.enum(scopes)
export type Scope = z.infer<typeof scope>

export const keyStatuses = ['ACTIVE', 'DISABLED'] as const

const scopeList = z
  .array(scope)
  .min(1, `a key needs at least one scope of ${scopes.join(', ')}`)
  .transform(list => [...new Set(list)])
/** IPv4 and IPv6 addresses and CIDR blocks. Empty allows every address. Core rejects a malformed entry. */
const ipAllowlist = z.array(z.string()).max(256)

/** A time that PostgreSQL can store. The range of Date is larger. */
export const storableTime = z.date().min(new Date(0)).max(new Date('9999-12-31T23:59:59.999Z'))

export const createKeyInput = z.object({
  workspaceId: z.string(),
  ownerUserId: userId,
  scopes: scopeList,
  ipAllowlist: ipAllowlist.default([]),
  name: label.default(''),
  expiresAt: storableTime.optional(),
  reason: reason.optional(),
})
/** `reason` is for the audit. */
export const keyInput = z.object({ apiKey: z.string(), reason: reason.optional() })
export const setScopesInput = keyInput.extend({ scopes: scopeList })
export const setIpsInput = keyInput.extend({ ipAllowlist })
/** A time in the past ends the key at once. Null removes the expiry. */
export const setExpiryInput = keyInput.extend({ expiresAt: storableTime.nullable() })
/**
 * `graceMs`: how long the old secret remains valid. Zero ends all old secrets at once. A key has at most two secrets: a
 * rotation with a grace period is rejected during an earlier grace period, unless `force` ends that one.
 */
export const rotateKeyInput = keyInput.extend({
  graceMs: z
    .int()
    .min(0)
    .max(30 * 24 * 3600_000)
    .default(0),
  force: z.boolean().default(false),
})

/** Lists keys in order of creation, starting after the key `after`. */
export const listKeysInput = z.object({
  workspaceId: z.string().optional(),
  apiKey: z.string().optional(),
  after: z.string().optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type KeyListing = z.infer<typeof listKeysInput>

/** A new key with its secret, which is never shown again. */
export const issuedKey = z.object({ apiKey: z.string(), apiSecret: z.string() })

/** A key as operators see it, without its secret. */
export const keyRecord = z.object({
  apiKey: z.string(),
  workspaceId: z.string(),
  ownerUserId: z.string(),
  name: z.string(),
  status: z.enum(keyStatuses),
  scopes: z.array(scope),
  ipAllowlist: z.array(z.string()),
  expiresAt: z.date().nullable(),
  /** During the grace period of a rotation: when the old secret ends. */
  oldSecretUntil: z.date().nullable(),
  lastUsedAt: z.date().nullable(),
  createdAt: z.date(),
  updatedAt: z.date(),
  /** Whether its row was modified or written outside the service: then it gives no access, and can only be deleted. */
  isModified: z.boolean(),
})
export type KeyRecord = z.infer<typeof keyRecord>
/** `next`: the `after` of the next page; null on the last page. */
export const keyPage = z.object({ keys: z.array(keyRecord), next: z.string().nullable() })
export type KeyPage = z.infer<typeof keyPage>

/**
 * What a gateway needs to authenticate and authorize requests of a key (steps 1 to 3, 6, 7 and 8 of section 5.3).
 * Secrets are encrypted (see `encryptSecret` in packages/runtime); the gateway has the key-encryption key.
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
  /** The current secret first; then the old one during its grace period. */
  secrets: z.array(z.object({ version: z.int(), ciphertext: z.string(), validUntil: z.date().nullable() })),
})
export type KeyAccess = z.infer<typeof keyAccess>

export const lookupAccessInput = z.object({ apiKeys: z.array(z.string().max(64)).min(1).max(500) })
/**
 * The access revision of each place, and the requested keys that exist there, read in one snapshot. `revisions`: null for a place that
 * has not answered, which may have the keys that are missing. `place`: which of the revisions is that of the key. `unavailable`: keys
 * whose workspace is moving to another place, or whose place has not answered.
 */
export const accessSnapshot = z.object({
  revisions: z.array(z.int().nullable()).min(1),
  keys: z.array(keyAccess.extend({ place: z.int().min(0) })),
  unavailable: z.array(z.string()),
})

/** How often core polls the database for changed keys. A gateway asks core no more often. */
export const accessPollMs = 50
/** For how long core waits for a change before it answers a gateway that there is none. */
export const accessWaitMs = 250
/** How long cached keys are used after a successful poll was sent. */
export const accessLeaseMs = 3_000
/**
 * For how long gateways and cores use a key that they have read, also if no poll reports a change: whoever owns the tables can keep a
 * change from the polls.
 */
export const accessMaxAgeMs = 30_000

/**
 * An access revision of a place, and its epoch: a random ID, unique to that change. A database that was restored, or that failed over to
 * a replica that lagged behind, repeats revisions, but never epochs.
 */
export const accessPosition = z.object({ revision: z.int().min(0), epoch: z.uuid().nullable() })
export type AccessPosition = z.infer<typeof accessPosition>

/** The last position of each place that a gateway has received; empty before the first poll. */
export const accessChangesInput = z.object({ since: z.array(accessPosition).max(1000) })
/**
 * The keys of each place that changed since then, and the position that this leads to; null for a place that does not answer. If `complete`
 * is false, they are unknown or too many: drop all cached keys of the place.
 */
export const accessChanges = z.object({
  places: z.array(accessPosition.extend({ complete: z.boolean(), apiKeys: z.array(z.string()) }).nullable()).min(1),
  /** The key of the checksums in key IDs (see key-ids.ts in packages/runtime). It never changes. */
  checksumKey: z.string(),
})

/** When keys were last used. */
export const usedKeysInput = z.object({
  uses: z.array(z.object({ apiKey: z.string().max(64), usedAt: storableTime })).max(500),
})

/** The key of the nonce store, in base64: see gateway/src/auth/nonces/generations.ts. It never changes. */
export const nonceKey = z.object({ nonceKey: z.string() })

/** API keys are divided into this many partitions, by hash. Each generation of the nonce store is that of some of them. */
export const noncePartitionCount = 32
const noncePartitions = z
  .array(
    z
      .int()
      .min(0)
      .max(noncePartitionCount - 1),
  )
  .max(noncePartitionCount)
export const nonceGenerationInput = z.object({ generationId: z.uuid(), partitions: noncePartitions.min(1) })
/**
 * A generation of the nonce store (docs/decisions/0007). `first`: its partitions in which no request can have been accepted
 * before it. `latest`: those for which no other generation was recorded after it, in which requests may have been accepted.
 */
export const nonceGeneration = z.object({ first: noncePartitions, latest: noncePartitions })
export type NonceGeneration = z.infer<typeof nonceGeneration>
/** The latest generation of each partition, by ID. */
export const latestNonceGenerations = z.record(z.string(), noncePartitions)
export type LatestNonceGenerations = z.infer<typeof latestNonceGenerations>
