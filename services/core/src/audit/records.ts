import type { KeyObject } from 'node:crypto'
import { type AuditAction, idFromUuid } from '@workspace-wallet/contract'
import { type Queryable, run, type Statement, statement } from '../database/statement.ts'
import { type AuditRow, auditMac, emptyAuditMac } from './chain.ts'

/** An action, its number in the audit, and whether its MAC matches its content and the action before it. */
export type CheckedAction = Omit<AuditRow, 'workspaceId' | 'before' | 'after'> & {
  id: number
  workspaceId: string | null
  after: unknown
  isGenuine: boolean
}

type FoundAction = AuditRow & { id: number; mac: Buffer; previous: Buffer | null }

/** The kinds of actions that have an index, and so can be found among millions of others: see database/migrations/initial/audit.ts. */
export type RecordedAction = Extract<AuditAction, 'ledger.verify' | 'ledger.checkpoint' | 'system.backup'>

// The kind is a constant, by which PostgreSQL recognizes the index.
function findActionsOf(action: RecordedAction) {
  return statement<FoundAction>(
    `find-actions-${action}`,
    `select a.id, a.at, a.actor, a.action, a.workspace_id as "workspaceId", a.target, a.before::text, a.after::text,
       a.reason, a.request_id as "requestId", a.position, a.mac,
       case when a.workspace_id is null
         then (select p.mac from audit p where p.workspace_id is null and p.position = a.position - 1 limit 1)
         else (select p.mac from audit p where p.workspace_id = a.workspace_id and p.position = a.position - 1 limit 1)
       end as previous
     from audit a
     where a.action = '${action}' and a.id < $1
     order by a.id desc limit $2`,
  )
}
const findStatements: Record<RecordedAction, Statement<FoundAction>> = {
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
  return rows.map(row => {
    const { id, mac, previous, ...content } = row
    const isGenuine = auditMac(chainKey, content, previous ?? emptyAuditMac).equals(mac)
    const workspaceId = content.workspaceId && idFromUuid('workspace', content.workspaceId)
    return { id, ...content, workspaceId, after: JSON.parse(content.after ?? 'null'), isGenuine }
  })
}
