import { type AuditAction, type AuditListing, type AuditPage, idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { type Em, kyselyOf } from '../database/orm.ts'
import { timeText } from '../database/statement.ts'
import { idToFind } from '../database/types.ts'
import { AuditEntry } from './entities.ts'

/** A page of the actions, newest first. The statement contains only the filters that were given, so each uses its index. */
export async function listAudit(em: Em, listing: AuditListing): Promise<AuditPage> {
  const { limit, workspaceId, actor, action, target, requestId, from, to, before } = listing
  let query = kyselyOf(em, AuditEntry)
    .selectFrom('AuditEntry')
    .select([
      'id',
      'at',
      'actor',
      'action',
      'workspaceId as workspace',
      'target',
      'reason',
      'requestId',
      'before',
      'after',
    ])
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (workspaceId !== undefined) query = query.where('workspaceId', '=', idToFind('workspace', workspaceId))
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (action !== undefined) query = query.where('action', '=', action as AuditAction)
  if (target !== undefined) query = query.where('target', '=', target)
  if (requestId !== undefined) query = query.where('requestId', '=', requestId)
  if (from) query = query.where('at', '>=', storable(from))
  if (to) query = query.where('at', '<', storable(to))
  if (before !== undefined) query = query.where('id', '<', before)
  const rows = await query.execute()
  const entries = rows.slice(0, limit).map(({ workspace, reason = null, requestId = null, ...row }) => ({
    ...row,
    reason,
    requestId,
    // Not converted, because of its alias: see `kyselyOf`.
    workspaceId: workspace ? idFromUuid('workspace', workspace as string as Uuid<'workspace'>) : null,
  }))
  return { entries, next: rows.length > limit ? entries.at(-1)!.id : null }
}

/** The time that PostgreSQL compares with those of entries: its range is smaller than that of Date. */
function storable(time: Date): Date {
  return new Date(timeText(time))
}
