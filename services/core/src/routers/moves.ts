import {
  AdminError,
  beginMoveInput,
  changeMoveInput,
  type Id,
  type Move,
  moveInput,
  type Placement,
  placement,
  uuidFromId,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { idToFind } from '../database/types.ts'
import { requireEqual, tablesWith } from '../moves/comparison.ts'
import {
  arrive,
  beginArrival,
  confirmStop,
  giveUpArrival,
  leave,
  requireMovableStatus,
  stay,
  stop,
} from '../moves/operations.ts'
import { type Placed, readPlaced, toPlacement } from '../moves/placement.ts'
import type { CallContext, Core } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inAccessTransaction, inTransaction } from '../trpc/transactions.ts'

/**
 * Moves of workspaces between places, step by step (docs/scale.md). Between `begin` and `arrive`, the owner of the tables copies the
 * rows. Each step can be repeated: it finds what the one before has done.
 */
export const moves = router({
  find: operatorReadProcedure
    .input(moveInput)
    .output(placement)
    .query(async ({ ctx, input }) => toPlacement(await find(ctx, input))),

  begin: adminProcedure
    .input(beginMoveInput)
    .output(placement)
    .mutation(async ({ ctx, input }) => {
      const workspaceId = idToFind('workspace', input.workspaceId)
      const placed = await find(ctx, input)
      const { at, parts, move } = placed
      const target = ctx.places.all[input.place]
      if (!target) throw new AdminError('NOT_FOUND', `There is no place ${input.place}.`)
      if (at.place === target) throw new AdminError('NOT_ALLOWED', `${workspaceId} is in place ${input.place} already.`)
      if (move && move.phase !== 'ARRIVED') {
        if (move.phase === 'CANCELING' || move.to !== target.number)
          throw new AdminError(
            'NOT_ALLOWED',
            `${workspaceId} moves to place ${move.to} already: continue or cancel that.`,
          )
        return toPlacement(placed)
      }
      requireMovableStatus(at.ledger, workspaceId)
      const tables = await tablesWith(target, uuidFromId('workspace', workspaceId))
      if (tables.length > 0)
        throw new AdminError(
          'ALREADY_EXISTS',
          `Place ${target.number} has rows of ${workspaceId} already, in ${tables.join(', ')}.`,
        )
      const generation = Math.max(0, ...parts.map(part => part.move?.generation ?? 0)) + 1
      const step = { workspaceId, generation, from: at.place.number, to: target.number }
      await inTransaction(within(ctx, target, input), (em, actor) => beginArrival(em, { actor }, step))
      return toPlacement(await find(ctx, input))
    }),

  stop: adminProcedure
    .input(changeMoveInput)
    .output(placement)
    .mutation(async ({ ctx, input }) => {
      const placed = await find(ctx, input)
      const step = stepOf(placed, 'COPYING', 'STOPPED')
      const source = ctx.places.all[step.from]!
      const { chainKey } = source
      const reason = { requestId: ctx.requestId, reason: input.reason ?? null }
      const isStopped = step.phase === 'STOPPED'
      if (!isStopped)
        await inAccessTransaction(within(ctx, source, input), (em, actor) =>
          stop(em, { actor, chainKey }, step, reason),
        )
      const isConfirmed = isStopped && placed.parts[step.from]!.move!.at <= placed.parts[step.from]!.now
      if (!isConfirmed) await inTransaction(within(ctx, source, input), em => confirmStop(em, step))
      return toPlacement(await find(ctx, input))
    }),

  arrive: adminProcedure
    .input(changeMoveInput)
    .output(placement)
    .mutation(async ({ ctx, input }) => {
      const placed = await find(ctx, input)
      const step = stepOf(placed, 'STOPPED', 'ARRIVED')
      const [source, target] = [ctx.places.all[step.from]!, ctx.places.all[step.to]!]
      const { chainKey } = target
      if (step.phase === 'STOPPED') {
        requireTime(placed, step)
        await requireEqual(source, target, uuidFromId('workspace', step.workspaceId))
        await inAccessTransaction(within(ctx, target, input), (em, actor) => arrive(em, { actor, chainKey }, step))
      }
      // Another core, or this one before it was ended, may have decided it.
      if (step.mayRemoveAt === null)
        await inAccessTransaction(within(ctx, source, input), (em, actor) => leave(em, { actor }, step))
      return toPlacement(await find(ctx, input))
    }),

  cancel: adminProcedure
    .input(changeMoveInput)
    .output(placement)
    .mutation(async ({ ctx, input }) => {
      const placed = await find(ctx, input)
      const step = stepOf(placed, 'COPYING', 'STOPPED', 'CANCELING')
      const { workspaceId, generation, from, to } = step
      const isGivenUp = step.phase === 'CANCELING'
      const back = isGivenUp ? step : { workspaceId, generation: generation + 1, from: to, to: from }
      const [left, stays] = [ctx.places.all[back.from]!, ctx.places.all[back.to]!]
      const { chainKey } = stays
      const { reads } = left
      if (!isGivenUp)
        await inTransaction(within(ctx, left, input), (em, actor) =>
          giveUpArrival(em, { actor, chainKey, reads }, step, back),
        )
      await inAccessTransaction(within(ctx, stays, input), (em: Em, actor) => stay(em, { actor, chainKey }, back))
      return toPlacement(await find(ctx, input))
    }),
})

/** A transaction of this place, with the reason of the operator. */
function within(ctx: CallContext, core: Core, { reason }: { reason?: string | undefined }): CallContext {
  return { ...ctx, core, reason }
}

/** @throws AdminError NOT_ALLOWED if this core does not have all places */
async function find(ctx: CallContext, { workspaceId }: { workspaceId: string }): Promise<Placed<Core>> {
  if (ctx.places.isIncomplete)
    throw new AdminError(
      'NOT_ALLOWED',
      'This core has one of several places (DATABASE_PLACE): call a core that has all of them.',
    )
  return readPlaced(ctx.places.all, ctx.core, uuidFromId('workspace', idToFind('workspace', workspaceId)))
}

/** The move, if it is in one of these phases. @throws AdminError NOT_ALLOWED */
function stepOf({ move }: Placed<Core>, ...phases: Move['phase'][]): Move & { workspaceId: Id<'workspace'> } {
  if (!move || !phases.includes(move.phase))
    throw new AdminError(
      'NOT_ALLOWED',
      `The move is ${move?.phase ?? 'not begun'}, and this step is for ${phases.join(' or ')}.`,
    )
  return move as Move & { workspaceId: Id<'workspace'> }
}

/** @throws AdminError NOT_ALLOWED if a core may still use the workspace where it was */
function requireTime(placed: Placed<Core>, { mayArriveAt }: Move): void {
  const { now }: Placement = toPlacement(placed)
  if (mayArriveAt && now < mayArriveAt)
    throw new AdminError(
      'NOT_ALLOWED',
      `Cores may use what they know until ${mayArriveAt.toISOString()}: wait until then.`,
    )
}
