import { z } from 'zod'
import { auditEntry, beforeNumbers } from './audit.ts'
import { instance } from './instances.ts'
import { brokenRule, haltedLedger, verificationKinds } from './ledger.ts'

/** Entries of the audit about the whole service, newest first. `before`: `next` of the previous page. */
export const listRecordsInput = z.object({
  before: beforeNumbers.optional(),
  limit: z.int().min(1).max(500).default(50),
})
export type RecordListing = z.infer<typeof listRecordsInput>

/** What the audit says of each. */
const record = auditEntry.pick({ id: true, at: true, actor: true, workspaceId: true, isGenuine: true })

/** A verification that has ended, of one workspace or of all. */
export const verificationRecord = record.extend({
  /** Incremental ones are run by core itself. */
  kind: z.enum(verificationKinds),
  /** Whether the ledger was sound. */
  ok: z.boolean(),
  startedAt: z.date().nullable(),
  workspaces: z.int(),
  wallets: z.int(),
  transfers: z.int(),
  flows: z.int(),
  brokenRules: z.array(brokenRule),
  /** The checkpoint that it compared with; null without one, and if the file had a fault. */
  checkpointId: z.string().nullable(),
})
export type VerificationRecord = z.infer<typeof verificationRecord>
export const verificationRecords = z.object({ verifications: z.array(verificationRecord), next: z.string().nullable() })
export type VerificationRecords = z.infer<typeof verificationRecords>

/** A checkpoint that was exported. Core does not keep its file. */
export const checkpointRecord = record.extend({
  checkpointId: z.string(),
  takenAt: z.date().nullable(),
  wallets: z.int(),
})
export type CheckpointRecord = z.infer<typeof checkpointRecord>
export const checkpointRecords = z.object({ checkpoints: z.array(checkpointRecord), next: z.string().nullable() })
export type CheckpointRecords = z.infer<typeof checkpointRecords>

/**
 * A backup that somebody has taken. Core does not keep its file. `places`: the numbers of the places that it contains, from 0; needed if
 * there are several.
 */
export const recordBackupInput = z.object({
  name: z.string().min(1).max(255),
  bytes: z.int().min(0),
  places: z.array(z.int().min(0)).min(1).max(100).optional(),
})

export const backupRecord = record.extend({ name: z.string(), bytes: z.int() })
export type BackupRecord = z.infer<typeof backupRecord>

/** How long before its expiry a key or a token is shown, and after how long without use a key. */
export const expiringWithinDays = 30
export const unusedForDays = 90
/** Maximum number of entries of each list. */
export const statusListLimit = 50

const keyOfStatus = z.object({
  apiKey: z.string(),
  workspaceId: z.string(),
  ownerUserId: z.string(),
  name: z.string(),
})

/** What an operator looks at first. Each list but `instances` has at most `statusListLimit` entries, the most urgent first. */
export const systemStatus = z.object({
  /** The time of PostgreSQL. */
  now: z.date(),
  versions: z.object({ core: z.string(), node: z.string(), postgresql: z.string(), schema: z.array(z.string()) }),
  /** What runs, and what was seen in the last hour without having stopped: cores, gateways, couriers. */
  instances: z.array(instance),
  halted: z.array(haltedLedger),
  /** The last ones of all workspaces: those of one workspace say nothing about the others. */
  lastVerification: verificationRecord.nullable(),
  lastWholeVerification: verificationRecord.nullable(),
  lastCheckpoint: checkpointRecord.nullable(),
  lastBackup: backupRecord.nullable(),
  /** Null if they were not found in time among rows that core did not write: `ledger verify` names those. */
  credentials: z
    .object({
      /** Active keys that expire within `expiringWithinDays`. */
      expiringKeys: z.array(keyOfStatus.extend({ expiresAt: z.date() })),
      expiringOperators: z.array(z.object({ name: z.string(), expiresAt: z.date() })),
      /** Active keys that were not used for `unusedForDays`. Null: never used. */
      unusedKeys: z.array(keyOfStatus.extend({ lastUsedAt: z.date().nullable() })),
    })
    .nullable(),
})
export type SystemStatus = z.infer<typeof systemStatus>
