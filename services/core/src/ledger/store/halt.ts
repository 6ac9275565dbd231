import type { KeyObject } from 'node:crypto'
import { DomainError, idFromUuid, type Uuid } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { Pool, PoolClient } from 'pg'
import { coreActor } from '../../audit/actors.ts'
import { appendActions, lockAudit } from '../../audit/chain.ts'
import { runTransaction } from '../../database/one-place.ts'
import { runOn } from '../../database/run.ts'
import { type Queryable, run, statement } from '../../database/statement.ts'
import { ledgerMac } from '../../database/tables/ledger.ts'
import { WorkspaceConcurrencyLimit } from '../../database/workspace-concurrency-limit.ts'
import { changeLedgerStatus } from '../rows/functions.ts'
import { lockLedgers } from './queries.ts'
import { type Breach, ModifiedRow, type ModifiedTable } from './require-signed.ts'

/** What `haltIfModified` needs to halt a workspace. */
export type Halting = {
  halts: Pick<Halts, 'halt'>
  metrics: { modifiedRow(table: ModifiedTable): void }
}

const haltedRetrySeconds = 60

/**
 * Runs `work`. If it finds a row that was modified outside the service, the workspace is halted.
 *
 * @throws DomainError S002 instead of ModifiedRow
 */
export async function haltIfModified<Result>(
  { halts, metrics }: Halting,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ModifiedRow)) throw error
    metrics.modifiedRow(error.table)
    await halts.halt(error.breach)
    throw new DomainError('S002', { retryAfterSeconds: haltedRetrySeconds })
  }
}

/**
 * How long after a workspace was halted it is not halted again: whoever has the service's role can open it each time, and halting it adds
 * an audit entry and a line to the log. Its commands are refused meanwhile as well.
 */
const againMs = 1_000
/** Maximum number of workspaces whose last halt a core remembers. */
const recentLimit = 1_000

/**
 * Halts workspaces, two at a time. Whoever has the service's role can forge any number of workspaces, and hold the locks that
 * halting them waits for: only the calls to such a workspace wait for it.
 */
export class Halts {
  readonly #pool: Pool
  readonly #chainKey: KeyObject
  readonly #log: Log
  readonly #limit = new WorkspaceConcurrencyLimit({
    slots: 2,
    reservedSlots: 0,
    waitingPerWorkspace: 1,
    waiting: 1_000,
    waitMs: 10_000,
  })
  /** What is being halted, by workspace. */
  readonly #pending = new Map<Uuid<'workspace'>, Promise<void>>()
  /** When workspaces were last halted, on the clock of `performance.now()`, oldest first. */
  readonly #haltedAtMs = new Map<Uuid<'workspace'>, number>()

  constructor(pool: Pool, chainKey: KeyObject, log: Log) {
    this.#pool = pool
    this.#chainKey = chainKey
    this.#log = log
  }

  /**
   * Halts the ledger of a workspace until an operator reopens it, and logs the breach at level fatal. A ledger that is halted already,
   * or was halted within the last second, is not halted or logged again; a breach that cannot be halted is logged each time. Never
   * rejects.
   */
  halt(breach: Breach): Promise<void> {
    const { workspaceId } = breach
    const pending = this.#pending.get(workspaceId)
    if (pending) return pending
    if (performance.now() - (this.#haltedAtMs.get(workspaceId) ?? -againMs) < againMs) return Promise.resolve()
    const halting = this.#haltAndLog(breach).finally(() => this.#pending.delete(workspaceId))
    this.#pending.set(workspaceId, halting)
    return halting
  }

  /** Resolves when nothing is being halted. */
  async idle(): Promise<void> {
    await Promise.all(this.#pending.values())
  }

  async #haltAndLog({ workspaceId, reason }: Breach): Promise<void> {
    const found = { workspaceId: idFromUuid('workspace', workspaceId), reason }
    const haltOne = () => haltOnce(this.#pool, this.#chainKey, { workspaceId, reason })
    try {
      if (!(await this.#limit.run(workspaceId, haltOne))) return
      this.#remember(workspaceId)
      this.#log.fatal(found, 'ledger breach: this workspace takes no more postings; run ledger verify')
    } catch (error) {
      this.#log.fatal(
        { ...found, err: error },
        'ledger breach: this workspace could not be halted; the next posting to it will try again; run ledger verify',
      )
    }
  }

  #remember(workspaceId: Uuid<'workspace'>): void {
    this.#haltedAtMs.delete(workspaceId)
    this.#haltedAtMs.set(workspaceId, performance.now())
    const [first] = this.#haltedAtMs.keys()
    if (this.#haltedAtMs.size > recentLimit) this.#haltedAtMs.delete(first!)
  }
}

/** Returns whether this call halted the ledger: false when it was halted already, or closed by the service. */
async function haltOnce(pool: Pool, chainKey: KeyObject, breach: Breach): Promise<boolean> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    await client.query('begin')
    const isHalted = await runTransaction(pool, () => writeBreach(client, chainKey, breach))
    await client.query('commit')
    return isHalted
  } catch (error) {
    // Closing the connection rolls the transaction back.
    failure = error as Error
    throw error
  } finally {
    client.release(failure)
  }
}

async function writeBreach(client: PoolClient, chainKey: KeyObject, breach: Breach): Promise<boolean> {
  const { workspaceId, reason } = breach
  const [ledger] = await lockLedgers(client, [workspaceId])
  if (!ledger || ledger.status === 'HALTED') return false
  // A ledger row that was modified outside the service must not get a valid MAC by being halted.
  const isGenuine = ledgerMac(chainKey, ledger).equals(ledger.mac)
  // A workspace that moves is verified, with all its rows, when it has arrived.
  if ((ledger.status === 'CLOSED' || ledger.status === 'MOVING') && isGenuine) return false
  const halted = { status: 'HALTED' as const, haltReason: reason }
  // First: the audit of a ledger that somebody else has set to MOVING cannot be locked.
  await changeLedgerStatus(runOn(client), chainKey, ledger, halted, isGenuine)
  const heads = await lockAudit(runOn(client), [workspaceId])
  // A ledger that was forged without a workspace has no audit.
  if (heads.length === 0) return true
  const action = {
    actor: coreActor,
    action: 'ledger.halt' as const,
    workspaceId,
    target: idFromUuid('workspace', workspaceId),
  }
  const halting = { ...action, before: null, after: JSON.stringify({ reason }), reason: null, requestId: null }
  await appendActions(runOn(client), chainKey, heads, [halting])
  return true
}

/** Why a closed ledger counts as halted if its workspace is not deleted: core closes a ledger only with its workspace. */
export const closedOutside = 'the ledger was closed outside the service'

/** SQL: ledgers that are halted, or closed without the deletion of their workspace. */
const haltedLedgers = `
   from ledger l
   where l.status in ('CLOSED', 'HALTED')
     and (l.status = 'HALTED' or (select w.deleted_at is null from workspace w where w.id = l.workspace_id limit 1))`

const findHaltedStatement = statement<{ workspaceId: Uuid<'workspace'>; reason: string | null }>(
  'find-halted',
  `select l.workspace_id as "workspaceId", case l.status when 'HALTED' then l.halt_reason else '${closedOutside}' end as reason
   ${haltedLedgers} order by l.workspace_id limit $1`,
)

/**
 * Halted ledgers, which accept no postings until an operator reopens them, and closed ledgers whose workspace is not deleted. There is
 * a limit because whoever has the service's role can forge any number.
 */
export function findHaltedLedgers(
  db: Queryable,
  limit: number,
): Promise<{ workspaceId: Uuid<'workspace'>; reason: string | null }[]> {
  return run(db, findHaltedStatement, [limit])
}

const countHaltedStatement = statement<{ count: number }>('count-halted', `select count(*) as count ${haltedLedgers}`)

export async function countHaltedLedgers(db: Queryable): Promise<number> {
  const [row] = await run(db, countHaltedStatement, [])
  return row!.count
}
