import { DomainError, type Uuid } from '@workspace-wallet/contract'
import { batched } from '../../database/batched.ts'
import { plainArray, type Queryable, run, statement } from '../../database/statement.ts'

const rememberedWorkspaces = 100_000

const findLedgersStatement = statement<{ id: Uuid<'workspace'> }>(
  'find-workspaces-of-postings',
  'select workspace_id as id from ledger where workspace_id = any ($1::uuid[])',
)

const exists = batched({
  readMany: (reads: Queryable, ids: readonly Uuid<'workspace'>[]) =>
    run(reads, findLedgersStatement, [plainArray(ids)]),
  nameOf: { key: (id: Uuid<'workspace'>) => id, row: ({ id }) => id },
  resultOf: () => true,
})

/**
 * The workspaces that postings may wait for. Each workspace that waits has a share of the queue, so whoever could name workspaces that do
 * not exist would get any number of shares.
 */
export class KnownWorkspaces {
  readonly #reads: Queryable
  readonly #known = new Set<string>()

  constructor(reads: Queryable) {
    this.#reads = reads
  }

  /** Whether a workspace is known to exist. Otherwise `require` looks it up. */
  has(workspaceId: Uuid<'workspace'>): boolean {
    return this.#known.has(workspaceId)
  }

  /** @throws DomainError GA2032 if there is no such workspace */
  async require(workspaceId: Uuid<'workspace'>): Promise<void> {
    if (!(await exists(this.#reads, workspaceId))) throw new DomainError('GA2032')
    if (this.#known.size >= rememberedWorkspaces) this.#known.clear()
    this.#known.add(workspaceId)
  }
}
