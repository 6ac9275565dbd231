import type { KeyObject } from 'node:crypto'
import type { DatabaseNote, Uuid, VerifyEvent } from '@workspace-wallet/contract'
import { classifyDatabaseError } from '../../database/errors.ts'
import { Snapshot } from '../../database/snapshot.ts'
import { hideMoved } from '../moved.ts'
import { checkAudit } from './audit.ts'
import { checkAuditedRows } from './audited-rows.ts'
import { endsOf, readBaseline, type VerifiedEnd } from './baseline.ts'
import { checkCatalog } from './catalog/catalog.ts'
import { checkMigratedRows } from './catalog/migrated-rows.ts'
import { readNotes } from './catalog/notes.ts'
import { checkRoles } from './catalog/roles.ts'
import { checkUnaltered, readCatalogVersion } from './catalog/unaltered.ts'
import { checkNumbers, countRows, type RowCounts } from './counts.ts'
import { Findings } from './findings/findings.ts'
import { FlowPass } from './flow-pass.ts'
import { checkHolds } from './holds.ts'
import { checkLimits } from './limits.ts'
import { checkLog } from './log.ts'
import { checkPlacement } from './placement.ts'
import { checkSignedRows } from './rows.ts'
import { type Scope, scopeOf } from './scope.ts'
import { type PlacedCheckpoint, UploadedCheckpointReader } from './uploaded-checkpoint.ts'
import { checkWebhooks } from './webhooks.ts'

export type Verification = {
  databaseUrl: string
  /** The number of the place. */
  place: number
  chainKey: KeyObject
  /** The roles that may write to the database besides the service's own; null for the default (see checkRoles). */
  writers: readonly string[] | null
  /** A UUID; null for all workspaces. */
  workspaceId: Uuid<'workspace'> | null
  /** The ledger must continue it. */
  checkpoint: PlacedCheckpoint | null
  /**
   * For a verification that the next one can continue, which returns where it ends: the digest of where the last sound one ended, or null
   * to read everything.
   */
  since?: string | null
}

/** Where a sound verification ends comes before its result. */
export type VerificationEvent = VerifyEvent | { kind: 'ends'; ends: VerifiedEnd[] }

/**
 * Checks every rule of the ledger (`ledgerRules`) on the stored rows: in one snapshot, without locks, in memory that grows with the
 * number of workspaces only. On a live system the snapshot has complete batches only, so there are no false findings.
 *
 * One pass in the order of wallets and sequences replays the chains, because PostgreSQL does not have the key. PostgreSQL
 * compares counters, names and numbers, one statement for each rule.
 *
 * @throws BaselineChanged if an incremental verification cannot begin where the last one ended
 */
export async function* verifyLedger({
  databaseUrl,
  place,
  chainKey,
  writers,
  workspaceId,
  checkpoint,
  since,
}: Verification): AsyncGenerator<VerificationEvent> {
  const snapshot = await Snapshot.open({ databaseUrl, chainKey }, 'core verify')
  try {
    const findings = new Findings()
    const uploaded = checkpoint && new UploadedCheckpointReader(snapshot, chainKey, checkpoint)
    const counts: RowCounts = { workspaces: 0, wallets: 0, transfers: 0, flows: 0, holds: 0, journalEntries: 0 }
    const version = await readCatalogVersion(snapshot)
    await hideMoved(snapshot, chainKey, place)
    const notes: DatabaseNote[] = []
    const baseline = since ? await readBaseline(snapshot, since) : null
    const scope = scopeOf({ snapshot, place, chainKey, workspaceId, findings }, baseline)
    try {
      await checkCatalog(snapshot, findings)
      notes.push(...(await checkRoles(snapshot, writers, findings)), ...(await readNotes(snapshot)))
      await checkMigratedRows(snapshot, chainKey, findings)
      yield* checkRows(scope, uploaded, counts)
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
    // The caller asked whether the ledger continues the checkpoint. The audit records only whether the ledger is sound.
    const ok = findings.ok && !uploaded?.findings.fault
    if (ok && since !== undefined) for await (const ends of endsOf(scope)) yield { kind: 'ends', ends }
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
  scope: Scope,
  checkpoint: UploadedCheckpointReader | null,
  counts: RowCounts,
): AsyncGenerator<VerifyEvent> {
  const { snapshot, findings, extent } = scope
  // Without statistics, PostgreSQL would read a whole table to find its newest rows.
  if (extent === 'INCREMENTAL') await snapshot.rows('set local enable_seqscan = off')
  Object.assign(counts, await countRows(scope))
  const totalFlows = counts.flows
  yield { kind: 'progress', flows: 0, totalFlows }
  const pass = new FlowPass(scope, checkpoint)
  for await (const flows of pass.run()) yield { kind: 'progress', flows, totalFlows }
  counts.flows = pass.flows
  if (pass.flows > 1 && findings.count('flow-chain') === pass.flows)
    findings.explain('flow-chain', 'This is true of every flow: were they posted with another LEDGER_CHAIN_KEY?')

  await runAll(snapshot, findings, [
    () => checkSignedRows(scope),
    () => checkPlacement(scope),
    () => checkAudit(scope),
    () => checkAuditedRows(scope),
    async () => checkpoint?.checkRows(findings),
    () => checkNumbers(scope),
    () => checkLog(scope),
    () => checkHolds(scope),
    () => checkLimits(scope),
    () => checkWebhooks(scope),
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
