import {
  AdminError,
  accessLeaseMs,
  type Id,
  idFromUuid,
  type Move,
  type Placement,
  type Uuid,
} from '@workspace-wallet/contract'
import { type Queryable, run, statement } from '../database/statement.ts'
import type { LedgerRow } from '../database/tables/ledger.ts'
import type { WorkspaceMoveRow } from '../database/tables/workspace-move.ts'
import { findMove } from '../places/claims.ts'
import type { Place } from '../places/places.ts'

/**
 * How long after its stop a workspace may arrive: then no core that knows it only where it was uses what it knows. Cores forget it with
 * the next poll, and without polls after the lease (see `Places.of`). Clocks run at slightly different speeds.
 */
const forgottenAfterMs = accessLeaseMs + 500

/** How long after a workspace has left its rows may be removed: longer than any call takes that has begun to read them. */
const unusedAfterMs = 11_000

/** What a place has of a workspace. */
type Part<Each extends Place> = {
  place: Each
  move: WorkspaceMoveRow | null
  hasWorkspace: boolean
  ledger: LedgerRow['status'] | null
  now: Date
}

/** A workspace in all places. `at`: where it is now. */
export type Placed<Each extends Place> = {
  at: Part<Each>
  parts: readonly Part<Each>[]
  /** Its last move; null if it has never moved. */
  move: Move | null
}

const readPartStatement = statement<{ hasWorkspace: boolean; ledger: LedgerRow['status'] | null; now: Date }>(
  'read-part-of-workspace',
  `select exists (select from workspace where id = $1) as "hasWorkspace",
     (select status from ledger where workspace_id = $1 limit 1) as ledger, clock_timestamp() as now`,
)

/** Reads where a workspace is, and how far its last move is. @throws the error of a place that does not answer; AdminError NOT_FOUND */
export async function readPlaced<Each extends Place>(
  places: readonly Each[],
  current: Each,
  workspaceId: Uuid<'workspace'>,
): Promise<Placed<Each>> {
  const parts = await Promise.all(
    places.map(async place => {
      const move = await findMove(place.reads, place, workspaceId)
      const [part] = await run(place.reads as Queryable, readPartStatement, [workspaceId])
      return { place, move, ...part! }
    }),
  )
  const at = parts.find(({ place }) => place === current)!
  if (!at.hasWorkspace)
    throw new AdminError('NOT_FOUND', `There is no workspace ${idFromUuid('workspace', workspaceId)}.`)
  return { at, parts, move: lastMove(parts, idFromUuid('workspace', workspaceId)) }
}

function lastMove(parts: readonly Part<Place>[], workspaceId: Id<'workspace'>): Move | null {
  const known = parts.flatMap(({ move }) => move ?? [])
  const generation = Math.max(0, ...known.map(each => each.generation))
  const [last] = known.filter(each => each.generation === generation)
  if (!last) return null
  const { fromPlace: from, toPlace: to } = last
  const source = parts[from]?.move
  const target = parts[to]?.move
  const stateAt = (move: WorkspaceMoveRow | null | undefined) => (move?.generation === generation ? move.state : null)
  const hasArrived = stateAt(target) === 'PRESENT'
  const isStopped = stateAt(source) === 'LEAVING'
  const common = { workspaceId, generation, from, to, mayArriveAt: null, mayRemoveAt: null }
  // Also if the target has no genuine row of this move: then it can only be canceled (see giveUpArrival).
  if (isStopped && !hasArrived) return { ...common, phase: 'STOPPED', mayArriveAt: after(source!.at, forgottenAfterMs) }
  if (stateAt(target) === 'ARRIVING') return { ...common, phase: 'COPYING' }
  // A move that is canceled goes back with the next generation. Where it went to, the rows are given up first.
  if (!hasArrived) return { ...common, phase: 'CANCELING' }
  const hasLeft = stateAt(source) === 'LEFT'
  return { ...common, phase: 'ARRIVED', mayRemoveAt: hasLeft ? after(source!.at, unusedAfterMs) : null }
}

const after = (time: Date, ms: number) => new Date(time.getTime() + ms)

/** What callers learn of it. */
export function toPlacement<Each extends Place>({ at, parts, move }: Placed<Each>): Placement {
  const leaving = move ? parts[move.from] : undefined
  return { place: at.place.number, move, now: (leaving ?? at).now }
}
