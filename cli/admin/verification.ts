/** Verifies the ledger, and describes the report for operators. */
import {
  type CheckpointFindings,
  countViolations,
  ledgerRules,
  listedViolations,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { type CoreClient, type VerifyProgress, verifyLedger } from '@workspace-wallet/core-client'
import { countOf } from '../command-line/sentence.ts'
import { readCheckpointFile } from './checkpoint-file.ts'
import type { Progress } from './progress.ts'
import { wasInterrupted } from './sentences.ts'
import { table } from './table.ts'

type Scope = {
  /** Limits the verification to this workspace. */
  workspaceId?: string | undefined
  /** A checkpoint file that the ledger must continue. */
  against?: string | undefined
  signal?: AbortSignal | undefined
}

export function verify(
  core: CoreClient,
  { workspaceId, against, signal }: Scope,
  progress: Progress,
): Promise<VerifyReport> {
  const checkpoint = against === undefined ? undefined : readCheckpointFile(against)
  return withProgress('verification', progress, onProgress =>
    verifyLedger(core, { workspaceId, checkpoint, onProgress, signal }),
  )
}

/**
 * Runs a streamed call and shows its progress.
 *
 * @param what the name of the call, for the error
 * @throws Error that says how to continue, if the response ended too early
 */
export async function withProgress<Result>(
  what: string,
  progress: Progress,
  run: (onProgress: (now: VerifyProgress) => void) => Promise<Result>,
): Promise<Result> {
  try {
    return await run(now => {
      if (now.kind === 'checkpoint') progress.show(now.wallets, null, 'wallets of the checkpoint uploaded')
      else progress.show(now.flows, now.totalFlows, 'flows')
    })
  } catch (error) {
    if (!wasInterrupted(error)) throw error
    throw new Error(`The connection to core was lost during the ${what}: run it again, and check the log of core.`, {
      cause: error,
    })
  }
}

export function describeReport(report: VerifyReport): string {
  const { workspaces, wallets, transfers, flows, holds, brokenRules, violations, notes, checkpoint } = report
  const counts = { workspace: workspaces, wallet: wallets, transfer: transfers, flow: flows, hold: holds }
  const scope = Object.entries(counts)
    .map(([noun, count]) => countOf(count, noun))
    .join(', ')
  const isSound = brokenRules.length === 0
  const comparison = checkpoint?.fault === null ? `\n${describeCheckpoint(checkpoint, isSound)}` : ''
  const listed = notes.map(({ object, definition }) => [object, definition])
  const toCompare =
    notes.length > 0 ? `\n\nCompare with what you expect in the database:\n\n${table(['OBJECT', 'WHAT'], listed)}` : ''
  if (isSound) return `The ledger is sound: ${scope}.${comparison}${toCompare}`
  const rules = brokenRules.map(({ rule, violations: found }) => [rule, `${found}`, ledgerRules[rule]])
  const rows = violations.map(({ rule, message, ids }) => [
    rule,
    Object.entries(ids)
      .map(([name, id]) => `${name} ${id}`)
      .join(', '),
    message,
  ])
  const isComplete = countViolations(brokenRules) === violations.length
  const first = isComplete ? '' : `The first ${listedViolations} violations of each rule:\n\n`
  return `${table(['BROKEN RULE', 'VIOLATIONS', 'WHAT IT SAYS'], rules)}\n\n${first}${table(['RULE', 'WHERE', 'WHAT'], rows)}\n\nChecked ${scope}.${comparison}${toCompare}`
}

function describeCheckpoint({ takenAt, workspaceId, wallets }: CheckpointFindings, isSound: boolean): string {
  const name = `the checkpoint of ${takenAt} (${workspaceId ?? 'all workspaces'}, ${countOf(wallets, 'wallet')})`
  return isSound ? `It continues ${name}: nothing recorded before it was changed or removed.` : `Compared with ${name}.`
}

/** One sentence for standard error if the verification failed. */
export function failureOf({ ok, brokenRules, checkpoint }: VerifyReport): string | undefined {
  if (ok) return undefined
  const found = countViolations(brokenRules)
  const broken = found > 0 ? `The ledger has ${countOf(found, 'violation')}: find the cause before you post again.` : ''
  const unusable = checkpoint?.fault
    ? `The checkpoint was not compared, because ${checkpoint.fault}: give the unchanged file, for the scope that it was taken of.`
    : ''
  return `${broken} ${unusable}`.trim()
}
