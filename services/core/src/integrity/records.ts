import type { KeyObject } from 'node:crypto'
import {
  type BackupRecord,
  brokenRule,
  type CheckpointRecord,
  type Id,
  type RecordListing,
  type VerificationRecord,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { recordAction } from '../audit/record.ts'
import { type CheckedAction, findCheckedActions, type RecordedAction } from '../audit/records.ts'
import type { Em } from '../database/orm.ts'
import type { Queryable } from '../database/statement.ts'

type Parts = { reads: Queryable; chainKey: KeyObject }

/** Records a verification that has ended in the audit. @param workspaceId null for all workspaces */
export function recordVerification(
  em: Em,
  actor: string,
  { workspaceId, startedAt }: { workspaceId: Id<'workspace'> | null; startedAt: Date },
  { ok, workspaces, wallets, transfers, flows, brokenRules, checkpoint }: VerifyReport,
): void {
  const checkpointId = checkpoint?.checkpointId ?? null
  recordAction(em, {
    actor,
    action: 'ledger.verify',
    workspaceId,
    target: workspaceId ?? 'all workspaces',
    after: { ok, startedAt, workspaces, wallets, transfers, flows, brokenRules, checkpointId },
  })
}

/** The verifications that the audit has, newest first. */
export async function listVerifications(
  parts: Parts,
  listing: RecordListing,
): Promise<{ verifications: VerificationRecord[]; next: number | null }> {
  const { records, next } = await listRecords(parts, 'ledger.verify', listing)
  return { verifications: records.map(toVerification), next }
}

/** The exports of checkpoints that the audit has, newest first. */
export async function listCheckpoints(
  parts: Parts,
  listing: RecordListing,
): Promise<{ checkpoints: CheckpointRecord[]; next: number | null }> {
  const { records, next } = await listRecords(parts, 'ledger.checkpoint', listing)
  return { checkpoints: records.map(toCheckpoint), next }
}

/** The last backup that the audit has; null without any. */
export async function findLastBackup(parts: Parts): Promise<BackupRecord | null> {
  const [last] = (await listRecords(parts, 'system.backup', { limit: 1 })).records
  return last ? { ...commonOf(last), name: last.target, ...backup.parse(last.after) } : null
}

async function listRecords(
  { reads, chainKey }: Parts,
  action: RecordedAction,
  { before, limit }: RecordListing,
): Promise<{ records: CheckedAction[]; next: number | null }> {
  const found = await findCheckedActions(reads, chainKey, action, { before, limit: limit + 1 })
  const records = found.slice(0, limit)
  return { records, next: found.length > limit ? records.at(-1)!.id : null }
}

// Whoever can append to the audit, without the chain key, can write anything there: it is shown, as not genuine.
const count = z.int().min(0).catch(0)
const time = z.iso
  .datetime()
  .transform(text => new Date(text))
  .nullable()
  .catch(null)
function fields<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.preprocess(value => (isRecord(value) ? value : {}), z.object(shape))
}
const verification = fields({
  ok: z.boolean().catch(false),
  startedAt: time,
  workspaces: count,
  wallets: count,
  transfers: count,
  flows: count,
  brokenRules: z.array(brokenRule).catch([]),
  checkpointId: z.string().nullable().catch(null),
})
const checkpoint = fields({ takenAt: time, wallets: count })
const backup = fields({ bytes: count })

function toVerification(action: CheckedAction): VerificationRecord {
  return { ...commonOf(action), ...verification.parse(action.after) }
}

function toCheckpoint(action: CheckedAction): CheckpointRecord {
  return { ...commonOf(action), checkpointId: action.target, ...checkpoint.parse(action.after) }
}

function commonOf({ id, at, actor, workspaceId, isGenuine }: CheckedAction) {
  return { id, at, actor, workspaceId, isGenuine }
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
