import type { Uuid } from '@workspace-wallet/contract'
import type { Queryable } from '../../database/statement.ts'
import { callingToken, type WorkspaceConcurrencyLimit } from '../../database/workspace-concurrency-limit.ts'
import { lockLedgers } from '../store/queries.ts'

/**
 * Waits for transactions that are writing to a ledger. Reads of a workspace that wait at the same time share one
 * connection, so that a workspace with a busy ledger leaves connections for the reads of others.
 */
export class LedgerWaits {
  readonly #db: Queryable
  readonly #limit: WorkspaceConcurrencyLimit
  /** By calling token and workspace, which have their own place in the queue: a wait that has not requested its lock yet. */
  readonly #next = new Map<string, Promise<void>>()

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
    const name = `${callingToken.getStore() ?? ''} ${workspaceId}`
    const shared = this.#next.get(name)
    if (shared) return shared
    const stopSharing = () => {
      if (this.#next.get(name) === wait) this.#next.delete(name)
    }
    const wait = this.#limit.run(workspaceId, async () => {
      await null // Until `wait` is stored.
      stopSharing()
      // Outside a transaction, the lock is released at once.
      await lockLedgers(this.#db, [workspaceId])
    })
    this.#next.set(name, wait)
    wait.catch(stopSharing)
    return wait
  }
}
