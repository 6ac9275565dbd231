import { randomUUID } from 'node:crypto'
import {
  AdminError,
  type CheckpointPart,
  checkpointInput,
  checkpointPartReceipt,
  checkpointRecords,
  type HaltedLedger,
  haltedLedgers,
  type Id,
  idFromUuid,
  listedHalted,
  listRecordsInput,
  preventsRepair,
  type ReopenEvent,
  type RepairEvent,
  reopenInput,
  repairInput,
  type Uuid,
  uploadCheckpointInput,
  uuidFromId,
  type VerifyEvent,
  verificationRecords,
  verifyInput,
} from '@workspace-wallet/contract'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import { idToFind } from '../database/types.ts'
import { createCheckpoint, isGenuine, uploadCheckpointPart } from '../integrity/checkpoints/checkpoint.ts'
import { removeUploads } from '../integrity/checkpoints/queries.ts'
import { listCheckpoints, listVerifications, recordVerification } from '../integrity/records.ts'
import { findHalted, haltClosed, reopenLedger } from '../integrity/repair/reopen.ts'
import { repairLedger } from '../integrity/repair/repair.ts'
import { mergeVerifications } from '../integrity/verify/merge.ts'
import { verifyInThread } from '../integrity/verify/thread.ts'
import type { PlacedCheckpoint } from '../integrity/verify/uploaded-checkpoint.ts'
import { countHaltedLedgers, findHaltedLedgers } from '../ledger/store/halt.ts'
import { mergeNumbered, takeInTurns } from '../places/merge.ts'
import { type CallContext, type Context, type Core, placesOf } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, homeAdminProcedure, homeReadProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'
import { Workspace } from '../workspaces/entities.ts'

/** `verify`, `reopen`, `repair` and `checkpoint` stream their responses for minutes: see streamedPaths in packages/core-client. */
export const ledger = router({
  verify: operatorReadProcedure.input(verifyInput).query(async ({ ctx, input, signal: caller }) => {
    const workspaceId = await workspaceOf(ctx, input.workspaceId)
    const signal = untilStopped(ctx, caller)
    const verifications = placesOf(ctx, input.workspaceId).map(core => {
      const place = core.number
      // A place that was added since is not in the checkpoint.
      const checkpoint = input.checkpoint && place < input.checkpoint.places ? { ...input.checkpoint, place } : null
      return recorded({ ...ctx, core }, workspaceId, verifyAlone(core, workspaceId, checkpoint, signal))
    })
    return mergeVerifications(verifications)
  }),

  verifications: homeReadProcedure
    .input(listRecordsInput)
    .output(verificationRecords)
    .query(async ({ ctx, input }) => {
      const { items, next } = await mergeNumbered(ctx.places.all, input, (place, before) =>
        listVerifications(place, { before, limit: input.limit }),
      )
      return { verifications: items, next }
    }),

  checkpoints: homeReadProcedure
    .input(listRecordsInput)
    .output(checkpointRecords)
    .query(async ({ ctx, input }) => {
      const { items, next } = await mergeNumbered(ctx.places.all, input, (place, before) =>
        listCheckpoints(place, { before, limit: input.limit }),
      )
      return { checkpoints: items, next }
    }),

  uploadCheckpoint: homeAdminProcedure
    .input(uploadCheckpointInput)
    .output(checkpointPartReceipt)
    .mutation(async ({ ctx: { places }, input: { uploadId, part } }) => {
      const place = places.all.find(({ number }) => number === part.place)
      // Nothing is compared with it.
      if (!place && places.isIncomplete) return { genuine: isGenuine(places.home.chainKey, part) }
      const { reads, chainKey } = place ?? places.home
      return { genuine: await uploadCheckpointPart(reads, chainKey, uploadId, part) }
    }),

  checkpoint: operatorReadProcedure
    .input(checkpointInput)
    .query(async ({ ctx, input, signal: caller }): Promise<AsyncGenerator<CheckpointPart, void>> => {
      const workspaceId = await workspaceOf(ctx, input.workspaceId)
      const signal = untilStopped(ctx, caller)
      const checkpointId = randomUUID()
      const places = placesOf(ctx, input.workspaceId)
      const parts = places.map(core => {
        const { databaseUrl, chainKey, number: place } = core
        const scope = { databaseUrl, chainKey, workspaceId, checkpointId, place, isLastPlace: core === places.at(-1) }
        return audited({ ...ctx, core }, workspaceId, createCheckpoint(scope, signal))
      })
      return oneForEach(ctx, inTurn(parts))
    }),

  halted: homeReadProcedure.output(haltedLedgers).query(async ({ ctx }) => {
    const { all } = ctx.places
    const found = await Promise.all(all.map(({ reads }) => findHaltedLedgers(reads, listedHalted)))
    const counts = await Promise.all(all.map(({ reads }) => countHaltedLedgers(reads)))
    return {
      ledgers: takeInTurns(found, listedHalted).map(toHalted).sort(byWorkspace),
      total: counts.reduce((sum, count) => sum + count, 0),
    }
  }),

  reopen: adminProcedure
    .input(reopenInput)
    .mutation(async ({ ctx, input: { workspaceId, force, reason }, signal: caller }) => {
      const id = await haltedFirst(ctx, workspaceId)
      const signal = untilStopped(ctx, caller)
      return verifyAndReopen({ ...ctx, reason }, id, force, signal)
    }),

  repair: adminProcedure.input(repairInput).mutation(async ({ ctx, input, signal: caller }) => {
    const id = await haltedFirst(ctx, input.workspaceId)
    return verifyAndRepair({ ...ctx, reason: input.reason }, id, input.dryRun, untilStopped(ctx, caller))
  }),
})

const toHalted = ({
  workspaceId,
  reason,
}: {
  workspaceId: Uuid<'workspace'>
  reason: string | null
}): HaltedLedger => ({
  workspaceId: idFromUuid('workspace', workspaceId),
  reason: reason ?? '',
})

/** As public IDs sort: in the order of their UUIDs. */
const byWorkspace = (a: HaltedLedger, b: HaltedLedger) => (a.workspaceId < b.workspaceId ? -1 : 1)

/** The ID of a halted workspace. @throws AdminError if it cannot be repaired or reopened */
async function haltedFirst(ctx: CallContext, text: string): Promise<Id<'workspace'>> {
  const { chainKey } = ctx.core
  const workspaceId = idToFind('workspace', text)
  await inTransaction(ctx, (em, actor) => haltClosed(em, { actor, chainKey }, workspaceId))
  await inTransaction(ctx, em => findHalted(em, workspaceId))
  return workspaceId
}

/** Aborted when the caller disconnects or core stops. */
function untilStopped({ core }: Context, caller: AbortSignal | undefined): AbortSignal {
  return caller ? AbortSignal.any([caller, core.stopping]) : core.stopping
}

/** The workspace; null for all of them. @throws AdminError NOT_FOUND */
async function workspaceOf({ core }: Context, workspaceId: string | undefined): Promise<Uuid<'workspace'> | null> {
  if (workspaceId === undefined) return null
  // Deleted workspaces have a history too.
  const id = idToFind('workspace', workspaceId)
  if ((await core.orm.em.fork().count(Workspace, { id })) === 0)
    throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  return uuidFromId('workspace', id)
}

const verifying = new WeakSet<Core>()

/** Before anything is read: calls that must wait for others keep no connection. @throws AdminError NOT_ALLOWED */
function requireIdle(core: Core): void {
  if (verifying.has(core))
    throw new AdminError('NOT_ALLOWED', 'This core already runs a verification: wait until it ends, or stop it.')
}

/** Runs one verification at a time: each uses a processor and a connection for minutes. */
async function* verifyAlone(
  core: Core,
  workspaceId: Uuid<'workspace'> | null,
  checkpoint: PlacedCheckpoint | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<VerifyEvent, void> {
  requireIdle(core)
  verifying.add(core)
  let result: VerifyEvent | undefined
  try {
    const { databaseUrl, number: place, chainKey, databaseWriters: writers } = core
    const verification = { databaseUrl, place, chainKey, writers, workspaceId, checkpoint }
    for await (const event of verifyInThread(verification, signal))
      if (event.kind === 'result') result = event
      else if (event.kind === 'progress') yield event
  } finally {
    verifying.delete(core)
    if (checkpoint) await removeUploads(core.reads, checkpoint.uploadId).catch(error => logLeftUpload(core, error))
  }
  // After the clean-up, so that the receiver of the result can start the next verification.
  if (result) yield result
}

/** The parts are removed with an upload a day later. */
function logLeftUpload(core: Core, error: unknown): void {
  core.log.warn({ err: error }, 'the uploaded parts of a checkpoint could not be removed after the verification')
}

/** Records the result in the audit before it is sent. A result that cannot be recorded is sent all the same. */
async function* recorded(
  ctx: CallContext,
  workspace: Uuid<'workspace'> | null,
  events: AsyncGenerator<VerifyEvent, void>,
): AsyncGenerator<VerifyEvent, void> {
  requireIdle(ctx.core)
  const startedAt = await databaseTime(ctx.core.orm.em.fork())
  const workspaceId = workspace && idFromUuid('workspace', workspace)
  for await (const event of events) {
    if (event.kind === 'result')
      await inTransaction(ctx, async (em, actor) =>
        recordVerification(em, actor, { workspaceId, startedAt, kind: 'WHOLE' }, event.report),
      ).catch(error => ctx.core.log.warn({ err: error }, 'a verification could not be recorded in the audit'))
    yield event
  }
}

async function* verifyAndReopen(
  ctx: CallContext,
  workspaceId: Id<'workspace'>,
  force: boolean,
  signal: AbortSignal,
): AsyncGenerator<ReopenEvent, void> {
  // The workspace is halted, so nothing is posted between the verification and the reopening.
  for await (const event of verifyAlone(ctx.core, uuidFromId('workspace', workspaceId), null, signal)) {
    if (event.kind === 'progress') {
      yield event
      continue
    }
    const { report } = event
    const reopened = report.ok || force
    const { chainKey } = ctx.core
    if (reopened) await inTransaction(ctx, (em, actor) => reopenLedger(em, { actor, chainKey }, workspaceId, report))
    yield { kind: 'result', reopened, report }
  }
}

/** Repairs rows only if all flows are undamaged, then verifies the workspace again and reopens it if it is sound. */
async function* verifyAndRepair(
  ctx: CallContext,
  workspaceId: Id<'workspace'>,
  dryRun: boolean,
  signal: AbortSignal,
): AsyncGenerator<RepairEvent, void> {
  const unchanged = { repaired: false, reopened: false, changes: [], moreChanges: 0 }
  for await (const event of verifyAlone(ctx.core, uuidFromId('workspace', workspaceId), null, signal)) {
    if (event.kind === 'progress') {
      yield event
      continue
    }
    const { report } = event
    if (report.brokenRules.some(({ rule }) => preventsRepair(rule))) {
      yield { kind: 'result', ...unchanged, report }
      return
    }
    const { chainKey, reads } = ctx.core
    const changes = await inTransaction(ctx, (em, actor) =>
      repairLedger(em, { actor, chainKey, reads }, workspaceId, report, dryRun),
    )
    if (dryRun) {
      yield { kind: 'result', ...unchanged, ...changes, report }
      return
    }
    for await (const event of verifyAndReopen(ctx, workspaceId, false, signal))
      yield event.kind === 'progress' ? event : { ...event, ...changes, repaired: true }
  }
}

/** The exports of checkpoints that run now, by who has called. */
const exporting = new WeakMap<Core, Map<string, object>>()

/** Runs one export at a time for each operator: each uses a connection of its own to the database. */
async function* oneForEach(
  { core, actor }: CallContext,
  parts: AsyncGenerator<CheckpointPart, void>,
): AsyncGenerator<CheckpointPart, void> {
  const exports = exporting.get(core) ?? new Map<string, object>()
  exporting.set(core, exports)
  if (exports.has(actor))
    throw new AdminError(
      'NOT_ALLOWED',
      'You already export a checkpoint from this core: wait until it ends, or stop it.',
    )
  exports.set(actor, parts)
  const end = () => {
    if (exports.get(actor) === parts) exports.delete(actor)
  }
  try {
    for await (const part of parts) {
      // With the last part, the caller may begin another export.
      if (part.last) end()
      yield part
    }
  } finally {
    end()
  }
}

async function* inTurn<Item>(sources: readonly AsyncIterable<Item>[]): AsyncGenerator<Item, void> {
  for (const source of sources) yield* source
}

/** Records the checkpoint in the audit of the place before its last part is sent, so that the audit has every complete checkpoint. */
async function* audited(
  ctx: CallContext,
  workspace: Uuid<'workspace'> | null,
  parts: AsyncGenerator<CheckpointPart, void>,
): AsyncGenerator<CheckpointPart, void> {
  let wallets = 0
  for await (const part of parts) {
    wallets += part.chains.length
    const { checkpointId, takenAt } = part
    if (part.lastOfPlace)
      await inTransaction(ctx, async (em, actor) =>
        recordAction(em, {
          actor,
          action: 'ledger.checkpoint',
          workspaceId: workspace && idFromUuid('workspace', workspace),
          target: checkpointId,
          after: { takenAt, wallets },
        }),
      )
    yield part
  }
}
