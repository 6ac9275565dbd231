import { resolve } from 'node:path'
import {
  type CheckpointFindings,
  type CheckpointPart,
  type LedgerChange,
  repairableRules,
  type VerifyReport,
} from '@workspace-wallet/contract'
import {
  type CoreClient,
  checkpointLines,
  reopenLedger,
  repairLedger,
  type VerifyProgress,
  verifyLedger,
} from '@workspace-wallet/core-client'
import { readCheckpointFile, writeCheckpointFile } from '../checkpoint-file.ts'
import { command } from '../command.ts'
import type { Progress } from '../progress.ts'
import { wasCutOff } from '../sentences.ts'
import { table } from '../table.ts'
import { parseFile } from '../values.ts'
import { workspace } from './id-flags.ts'

export const ledgerCommands = [
  command({
    noun: 'ledger',
    verb: 'verify',
    help: 'check all sums, sequences and chains of the ledger; exits with 1 if one is broken',
    flags: {
      workspace: { ...workspace, help: 'limit it to this workspace', required: false },
      against: {
        value: 'FILE',
        help: 'a checkpoint written by ledger checkpoint, which the ledger must continue',
        parse: parseFile,
      },
    },
    examples: ['', '--workspace wsp_…', '--against ledger-2026-11.checkpoint'],
    run: (core, { workspace: workspaceId, against }, progress) => verify(core, workspaceId, against, progress),
    print: printReport,
    complaint: complaintOf,
  }),
  command({
    noun: 'ledger',
    verb: 'halted',
    help: 'list workspaces whose ledger is halted because its rows were modified outside the service',
    flags: {},
    examples: [''],
    run: core => core.ledger.halted.query(),
    print: ({ ledgers }) =>
      ledgers.length > 0
        ? table(
            ['WORKSPACE', 'REASON'],
            ledgers.map(({ workspaceId, reason }) => [workspaceId, reason]),
          )
        : 'No workspace is halted.',
  }),
  command({
    noun: 'ledger',
    verb: 'reopen',
    help: 'verify the ledger of a halted workspace, and accept postings again if it is sound',
    flags: { workspace, force: { help: 'reopen it even if the verification fails' } },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force }, progress) {
      try {
        const { reopened, report } = await reopenLedger(core, { workspaceId, force }, now =>
          showProgress(progress, now),
        )
        return { workspaceId, reopened, ...report }
      } catch (error) {
        throw wasCutOff(error) ? cutOff('verification', error) : error
      }
    },
    print: ({ workspaceId, reopened, ...report }) =>
      `${printReport(report)}\n${workspaceId} ${reopened ? 'takes postings again' : 'stays halted'}.`,
    complaint: ({ workspaceId, reopened, violations, more }) =>
      reopened
        ? undefined
        : `${workspaceId} breaks its rules in ${violations.length + more} place(s): repair it first (ledger repair), or give --force.`,
  }),
  command({
    noun: 'ledger',
    verb: 'repair',
    help: "make a halted workspace's wallets and counters from its entries, and reopen it when it is sound",
    flags: { workspace, 'dry-run': { help: 'show what would be changed, and change nothing' } },
    examples: ['--workspace wsp_… --dry-run', '--workspace wsp_…'],
    async run(core, { workspace: workspaceId, 'dry-run': dryRun }, progress) {
      try {
        const result = await repairLedger(core, { workspaceId, dryRun }, now => showProgress(progress, now))
        return { workspaceId, dryRun, ...result }
      } catch (error) {
        throw wasCutOff(error) ? cutOff('repair', error) : error
      }
    },
    print: ({ workspaceId, repaired, reopened, changes, moreChanges, report }) =>
      [
        ...(changes.length > 0 ? [printChanges(changes, moreChanges)] : ['No row differs from what the entries say.']),
        ...(repaired ? [`Changed ${changes.length + moreChanges} row(s).`] : [printReport(report)]),
        `${workspaceId} ${reopened ? 'takes postings again' : 'stays halted'}.`,
      ].join('\n'),
    complaint: ({ workspaceId, dryRun, repaired, reopened, report }) => {
      if (reopened || (dryRun && report.brokenRules.every(rule => repairableRules.includes(rule)))) return undefined
      const damage = report.brokenRules.filter(rule => !repairableRules.includes(rule)).join(', ')
      return repaired
        ? `${workspaceId} was repaired and still breaks its rules (${report.brokenRules.join(', ')}): run ledger verify.`
        : `${workspaceId} cannot be repaired, because more than rows and counters is damaged (${damage}): put the entries back from a backup (docs/operations.md).`
    },
  }),
  command({
    noun: 'ledger',
    verb: 'checkpoint',
    help: 'write a signed file of the current end of every chain, for an auditor to keep',
    flags: {
      out: { value: 'FILE', help: 'the file to create; if not given, its name contains the time', parse: parseFile },
      workspace: { ...workspace, help: 'limit it to this workspace', required: false },
    },
    examples: ['--out ledger-2026-11.checkpoint', '--workspace wsp_…'],
    run: (core, { out, workspace: workspaceId }, progress) => checkpoint(core, out, workspaceId, progress),
    print: ({ file, workspaceId, wallets, takenAt, sha256 }) =>
      `${wallets} wallets of ${workspaceId ?? 'all workspaces'} are in the checkpoint of ${takenAt}.

File     ${file}
SHA-256  ${sha256}

Give it to somebody who cannot change the database. ledger verify --against ${file} shows that no history before it was changed.`,
  }),
]

async function verify(
  core: CoreClient,
  workspaceId: string | undefined,
  against: string | undefined,
  progress: Progress,
): Promise<VerifyReport> {
  try {
    return await verifyLedger(core, {
      workspaceId,
      checkpoint: against === undefined ? undefined : readCheckpointFile(against),
      onProgress: now => showProgress(progress, now),
    })
  } catch (error) {
    throw wasCutOff(error) ? cutOff('verification', error) : error
  }
}

function showProgress(progress: Progress, now: VerifyProgress): void {
  if (now.kind === 'checkpoint') progress.show(now.wallets, null, 'wallets of the checkpoint uploaded')
  else progress.show(now.flows, now.totalFlows, 'flows')
}

async function checkpoint(
  core: CoreClient,
  out: string | undefined,
  workspaceId: string | undefined,
  progress: Progress,
) {
  const file = resolve(out ?? `ledger-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}.checkpoint`)
  let wallets = 0
  let last: CheckpointPart | undefined
  async function* lines() {
    for await (const { part, line } of checkpointLines(core, { workspaceId })) {
      yield line
      wallets += part.chains.length
      last = part
      progress.show(wallets, null, 'wallets read')
    }
  }
  try {
    const sha256 = await writeCheckpointFile(file, lines())
    const { checkpointId, takenAt } = last!
    return { file, checkpointId, takenAt, workspaceId: last!.workspaceId, wallets, sha256 }
  } catch (error) {
    throw wasCutOff(error) ? cutOff('checkpoint', error) : error
  }
}

function printChanges(changes: LedgerChange[], more: number): string {
  const rows = changes.flatMap(({ target, before, after }) =>
    Object.keys(after)
      .filter(field => before[field] !== after[field])
      .map(field => [target, field, `${before[field]}`, `${after[field]}`]),
  )
  return `${table(['ROW', 'FIELD', 'IT SAYS', 'ITS ENTRIES SAY'], rows)}${more > 0 ? `\nand ${more} more rows` : ''}`
}

function cutOff(what: string, cause: unknown): Error {
  return new Error(`The ${what} was cut off before its end: run it again, and see the log of core.`, { cause })
}

function printReport({ workspaces, wallets, transfers, flows, violations, more, checkpoint }: VerifyReport): string {
  const scope = `${workspaces} workspace(s), ${wallets} wallets, ${transfers} transfers, ${flows} flows`
  const isSound = violations.length === 0
  const about = checkpoint?.fault === null ? `\n${printCheckpoint(checkpoint, isSound)}` : ''
  if (isSound) return `The ledger is sound: ${scope}.${about}`
  const rows = violations.map(({ rule, message, ids }) => [
    rule,
    Object.entries(ids)
      .map(([name, id]) => `${name} ${id}`)
      .join(', '),
    message,
  ])
  const rest = more > 0 ? `\nand ${more} more` : ''
  return `${table(['RULE', 'WHERE', 'WHAT'], rows)}${rest}\n\nChecked ${scope}.${about}`
}

function printCheckpoint({ takenAt, workspaceId, wallets }: CheckpointFindings, isSound: boolean): string {
  const taken = `the checkpoint of ${takenAt} (${workspaceId ?? 'all workspaces'}, ${wallets} wallets)`
  return isSound ? `It continues ${taken}: nothing before that was changed or cut off.` : `Compared with ${taken}.`
}

function complaintOf({ ok, violations, more, checkpoint }: VerifyReport): string | undefined {
  if (ok) return undefined
  const found = violations.length + more
  const fault = checkpoint?.fault
  const aboutCheckpoint = fault
    ? `The checkpoint proves nothing, because ${fault}: give the file as it was written, with the scope it was written for.`
    : ''
  if (found === 0) return aboutCheckpoint
  return `The ledger breaks its rules in ${found} place(s): post nothing until you know why. ${aboutCheckpoint}`.trimEnd()
}
