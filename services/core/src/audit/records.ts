import type { KeyObject } from 'node:crypto'
import { type AuditAction, idFromUuid } from '@workspace-wallet/contract'
import { type Queryable, run, type Statement, statement } from '../database/statement.ts'
import type { AuditRow } from '../database/tables/audit.ts'
import { type FoundAction, readAction, selectAction } from './chain.ts'

/** An action, its number in the audit, and whether its MAC matches its content and the action before it. */
export type CheckedAction = Omit<AuditRow, 'workspaceId' | 'before' | 'after'> & {
  id: number
  workspaceId: string | null
  after: unknown
  isGenuine: boolean
}

type FoundRecord = FoundAction & { id: number }

/** The kinds of actions that have an index, and so can be found among millions of others: see database/migrations/initial/audit.ts. */
export type RecordedAction = Extract<AuditAction, 'ledger.verify' | 'ledger.checkpoint' | 'system.backup'>

// The kind is a constant, by which PostgreSQL recognizes the index.
function findActionsOf(action: RecordedAction) {
  return statement<FoundRecord>(
    `find-actions-${action}`,
    `select a.id, ${selectAction}
     from audit a
     where a.action = '${action}' and a.id < $1
     order by a.id desc limit $2`,
  )
}
const findStatements: Record<RecordedAction, Statement<FoundRecord>> = {
  'ledger.verify': findActionsOf('ledger.verify'),
  'ledger.checkpoint': findActionsOf('ledger.checkpoint'),
  'system.backup': findActionsOf('system.backup'),
}

/**
 * The newest actions of a kind, checked: the role of the service can append to the audit, but not with a valid MAC.
 *
 * @param before the number of an action; only earlier ones
 */
export async function findCheckedActions(
  db: Queryable,
  chainKey: KeyObject,
  action: RecordedAction,
  { before = Number.MAX_SAFE_INTEGER, limit }: { before?: number | undefined; limit: number },
): Promise<CheckedAction[]> {
  const rows = await run(db, findStatements[action], [before, limit])
  return rows.map(({ id, ...found }) => {
    const { action: row, isGenuine } = readAction(chainKey, found)
    const workspaceId = row.workspaceId && idFromUuid('workspace', row.workspaceId)
    return { ...row, id, workspaceId, after: JSON.parse(row.after ?? 'null'), isGenuine }
  })
}
