import { resolve } from 'node:path'
import {
  type CheckpointPart,
  countViolations,
  isForgedAuditOnly,
  type LedgerChange,
  preventsRepair,
} from '@workspace-wallet/contract'
import { type CoreClient, checkpointLines, reopenLedger, repairLedger } from '@workspace-wallet/core-client'
import { countOf } from '../../command-line/sentence.ts'
import { command } from '../command.ts'
import { writeNewFile } from '../new-file.ts'
import type { Progress } from '../progress.ts'
import { table } from '../table.ts'
import { parseFile } from '../values.ts'
import { describeReport, failureOf, verify, withProgress } from '../verification.ts'
import { reason, workspace } from './id-flags.ts'

export const ledgerCommands = [
  command({
    noun: 'ledger',
    verb: 'verify',
    help: 'check the sums, sequences and chains of the ledger; exits with 1 if it finds a violation',
    flags: {
      workspace: { ...workspace, help: 'limit it to this workspace', required: false },
      against: {
        value: 'FILE',
        help: 'a checkpoint written by ledger checkpoint, which the ledger must continue',
        parse: parseFile,
      },
    },
    examples: ['', '--workspace wsp_…', '--against ledger-2026-11.checkpoint'],
    run: (core, { workspace: workspaceId, against }, progress) => verify(core, { workspaceId, against }, progress),
    print: describeReport,
    failure: failureOf,
  }),
  command({
    noun: 'ledger',
    verb: 'halted',
    help: 'list workspaces whose ledger is halted because its rows were modified outside the service',
    flags: {},
    examples: [''],
    run: core => core.ledger.halted.query(),
    print: ({ ledgers, total }) => {
      if (total === 0) return 'No workspace is halted.'
      const rows = ledgers.map(({ workspaceId, reason }) => [workspaceId, reason])
      const more = total > ledgers.length ? `\n${total - ledgers.length} more are not listed.` : ''
      return table(['WORKSPACE', 'REASON'], rows) + more
    },
  }),
  command({
    noun: 'ledger',
    verb: 'reopen',
    help: 'verify the ledger of a halted workspace, and reopen it for postings if it is sound',
    flags: { workspace, force: { help: 'reopen it even if the verification fails' }, reason },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force, reason }, progress) {
      const { reopened, report } = await withProgress('verification', progress, onProgress =>
        reopenLedger(core, { workspaceId, force, reason }, onProgress),
      )
      return { workspaceId, reopened, ...report }
    },
    print: ({ workspaceId, reopened, ...report }) => `${describeReport(report)}\n${statusLine(workspaceId, reopened)}`,
    failure: ({ workspaceId, reopened, brokenRules }) =>
      reopened
        ? undefined
        : `The ledger of ${workspaceId} has ${countOf(countViolations(brokenRules), 'violation')}: run ledger repair first, or add --force.`,
  }),
  command({
    noun: 'ledger',
    verb: 'repair',
    help: "rebuild a halted workspace's wallets and counters from its flows, holds and journal, and reopen it if it is sound",
    flags: { workspace, 'dry-run': { help: 'show the changes without making them' }, reason },
    examples: ['--workspace wsp_… --dry-run', '--workspace wsp_…'],
    async run(core, { workspace: workspaceId, 'dry-run': dryRun, reason }, progress) {
      const result = await withProgress('repair', progress, onProgress =>
        repairLedger(core, { workspaceId, dryRun, reason }, onProgress),
      )
      return { workspaceId, dryRun, ...result }
    },
    print: ({ workspaceId, repaired, reopened, changes, moreChanges, report }) =>
      [
        ...(changes.length > 0
          ? [printChanges(changes, moreChanges)]
          : ['Every row agrees with entries, holds and journal.']),
        repaired ? `Changed ${countOf(changes.length + moreChanges, 'row')}.` : describeReport(report),
        statusLine(workspaceId, reopened),
      ].join('\n'),
    failure: ({ workspaceId, dryRun, repaired, reopened, report }) => {
      const brokenRules = report.brokenRules.map(({ rule }) => rule)
      const beyondRepair = brokenRules.filter(preventsRepair)
      if (reopened || (dryRun && beyondRepair.length === 0)) return undefined
      if (repaired && isForgedAuditOnly(brokenRules))
        return `${workspaceId} was repaired and is still halted, because its audit has entries that the service did not write (${brokenRules.join(', ')}). Read "After forged audit entries" in docs/operations.md, then run ledger reopen --force.`
      return repaired
        ? `${workspaceId} was repaired but still breaks these rules: ${brokenRules.join(', ')}. Run ledger verify.`
        : `${workspaceId} cannot be repaired, because these rules are broken (${beyondRepair.join(', ')}): restore the rows from a backup (see docs/operations.md).`
    },
  }),
  command({
    noun: 'ledger',
    verb: 'checkpoint',
    help: 'write the current end of every chain to a signed file, for an auditor to keep',
    flags: {
      out: { value: 'FILE', help: 'the file to create (default: a name with the current time)', parse: parseFile },
      workspace: { ...workspace, help: 'limit it to this workspace', required: false },
    },
    examples: ['--out ledger-2026-11.checkpoint', '--workspace wsp_…'],
    run: (core, { out, workspace: workspaceId }, progress) => checkpoint(core, out, workspaceId, progress),
    print: ({ file, workspaceId, wallets, takenAt, sha256 }) =>
      `Wrote a checkpoint of ${countOf(wallets, 'wallet')} in ${workspaceId ?? 'all workspaces'}, taken at ${takenAt}.

File     ${file}
SHA-256  ${sha256}

Give the file to somebody who cannot change the database. To check that nothing recorded before was changed, run
ledger verify --against ${file}`,
  }),
]

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
  return withProgress('checkpoint', progress, async () => {
    const sha256 = await writeNewFile(file, 'checkpoints', lines())
    const { checkpointId, takenAt } = last!
    return { file, checkpointId, takenAt, workspaceId: last!.workspaceId, wallets, sha256 }
  })
}

function statusLine(workspaceId: string, reopened: boolean): string {
  return reopened ? `Workspace ${workspaceId} is open again.` : `Workspace ${workspaceId} is still halted.`
}

function printChanges(changes: LedgerChange[], more: number): string {
  const rows = changes.flatMap(({ target, before, after }) =>
    Object.keys(after)
      .filter(field => before[field] !== after[field])
      .map(field => [target, field, `${before[field]}`, `${after[field]}`]),
  )
  return `${table(['ROW', 'FIELD', 'STORED', 'REBUILT'], rows)}${more > 0 ? `\nand ${more} more rows` : ''}`
}
