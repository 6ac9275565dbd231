import type { Uuid } from '@workspace-wallet/contract'
import type { Queryable } from '../../database/statement.ts'
import type { WorkspaceConcurrencyLimit } from '../../database/workspace-concurrency-limit.ts'
import { lockLedgers } from '../store/queries.ts'

/**
 * Waits for transactions that are writing to a ledger. Reads of a workspace that wait at the same time share one
 * connection, so that a workspace with a busy ledger leaves connections for the reads of others.
 */
export class LedgerWaits {
  readonly #db: Queryable
  readonly #limit: WorkspaceConcurrencyLimit
  /** By workspace: a wait that has not requested its lock yet, which others may share. */
  readonly #next = new Map<Uuid<'workspace'>, Promise<void>>()

  constructor(db: Queryable, limit: WorkspaceConcurrencyLimit) {
    this.#db = db
    this.#limit = limit
  }

  /**
   * Resolves when no transaction that holds the lock of this ledger now is in progress any more.
   *
   * @throws DomainError S002 if too many wait
   */
  wait(workspaceId: Uuid<'workspace'>): Promise<void> {
    const shared = this.#next.get(workspaceId)
    if (shared) return shared
    const stopSharing = () => {
      if (this.#next.get(workspaceId) === wait) this.#next.delete(workspaceId)
    }
    const wait = this.#limit.run(workspaceId, async () => {
      await null // Until `wait` is stored.
      stopSharing()
      // Outside a transaction, the lock is released at once.
      await lockLedgers(this.#db, [workspaceId])
    })
    this.#next.set(workspaceId, wait)
    wait.catch(stopSharing)
    return wait
  }
}
