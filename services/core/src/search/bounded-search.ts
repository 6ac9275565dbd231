import { DomainError, idFromUuid, searchLimitMs } from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import { AuditEntry } from '../audit/entities.ts'
import { classifyDatabaseError } from '../database/errors.ts'
import { type Em, type Orm, transact } from '../database/orm.ts'
import type { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'
import { Journal } from '../events/entities.ts'
import { Hold } from '../holds/entities.ts'
import { findHidden } from '../places/claims.ts'
import type { Place } from '../places/places.ts'
import { Transfer } from '../transfers/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { Webhook } from '../webhooks/entities.ts'
import { Member, Workspace } from '../workspaces/entities.ts'

export type SearchParts = Pick<Place, 'number' | 'reads' | 'chainKey'> & {
  orm: Orm
  searches: WorkspaceConcurrencyLimit
  viewerCalls: WorkspaceConcurrencyLimit
}

/** The operator who searches, and the place on which the call has a slot of `viewerCalls` if it is that of a viewer. */
export type Searcher = { actor: string; token: { name: string; role: string }; core: object }

/** `blamed`: the field to change if the search takes too long. */
type Search<Result> = { blamed: string; read: (em: Em) => Promise<Result> }

/** An operator's search. @throws as `searchInSlot`; DomainError S002 if too many searches wait */
export function searchIn<Result>(place: SearchParts, by: Searcher, search: Search<Result>): Promise<Result> {
  return takeSlot(place, by, () => searchInSlot(place, search))
}

/**
 * Runs searches of an operator in a slot. Viewers take none of `searches`, so that admins do not wait for them, but one of
 * `viewerCalls` on each place.
 */
export function takeSlot<Result>(
  place: SearchParts,
  { actor, token, core }: Searcher,
  work: () => Promise<Result>,
): Promise<Result> {
  if (token.role !== 'viewer') return place.searches.run(actor, work)
  return place === core ? work() : place.viewerCalls.run(token.name, work)
}

/**
 * Runs a search in a transaction that only reads, and ends each of its statements after `searchLimitMs`. Unlike other statements of
 * core, it may read an index as a bitmap: BRIN indexes have no other way. It finds nothing of workspaces that are in another place.
 *
 * @throws DomainError S012 TOO_EXPENSIVE
 */
export async function searchInSlot<Result>(place: SearchParts, { blamed, read }: Search<Result>): Promise<Result> {
  try {
    return await transact(place.orm, async em => {
      await em.execute(settings)
      await hideMoved(em, place)
      return read(em)
    })
  } catch (error) {
    if (classifyDatabaseError(error) !== 'timeout') throw error
    throw tooExpensive(blamed)
  }
}

const entitiesOfWorkspaces = [ApiKey, AuditEntry, Hold, Journal, Member, Transfer, Wallet, Webhook]

/** Also of rows that are being copied to this place, and of those that a workspace has left. */
async function hideMoved(em: Em, place: SearchParts): Promise<void> {
  const hidden = (await findHidden(place.reads, place)).map(id => idFromUuid('workspace', id))
  if (hidden.length === 0) return
  const isHere = { $or: [{ workspaceId: null }, { workspaceId: { $nin: hidden } }] }
  em.addFilter({ name: 'isHere', cond: isHere, entity: entitiesOfWorkspaces, default: true })
  em.addFilter({ name: 'workspaceIsHere', cond: { id: { $nin: hidden } }, entity: Workspace, default: true })
}

export function tooExpensive(blamed: string): DomainError {
  return new DomainError('S012', { field: blamed, reason: 'TOO_EXPENSIVE', limit: searchLimitMs / 1000 })
}

const settings = `
  select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '${searchLimitMs}', true),
    set_config('enable_bitmapscan', 'on', true), set_config('enable_sort', 'on', true)`
