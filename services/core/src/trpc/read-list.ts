import type { Pool } from 'pg'
import type { Context } from './context.ts'

/** Reads a list: in its workspace's turn, on the connections for lists. */
export function readList<Result>(
  { core }: Context,
  workspaceId: string,
  read: (db: Pool) => Promise<Result>,
): Promise<Result> {
  return core.listTurns.take(workspaceId, () => read(core.lists))
}
