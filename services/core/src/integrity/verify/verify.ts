import type { KeyObject } from 'node:crypto'
import type {
  DatabaseNote,
  Decimal,
  UploadedCheckpoint,
  Uuid,
  VerifyEvent,
  Violation,
} from '@workspace-wallet/contract'
import { classifyDatabaseError } from '../../database/errors.ts'
import { Snapshot } from '../../database/snapshot.ts'
import { checkAuditedRows } from './audited-rows.ts'
import { checkCatalog } from './catalog/catalog.ts'
import { checkMigratedRows } from './catalog/migrated-rows.ts'
import { readNotes } from './catalog/notes.ts'
import { checkRoles } from './catalog/roles.ts'
import { checkUnaltered, readCatalogVersion } from './catalog/unaltered.ts'
import { checkNumbers, countRows, type RowCounts } from './counts.ts'
import { Findings, publicId } from './findings/findings.ts'
import { checkHolds } from './holds.ts'
import { checkLimits } from './limits.ts'
import { checkLog } from './log.ts'
import { Lookahead, sortKey } from './lookahead.ts'
import { type FlowText, flowsInOrder, type WalletText, walletsInOrder } from './queries.ts'
import { checkAudit, checkSignedRows } from './rows.ts'
import { type CheckpointHead, UploadedCheckpointReader } from './uploaded-checkpoint.ts'
import { WalletReplay } from './wallet.ts'
import { checkWebhooks } from './webhooks.ts'

export type Verification = {
  databaseUrl: string
  chainKey: KeyObject
  /** The roles that may write to the database besides the service's own; null for the default (see checkRoles). */
  writers: readonly string[] | null
  /** A UUID; null for all workspaces. */
  workspaceId: Uuid<'workspace'> | null
  /** The ledger must continue it. */
  checkpoint: UploadedCheckpoint | null
}

/**
 * Checks every rule of the ledger (`ledgerRules`) on the stored rows: in one snapshot, in constant memory, without locks.
 * On a live system the snapshot has complete batches only, so there are no false findings.
 *
 * One pass in the order of wallets and sequences replays the chains, because PostgreSQL does not have the key. PostgreSQL
 * compares counters, names and numbers, one statement for each rule.
 */
export async function* verifyLedger({
  databaseUrl,
  chainKey,
  writers,
  workspaceId,
  checkpoint,
}: Verification): AsyncGenerator<VerifyEvent> {
  const snapshot = await Snapshot.open({ databaseUrl, chainKey }, 'core verify')
  try {
    const findings = new Findings()
    const uploaded = checkpoint && new UploadedCheckpointReader(snapshot, chainKey, checkpoint)
    const counts: RowCounts = { workspaces: 0, wallets: 0, transfers: 0, flows: 0, holds: 0, journalEntries: 0 }
    const version = await readCatalogVersion(snapshot)
    const notes: DatabaseNote[] = []
    try {
      await checkCatalog(snapshot, findings)
      notes.push(...(await checkRoles(snapshot, writers, findings)), ...(await readNotes(snapshot)))
      await checkMigratedRows(snapshot, chainKey, findings)
      yield* checkRows(snapshot, chainKey, workspaceId, findings, uploaded, counts)
    } catch (error) {
      // With another definition than ours, a table that cannot be read is a finding and not a failure.
      if (findings.ok || classifyDatabaseError(error) !== 'other') throw error
      findings.add({ rule: 'database-read', message: (error as Error).message, ids: {} })
    }
    const afterwards = await Snapshot.open({ databaseUrl, chainKey }, 'core verify')
    try {
      await checkUnaltered(version, afterwards, findings)
    } finally {
      await afterwards.close()
    }
    const { brokenRules, violations } = findings
    const about = uploaded ? { checkpoint: uploaded.findings } : {}
    const ok = findings.ok && !uploaded?.findings.fault
    yield { kind: 'result', report: { ok, ...counts, brokenRules, violations, notes, ...about } }
  } finally {
    await snapshot.close()
  }
}

/**
 * Checks the rows, without the definitions of the database.
 *
 * @param counts receives the number of rows that were read
 */
export async function* checkRows(
  snapshot: Snapshot,
  chainKey: KeyObject,
  workspaceId: Uuid<'workspace'> | null,
  findings: Findings,
  checkpoint: UploadedCheckpointReader | null,
  counts: RowCounts,
): AsyncGenerator<VerifyEvent> {
  Object.assign(counts, await countRows(snapshot, workspaceId))
  const totalFlows = counts.flows
  yield { kind: 'progress', flows: 0, totalFlows }
  const pass = new FlowPass(snapshot, chainKey, workspaceId, findings, checkpoint)
  for await (const flows of pass.run()) yield { kind: 'progress', flows, totalFlows }
  counts.flows = pass.flows
  if (pass.flows > 1 && findings.count('flow-chain') === pass.flows)
    findings.explain('flow-chain', 'This is true of every flow: were they posted with another LEDGER_CHAIN_KEY?')

  const scope = { snapshot, chainKey, workspaceId, findings }
  await runAll(snapshot, findings, [
    () => checkSignedRows(scope),
    () => checkAudit(scope),
    () => checkAuditedRows(scope),
    async () => checkpoint?.checkRows(findings),
    () => checkNumbers(snapshot, workspaceId, findings),
    () => checkLog(scope),
    () => checkHolds(snapshot, workspaceId, findings),
    () => checkLimits(snapshot, workspaceId, findings),
    () => checkWebhooks(snapshot, workspaceId, findings),
  ])
}

/** Runs all checks, also if one fails because of a row that it cannot read: that row must not hide what the others find. */
async function runAll(snapshot: Snapshot, findings: Findings, checks: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: Error[] = []
  for (const check of checks) {
    await snapshot.rows('savepoint before_check')
    try {
      await check()
    } catch (error) {
      if (classifyDatabaseError(error) !== 'other') throw error
      failures.push(error as Error)
      await snapshot.rows('rollback to savepoint before_check')
    }
  }
  // Without any finding, it is no row that somebody else wrote.
  if (findings.ok && failures[0]) throw failures[0]
  for (const { message } of failures) findings.add({ rule: 'database-read', message, ids: {} })
}

/** Merges wallets, flows and the heads of a checkpoint, all in the order of their keys. */
class FlowPass {
  flows = 0
  readonly #snapshot: Snapshot
  readonly #chainKey: KeyObject
  readonly #workspaceId: Uuid<'workspace'> | null
  readonly #findings: Findings
  readonly #wallets: Lookahead<WalletText>
  readonly #checkpointHeads: Lookahead<CheckpointHead>
  #replay: WalletReplay | null = null
  #workspace: string | null = null
  #currency: string | null = null
  #sums = new Map<string | null, Decimal>()

  constructor(
    snapshot: Snapshot,
    chainKey: KeyObject,
    workspaceId: Uuid<'workspace'> | null,
    findings: Findings,
    checkpoint: UploadedCheckpointReader | null,
  ) {
    this.#snapshot = snapshot
    this.#chainKey = chainKey
    this.#workspaceId = workspaceId
    this.#findings = findings
    this.#wallets = new Lookahead(walletsInOrder(snapshot, workspaceId))
    this.#checkpointHeads = new Lookahead(checkpoint ? checkpoint.heads() : noHeads())
  }

  /** Yields the number of flows read so far, after each batch. */
  async *run(): AsyncGenerator<number> {
    let key: string | null = null
    for await (const flows of flowsInOrder(this.#snapshot, this.#workspaceId)) {
      for (const flow of flows) {
        const next = sortKey(flow.workspaceId, flow.walletId)
        if (next !== key) {
          key = next
          await this.#goTo(flow, key)
        }
        this.#replay!.flow(flow)
      }
      this.flows += flows.length
      yield this.flows
    }
    await this.#passWallets(null)
    await this.#passCheckpointHead(null)
    this.#endWorkspace()
  }

  /** Ends the current wallet and begins the one that this flow names. */
  async #goTo({ workspaceId, walletId }: FlowText, key: string): Promise<void> {
    await this.#passWallets(key)
    const wallet = await this.#wallets.peek()
    const isFound = wallet !== undefined && sortKey(wallet.workspaceId, wallet.id) === key
    if (isFound) this.#wallets.take()
    await this.#begin(workspaceId, walletId, isFound ? wallet : null)
  }

  /** Ends the current wallet, and checks the wallets without flows before this key, or up to the end. */
  async #passWallets(key: string | null): Promise<void> {
    this.#endWallet()
    for (;;) {
      const wallet = await this.#wallets.peek()
      if (!wallet || (key !== null && sortKey(wallet.workspaceId, wallet.id) >= key)) return
      await this.#begin(wallet.workspaceId, wallet.id, wallet)
      this.#endWallet()
      this.#wallets.take()
    }
  }

  /** The head in the checkpoint with this key. Earlier heads are of wallets that no longer have a row or a flow. */
  async #passCheckpointHead(key: string | null): Promise<CheckpointHead | null> {
    for (;;) {
      const head = await this.#checkpointHeads.peek()
      const checkpointKey = head && sortKey(head.workspaceId, head.walletId)
      if (checkpointKey === undefined || (key !== null && checkpointKey > key)) return null
      this.#checkpointHeads.take()
      if (checkpointKey === key) return head!
      this.#findings.add(missingWallet(head!))
    }
  }

  async #begin(workspaceId: string | null, id: string | null, wallet: WalletText | null): Promise<void> {
    const checkpointHead = await this.#passCheckpointHead(sortKey(workspaceId, id))
    if (workspaceId !== this.#workspace) this.#endWorkspace()
    this.#workspace = workspaceId
    this.#currency = wallet?.currency ?? null
    this.#replay = new WalletReplay(this.#chainKey, this.#findings, workspaceId, id, wallet, checkpointHead)
  }

  #endWallet(): void {
    if (!this.#replay) return
    const sum = this.#replay.end()
    this.#replay = null
    this.#sums.set(this.#currency, sum.plus(this.#sums.get(this.#currency) ?? 0))
  }

  #endWorkspace(): void {
    const workspaceId = publicId('workspace', this.#workspace)
    for (const [currency, sum] of this.#sums)
      if (!sum.isZero()) {
        const message = `its flows in ${currency ?? 'no known currency'} sum to ${sum}`
        const ids = currency === null ? { workspaceId } : { workspaceId, currency }
        this.#findings.add({ rule: 'workspace-sum', message, ids })
      }
    this.#sums.clear()
  }
}

async function* noHeads(): AsyncGenerator<CheckpointHead[]> {}

function missingWallet({ workspaceId, walletId, sequence }: CheckpointHead): Violation {
  const ids = { workspaceId: publicId('workspace', workspaceId), walletId: publicId('wallet', walletId), sequence }
  return { rule: 'checkpoint-wallet', message: 'it is in the checkpoint but no longer exists', ids }
}
