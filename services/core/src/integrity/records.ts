import type { KeyObject } from 'node:crypto'
import {
  type BackupRecord,
  brokenRule,
  type CheckpointRecord,
  type Id,
  type VerificationKind,
  type VerificationRecord,
  type VerifyReport,
  verificationKinds,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { recordAction } from '../audit/record.ts'
import {
  type CheckedAction,
  findActionsOfNoWorkspace,
  findCheckedActions,
  type ListedAction,
  type RecordedAction,
} from '../audit/records.ts'
import type { Em } from '../database/orm.ts'
import type { Queryable } from '../database/statement.ts'
import { findGenuineRecords } from './genuine-records.ts'

/** `before`: the number of the last entry of the page before. */
type NumberedListing = { before?: number | undefined; limit: number }

type Parts = { reads: Queryable; chainKey: KeyObject }

/** `workspaceId`: null for all workspaces. `ends`: the digest of where a sound one ended that core has scheduled. */
type Ended = { workspaceId: Id<'workspace'> | null; startedAt: Date; kind: VerificationKind; ends?: string | null }

/**
 * Records a verification that has ended in the audit. `ok` is whether the ledger is sound, which alerts and the schedule depend on. A fault
 * of the checkpoint file, which the caller chooses, is recorded beside it.
 */
export function recordVerification(
  em: Em,
  actor: string,
  { workspaceId, startedAt, kind, ends = null }: Ended,
  { workspaces, wallets, transfers, flows, brokenRules, checkpoint }: VerifyReport,
): void {
  const ok = brokenRules.length === 0
  const checkpointId = checkpoint?.checkpointId ?? null
  const checkpointFault = checkpoint?.fault ?? null
  recordAction(em, {
    actor,
    action: actionOf[kind],
    workspaceId,
    target: workspaceId ?? 'all workspaces',
    after: { ok, startedAt, workspaces, wallets, transfers, flows, brokenRules, checkpointId, checkpointFault, ends },
  })
}

/** An action for each kind, so that the last whole verification is found among thousands of incremental ones. */
const actionOf = { WHOLE: 'ledger.verify', INCREMENTAL: 'ledger.verify-incremental' } as const

const verificationActions: readonly ListedAction[] = Object.values(actionOf)

const kindOf = ({ action }: CheckedAction): VerificationKind => (action === actionOf.WHOLE ? 'WHOLE' : 'INCREMENTAL')

/** The verifications that the audit has, newest first. */
export async function listVerifications(
  parts: Parts,
  listing: NumberedListing,
): Promise<{ items: VerificationRecord[]; next: number | null }> {
  const { records, next } = await listRecords(parts, verificationActions, listing)
  return { items: records.map(toVerification), next }
}

/** A verification of all workspaces that has ended, as the audit says under a valid MAC. */
export type EndedVerification = {
  kind: VerificationKind
  ok: boolean
  startedAt: Date
  endedAt: Date
  /** The digest of where it ended, if core ran it and found the ledger sound. */
  ends: string | null
  /** Flows that it read. */
  flows: number
}

/** The newest verifications, if there are any. */
export type LastVerifications = {
  whole: EndedVerification | null
  incremental: EndedVerification | null
  /** The newest one that was sound and says where it ended. */
  continued: EndedVerification | null
}

/** The last verifications of all workspaces. */
export async function findLastVerifications(parts: Parts): Promise<LastVerifications> {
  const read = async (kind: VerificationKind) => (await findGenuineRecords(parts, [actionOf[kind]])).map(toEnded)
  const [whole, incremental] = [await read('WHOLE'), await read('INCREMENTAL')]
  const sound = [whole, incremental].flatMap(ended => ended.find(({ ok, ends }) => ok && ends !== null) ?? [])
  const [continued = null] = sound.sort((a, b) => b.endedAt.getTime() - a.endedAt.getTime())
  return { whole: whole[0] ?? null, incremental: incremental[0] ?? null, continued }
}

function toEnded(action: CheckedAction): EndedVerification {
  const { ok, startedAt, ends, flows } = verification.parse(action.after)
  return { kind: kindOf(action), ok, startedAt: startedAt ?? action.at, endedAt: action.at, ends, flows }
}

/** The exports of checkpoints that the audit has, newest first. */
export async function listCheckpoints(
  parts: Parts,
  listing: NumberedListing,
): Promise<{ items: CheckpointRecord[]; next: number | null }> {
  const { records, next } = await listRecords(parts, ['ledger.checkpoint'], listing)
  return { items: records.map(toCheckpoint), next }
}

/** The last verification of all workspaces, of these kinds; null without any. */
export async function findLastVerification(
  parts: Parts,
  kinds: readonly VerificationKind[] = verificationKinds,
): Promise<VerificationRecord | null> {
  const actions = kinds.map(kind => actionOf[kind])
  const last = await findLast(parts, actions)
  return last && toVerification(last)
}

/** The last checkpoint of all workspaces; null without any. */
export async function findLastCheckpoint(parts: Parts): Promise<CheckpointRecord | null> {
  const last = await findLast(parts, ['ledger.checkpoint'])
  return last && toCheckpoint(last)
}

/** The last backup; null without any. */
export async function findLastBackup(parts: Parts): Promise<BackupRecord | null> {
  const last = await findLast(parts, ['system.backup'])
  return last && { ...commonOf(last), name: last.target, ...backup.parse(last.after) }
}

/** The newest record of all workspaces, also one that is not genuine: somebody wrote it, which operators must see. */
async function findLast({ reads, chainKey }: Parts, actions: readonly RecordedAction[]): Promise<CheckedAction | null> {
  const [last = null] = await findActionsOfNoWorkspace(reads, chainKey, actions, { limit: 1 })
  return last
}

async function listRecords(
  { reads, chainKey }: Parts,
  actions: readonly ListedAction[],
  { before, limit }: NumberedListing,
): Promise<{ records: CheckedAction[]; next: number | null }> {
  const found = await findCheckedActions(reads, chainKey, actions, { before, limit: limit + 1 })
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
  checkpointFault: z.string().nullable().catch(null),
  ends: z.string().nullable().catch(null),
})
const checkpoint = fields({ takenAt: time, wallets: count })
const backup = fields({ bytes: count })

function toVerification(action: CheckedAction): VerificationRecord {
  const { ends, checkpointId, checkpointFault, ...after } = verification.parse(action.after)
  // With a fault, the ledger was not compared with the whole checkpoint.
  const compared = checkpointFault === null ? checkpointId : null
  return { ...commonOf(action), kind: kindOf(action), ...after, checkpointId: compared }
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
