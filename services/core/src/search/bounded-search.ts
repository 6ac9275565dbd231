import { DomainError, searchLimitMs } from '@workspace-wallet/contract'
import { classifyDatabaseError } from '../database/errors.ts'
import { type Em, type Orm, transact } from '../database/orm.ts'
import type { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'

export type SearchParts = {
  orm: Orm
  /** Limits the searches of operators on connections for reads, by actor. */
  searches: WorkspaceConcurrencyLimit
}

/** An operator's search. `blamed`: the field to change if it takes too long. */
export type Search<Result> = { actor: string; blamed: string; read: (em: Em) => Promise<Result> }

/**
 * Runs a search in a transaction that only reads, and ends each of its statements after `searchLimitMs`. Unlike other statements of
 * core, it may read an index as a bitmap: BRIN indexes have no other way.
 *
 * @throws DomainError S012 TOO_EXPENSIVE; S002 if too many searches wait
 */
export function searchIn<Result>({ orm, searches }: SearchParts, search: Search<Result>): Promise<Result> {
  const { actor, blamed, read } = search
  return searches.run(actor, async () => {
    try {
      return await transact(orm, async em => {
        await em.execute(settings)
        return read(em)
      })
    } catch (error) {
      if (classifyDatabaseError(error) !== 'timeout') throw error
      throw tooExpensive(blamed)
    }
  })
}

export function tooExpensive(blamed: string): DomainError {
  return new DomainError('S012', { field: blamed, reason: 'TOO_EXPENSIVE', limit: searchLimitMs / 1000 })
}

const settings = `
  select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '${searchLimitMs}', true),
    set_config('enable_bitmapscan', 'on', true)`
