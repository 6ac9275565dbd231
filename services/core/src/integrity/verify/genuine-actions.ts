import { auditRowsPerFetch, type FoundAction, readAction, selectActionOf } from '../../audit/chain.ts'
import type { TextRow } from '../../database/snapshot.ts'
import { type AuditRow, storedAuditColumns } from '../../database/tables/audit.ts'
import type { Scope } from './scope.ts'

/** A genuine action, and the value of an expression of SQL about it. */
export type KeyedAction = { action: AuditRow; key: TextRow[number] }

type ActionsQuery = {
  /** SQL: the rows of the audit to read, as an item of FROM. */
  from: string
  /** SQL: a text about such a row, by which the actions of a workspace are sorted before their positions. */
  key: string
  /** SQL: conditions; `$1` is the workspace, null for all. */
  where: string
  values?: readonly unknown[]
}

const names = [...Object.keys(storedAuditColumns), 'previous']

/**
 * Reads the actions whose MAC matches their content and the action before them. Whoever has the role of the service can append others,
 * which must neither hide what a verification finds nor fill its memory; `checkAudit` reports them. An action whose predecessor was
 * removed is skipped too, because nothing shows that the service wrote it.
 */
export async function* genuineActions(
  { snapshot, chainKey, workspaceId }: Pick<Scope, 'snapshot' | 'chainKey' | 'workspaceId'>,
  { from, key, where, values = [] }: ActionsQuery,
): AsyncGenerator<KeyedAction[]> {
  // Sorted before the JSON of an action, which may have half a megabyte, is read.
  const order = 'workspace_id, key collate "C", position'
  const sql = `
    select ${selectActionOf('{here}.audit')}, key
    from (
      select * from (select *, ${key} as key from ${from} given where ${where} offset 0) keyed order by ${order} offset 0) a
    order by ${order.replaceAll(/^|(?<=, )/g, 'a.')}`
  for await (const rows of snapshot.batches(sql, [workspaceId, ...values], auditRowsPerFetch))
    yield rows.flatMap(row => {
      const found = Object.fromEntries(names.map((name, at) => [name, row[at]])) as FoundAction
      const { action, isGenuine } = readAction(chainKey, found)
      return isGenuine ? [{ action, key: row[names.length]! }] : []
    })
}
