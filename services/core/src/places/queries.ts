import type { KeyObject } from 'node:crypto'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { apiKeyColumns, apiKeyMac } from '../database/tables/api-key.ts'
import {
  type Columns,
  type FoundRow,
  jsonOf,
  type RowOf,
  rowFrom,
  selectColumns,
  withMac,
} from '../database/tables/table.ts'
import { walletColumns, walletMac } from '../database/tables/wallet.ts'
import { webhookColumns, webhookMac } from '../database/tables/webhook.ts'
import { storedWorkspaceColumns, workspaceColumns, workspaceMac } from '../database/tables/workspace.ts'
import { claimIn, type FoundMove, moveOf } from './claims.ts'

/**
 * What a place has of an object. `isGenuine`: whether core wrote the row of the object and that of its workspace. `claim`: of the place on
 * that workspace (see claims.ts).
 */
export type PlacedRow = { id: string; isGenuine: boolean; claim: number }

/** The place by its number, and the key of all MACs. */
type In = { reads: Queryable; number: number; chainKey: KeyObject }
type Find = (place: In, uuids: readonly string[]) => Promise<PlacedRow[]>

/** Forged rows of any number of workspaces may have the same ID. */
const mostRows = 10_000

/** @param workspaceId the column with the workspace */
function finderIn<Of extends Columns>(
  table: string,
  workspaceId: string,
  columns: Of,
  macOf: (key: KeyObject, row: RowOf<Of>) => Buffer,
): Find {
  const stored = withMac(columns)
  type Found = FoundRow<typeof stored> & { workspace: FoundRow<typeof storedWorkspaceColumns> | null; move: FoundMove }
  const find = statement<Found>(
    `find-placed-${table}`,
    `select ${selectColumns(stored, 't')}, ${moveOf(`t.${workspaceId}`)} as move,
       (select ${jsonOf(storedWorkspaceColumns, 'w')} from workspace w where w.id = t.${workspaceId} limit 1) as workspace
     from ${table} t where t.id = any ($1::uuid[]) limit ${mostRows}`,
  )
  return async ({ reads, number, chainKey }, uuids) => {
    const rows = await run(reads, find, [plainArray(uuids)])
    return rows.map(({ workspace: foundWorkspace, move, ...found }) => {
      const row = rowFrom(stored, found as FoundRow<typeof stored>)
      const { id, mac } = row as unknown as { id: string; mac: Buffer }
      const workspace = foundWorkspace && rowFrom(storedWorkspaceColumns, foundWorkspace)
      const isGenuine =
        macOf(chainKey, row).equals(mac) &&
        workspace !== null &&
        workspaceMac(chainKey, workspace).equals(workspace.mac)
      return { id, isGenuine, claim: claimIn(chainKey, number, { workspace, move }) }
    })
  }
}

/** The rows with these IDs that a place has, of each kind of objects that name their place. */
export const findPlaced = {
  workspace: finderIn('workspace', 'id', workspaceColumns, workspaceMac),
  apiKey: finderIn('api_key', 'workspace_id', apiKeyColumns, apiKeyMac),
  wallet: finderIn('wallet', 'workspace_id', walletColumns, walletMac),
  webhook: finderIn('webhook', 'workspace_id', webhookColumns, webhookMac),
}
export type PlacedKind = keyof typeof findPlaced

const findTransfersStatement = statement<{ id: string }>(
  'find-placed-transfer',
  `select distinct t.id from transfer t where t.id = any ($1::uuid[]) and t.workspace_id <> all ($2::uuid[])`,
)

/** Those of these transfers that a place has, except for those of some workspaces. Their MACs are not checked. */
export function findPlacedTransfers(
  db: Queryable,
  uuids: readonly string[],
  except: readonly string[],
): Promise<{ id: string }[]> {
  return run(db, findTransfersStatement, [plainArray(uuids), plainArray(except)])
}
