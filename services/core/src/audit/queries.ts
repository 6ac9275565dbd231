import { type AuditEntry, type AuditListing, type AuditPage, idFromUuid, uuidFromId } from '@workspace-wallet/contract'
import { Values } from '../database/lists/conditions.ts'
import { type Queryable, run, statement } from '../database/statement.ts'

/**
 * A page of the actions, newest first. Only what is asked for is in the statement, so that each filter finds its index. The
 * statement has no name: there are too many to keep on every connection.
 */
export async function listAudit(db: Queryable, listing: AuditListing): Promise<AuditPage> {
  const { limit, workspaceId } = listing
  const workspace = workspaceId === undefined ? undefined : uuidFromId('workspace', workspaceId)
  if (workspace === null) return { entries: [], next: null }
  const values = new Values(limit + 1)
  const conditions = [
    condition(values, 'workspace_id =', workspace, 'uuid'),
    condition(values, 'actor =', listing.actor, 'text'),
    condition(values, 'action =', listing.action, 'text'),
    condition(values, 'target =', listing.target, 'text'),
    condition(values, 'at >=', listing.from?.toISOString(), 'timestamptz'),
    condition(values, 'at <', listing.to?.toISOString(), 'timestamptz'),
    condition(values, 'id <', listing.before, 'bigint'),
  ]
  const where = conditions.flat().join(' and ') || 'true'
  const listStatement = statement<AuditEntry>(
    '',
    `select id, at, actor, action, workspace_id as "workspaceId", target, before, after
     from audit where ${where} order by id desc limit $1`,
  )
  const rows = await run(db, listStatement, values.bound)
  const entries = rows
    .slice(0, limit)
    .map(row => ({ ...row, workspaceId: row.workspaceId && idFromUuid('workspace', row.workspaceId) }))
  return { entries, next: rows.length > limit ? entries.at(-1)!.id : null }
}

function condition(values: Values, comparison: string, value: unknown, type: string): string[] {
  return value === undefined ? [] : [`${comparison} ${values.bind(value, type)}`]
}
