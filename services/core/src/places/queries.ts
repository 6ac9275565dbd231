import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { type FoundMove, moveOf } from './claims.ts'

/** The tables of objects that name their place, and the column with the workspace. */
const tables = {
  workspace: ['workspace', 'id'],
  apiKey: ['api_key', 'workspace_id'],
  wallet: ['wallet', 'workspace_id'],
  webhook: ['webhook', 'workspace_id'],
} as const
/** Objects that name their place. */
export type PlacedKind = keyof typeof tables

type Found = { id: string; move: FoundMove }

const findStatement = (kind: PlacedKind) => {
  const [table, workspaceId] = tables[kind]
  return statement<Found>(
    `find-placed-${table}`,
    `select o.id, ${moveOf(`o.${workspaceId}`)} as move from ${table} o where o.id = any ($1::uuid[])`,
  )
}

const statements: Record<PlacedKind, ReturnType<typeof findStatement>> = {
  workspace: findStatement('workspace'),
  apiKey: findStatement('apiKey'),
  wallet: findStatement('wallet'),
  webhook: findStatement('webhook'),
}

/** Those of these objects that a place has, with the last moves of their workspaces. */
export function findPlaced(db: Queryable, kind: PlacedKind, uuids: readonly string[]): Promise<Found[]> {
  return run(db, statements[kind], [plainArray(uuids)])
}

const findTransfersStatement = statement<{ id: string }>(
  'find-placed-transfer',
  `select distinct t.id from transfer t where t.id = any ($1::uuid[]) and t.workspace_id <> all ($2::uuid[])`,
)

/** Those of these transfers that a place has, except for those of some workspaces. */
export function findPlacedTransfers(
  db: Queryable,
  uuids: readonly string[],
  except: readonly string[],
): Promise<{ id: string }[]> {
  return run(db, findTransfersStatement, [plainArray(uuids), plainArray(except)])
}
