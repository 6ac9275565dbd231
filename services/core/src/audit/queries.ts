import type { KeyObject } from 'node:crypto'
import {
  type AuditAction,
  type AuditListing,
  type AuditEntry as AuditRecord,
  idFromUuid,
} from '@workspace-wallet/contract'
import { kyselyOf, type Orm } from '../database/orm.ts'
import { type Queryable, timeText } from '../database/statement.ts'
import { idToFind } from '../database/types.ts'
import { findHidden } from '../places/claims.ts'
import { AuditEntry } from './entities.ts'
import { findActions } from './records.ts'

type Parts = { orm: Orm; reads: Queryable; number: number; chainKey: KeyObject }

/**
 * A page of the actions, newest first. The statement contains only the filters that were given, so each uses its index. It finds the
 * numbers; the actions are then read a few at a time.
 */
export async function listAudit(
  { orm, reads, number, chainKey }: Parts,
  before: number | undefined,
  listing: AuditListing,
): Promise<{ items: AuditRecord[]; next: number | null }> {
  const { limit, workspaceId, actor, action, target, requestId, from, to } = listing
  let query = kyselyOf(orm.em.fork(), AuditEntry)
    .selectFrom('AuditEntry')
    .select('id')
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (workspaceId !== undefined) query = query.where('workspaceId', '=', idToFind('workspace', workspaceId))
  else {
    const hidden = (await findHidden(reads, { number, chainKey })).map(id => idFromUuid('workspace', id))
    if (hidden.length > 0)
      query = query.where(entry => entry.or([entry('workspaceId', 'is', null), entry('workspaceId', 'not in', hidden)]))
  }
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (action !== undefined) query = query.where('action', '=', action as AuditAction)
  if (target !== undefined) query = query.where('target', '=', target)
  if (requestId !== undefined) query = query.where('requestId', '=', requestId)
  if (from) query = query.where('at', '>=', storable(from))
  if (to) query = query.where('at', '<', storable(to))
  if (before !== undefined) query = query.where('id', '<', before)
  const ids = (await query.execute()).map(({ id }) => id)
  const items = await findActions(reads, chainKey, ids.slice(0, limit))
  return { items, next: ids.length > limit ? ids[limit - 1]! : null }
}

/** The time that PostgreSQL compares with those of entries: its range is smaller than that of Date. */
function storable(time: Date): Date {
  return new Date(timeText(time))
}
