import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { type FoundRow, jsonOf, rowFrom, selectColumns, type WithMac } from '../database/tables/table.ts'
import type { WorkspaceRow } from '../database/tables/workspace.ts'
import {
  storedWorkspaceMoveColumns,
  type WorkspaceMoveRow,
  workspaceMoveMac,
} from '../database/tables/workspace-move.ts'

/** SQL: the last move of the workspace in the rows `alias` as JSON, null without any. `claimIn` reads it. */
export const moveOf = (workspaceId: string) => `(
  select ${jsonOf(storedWorkspaceMoveColumns, 'm')} from workspace_move m where m.workspace_id = ${workspaceId} limit 1)`
export type FoundMove = FoundRow<typeof storedWorkspaceMoveColumns> | null

/** The claim of a place that has rows of a workspace which is elsewhere. */
export const notHere = -1

/** What a place has of a workspace: its row, null without one, and its last move. */
type Held = { workspace: WorkspaceRow | null; move: FoundMove }

/**
 * How strong the claim of a place is that a workspace is there, if the place has its rows: the strongest one is valid. It rises with
 * each move. Without a move that core wrote for this place, only the place has a claim that the workspace was created in: rows have the
 * same MAC key in all places, so somebody could copy them from one into another.
 *
 * @param place the number of the place
 */
export function claimIn(chainKey: KeyObject, place: number, { workspace, move: found }: Held): number {
  const move = found && rowFrom(storedWorkspaceMoveColumns, found)
  if (move && isGenuineIn(chainKey, place, move)) return claimOf(move)
  return workspace && workspace.createdIn !== place ? notHere : 0
}

/** The claim of a place by a move alone: 0 if core did not write it for this place. */
export function claimOfRow(chainKey: KeyObject, place: number, move: WithMac<WorkspaceMoveRow>): number {
  return isGenuineIn(chainKey, place, move) ? claimOf(move) : 0
}

function isGenuineIn(chainKey: KeyObject, place: number, move: WithMac<WorkspaceMoveRow>): boolean {
  const isArrival = move.state === 'ARRIVING' || move.state === 'PRESENT'
  return place === (isArrival ? move.toPlace : move.fromPlace) && workspaceMoveMac(chainKey, move).equals(move.mac)
}

function claimOf({ state, generation }: WorkspaceMoveRow): number {
  if (state === 'PRESENT') return 2 * generation
  // Until it has arrived with this generation.
  return state === 'LEAVING' ? 2 * generation - 1 : notHere
}

const lowestId = '00000000-0000-0000-0000-000000000000' as Uuid<'workspace'>
const hiddenRows = 1_000
/** How long a call looks for them. In this time it reads tens of thousands of rows; the service writes one for each move. */
const findHiddenMs = 500

const findHiddenStatement = statement<FoundRow<typeof storedWorkspaceMoveColumns>>(
  'find-hidden-workspaces',
  `select ${selectColumns(storedWorkspaceMoveColumns, 'm')} from workspace_move m
   where m.state in ('ARRIVING', 'LEFT') and m.workspace_id > $1 order by m.workspace_id limit ${hiddenRows}`,
)

/**
 * The workspaces whose rows in a place are not used: they have not arrived yet, or they have left. For lists of operators: if somebody has
 * written so many other rows that the search takes too long, some are not found, and lists show what has remained of them.
 */
export async function findHidden(
  db: Queryable,
  { chainKey, number }: { chainKey: KeyObject; number: number },
): Promise<Uuid<'workspace'>[]> {
  const hidden: Uuid<'workspace'>[] = []
  const untilMs = performance.now() + findHiddenMs
  for (let after = lowestId; ; ) {
    const rows = await run(db, findHiddenStatement, [after])
    const moves = rows.map(found => rowFrom(storedWorkspaceMoveColumns, found))
    for (const move of moves) if (claimOfRow(chainKey, number, move) === notHere) hidden.push(move.workspaceId)
    if (moves.length < hiddenRows || performance.now() > untilMs) return hidden
    after = moves.at(-1)!.workspaceId
  }
}

const findMovesStatement = statement<FoundRow<typeof storedWorkspaceMoveColumns>>(
  'find-moves',
  `select ${selectColumns(storedWorkspaceMoveColumns, 'm')} from workspace_move m where m.workspace_id = any ($1::uuid[])`,
)

/** Those of these workspaces that have left a place, and when: their rows may be removed there. */
export async function findLeft(
  db: Queryable,
  { chainKey, number }: { chainKey: KeyObject; number: number },
  workspaceIds: readonly Uuid<'workspace'>[],
): Promise<Map<Uuid<'workspace'>, Date>> {
  const rows = await run(db, findMovesStatement, [plainArray(workspaceIds)])
  const moves = rows.map(found => rowFrom(storedWorkspaceMoveColumns, found))
  const left = moves.filter(move => move.state === 'LEFT' && isGenuineIn(chainKey, number, move))
  return new Map(left.map(({ workspaceId, at }) => [workspaceId, at]))
}

/** The last move of a workspace to a place or away from it; null without one that core wrote for this place. */
export async function findMove(
  db: Queryable,
  { chainKey, number }: { chainKey: KeyObject; number: number },
  workspaceId: Uuid<'workspace'>,
): Promise<WorkspaceMoveRow | null> {
  const [found] = await run(db, findMovesStatement, [plainArray([workspaceId])])
  const move = found && rowFrom(storedWorkspaceMoveColumns, found)
  return move && isGenuineIn(chainKey, number, move) ? move : null
}
