import { z } from 'zod'
import { reason } from './text.ts'

/**
 * How far the last move of a workspace is (docs/scale.md). COPYING: its rows are copied, and it is used where it is. STOPPED: nothing of
 * it changes until it has arrived. ARRIVED: it is used in the other place. CANCELING: it goes on where it was, once it is canceled there.
 */
export const movePhases = ['COPYING', 'STOPPED', 'ARRIVED', 'CANCELING'] as const

/** `from` and `to`: the numbers of the places. Times are by the clock of the place that it leaves. A canceled move is one back. */
export const move = z.object({
  workspaceId: z.string(),
  phase: z.enum(movePhases),
  /** Counts the moves of the workspace. */
  generation: z.int(),
  from: z.int(),
  to: z.int(),
  /** Until then, cores may still use what they knew before it stopped; null unless it is STOPPED. */
  mayArriveAt: z.date().nullable(),
  /** Until then, cores may still read in the place that it has left; null until it has ARRIVED and left. */
  mayRemoveAt: z.date().nullable(),
})
export type Move = z.infer<typeof move>

export const moveInput = z.object({ workspaceId: z.string() })
export const changeMoveInput = moveInput.extend({ reason: reason.optional() })
export const beginMoveInput = changeMoveInput.extend({ place: z.int().min(0) })
/** `place`: where the workspace is now. `move`: its last move; null if it has never moved. `now`: of the place that it leaves or has left. */
export const placement = z.object({ place: z.int(), move: move.nullable(), now: z.date() })
export type Placement = z.infer<typeof placement>
