import type { VerifyReport } from '@workspace-wallet/contract'

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

export const ledger = {
  about:
    'Whether every amount is accounted for: verify the ledger, keep checkpoints outside of it, and reopen workspaces.',
  halted: 'Halted workspaces',
  noneHalted: 'No workspace is halted. One is halted when core finds rows that were modified outside the service.',
  moreHalted: (count: number) => `${count} more are not listed.`,
  reason: 'Why',
  wayBack: 'Way back',
  repair: 'Repair',
  repairTitle: 'Repair a halted workspace',
  repairAbout:
    'Rebuilds the wallet rows and counters of this workspace from its flows, holds and journal, and reopens it if it is sound afterwards. Nothing is changed if flows are damaged. Try it first to see what would change.',
  dryRun: 'Show what would change',
  repaired: (count: number, isReopened: boolean) =>
    `Changed ${plural(count, 'row')}. ${isReopened ? 'The workspace is open.' : 'The workspace is still halted.'}`,
  wouldRepair: (count: number) => `Nothing was changed. A repair would change ${plural(count, 'row')}.`,
  reopen: 'Reopen',
  reopenTitle: 'Reopen a halted workspace',
  reopenAbout: 'Verifies this workspace and, if it is sound, accepts its transfers again.',
  force: 'Reopen it even if rules are broken. It then works with wrong balances.',
  reopened: 'The workspace is open.',
  notReopened: (count: number) => `The workspace stays halted: ${plural(count, 'violation')}. Repair it first.`,
  verification: 'Verification',
  verificationAbout:
    'Recomputes every chain and balance. It takes minutes for millions of flows, and delays no transfer.',
  verifyAll: 'Verify all workspaces',
  verifyWorkspace: 'Verify the chosen workspace',
  against: 'Compare with a checkpoint',
  againstAbout:
    'A file that was saved here or by npm run admin. It shows whether history was changed or removed since.',
  chooseFile: 'Choose a file',
  clearFile: 'Remove the file',
  uploaded: (count: number) => `${plural(count, 'wallet')} of the checkpoint uploaded`,
  continued: (takenAt: string, count: number) =>
    `It continues the checkpoint of ${takenAt} with ${plural(count, 'wallet')}: nothing recorded before it was changed or removed.`,
  compared: (takenAt: string, count: number) =>
    `It was compared with the checkpoint of ${takenAt} with ${plural(count, 'wallet')}.`,
  notCompared: (fault: string) =>
    `The checkpoint was not compared, because ${fault}. Choose the unchanged file, for the scope that it was taken of.`,
  progress: (flows: number, total: number) => `${flows} of ${plural(total, 'flow')}`,
  sound: 'The ledger is sound.',
  broken: (count: number) => `${plural(count, 'rule')} ${count === 1 ? 'is' : 'are'} broken.`,
  counts: ({ workspaces, wallets, transfers, flows, holds }: VerifyReport) =>
    [
      plural(workspaces, 'workspace'),
      plural(wallets, 'wallet'),
      plural(transfers, 'transfer'),
      plural(flows, 'flow'),
      plural(holds, 'hold'),
    ].join(', '),
  brokenRules: 'Broken rules',
  rule: 'Rule',
  violations: 'Violations',
  meaning: 'What it demands',
  where: 'Where',
  finding: 'Finding',
  notes: (count: number) => `${plural(count, 'thing')} to compare with what you expect in the database`,
  object: 'Object',
  what: 'What',
  checkpoints: 'Checkpoints',
  checkpointsAbout:
    'A signed record of the end of every chain. Keep it outside of the database, and compare with it under Verification: that shows whether history was removed since.',
  takeCheckpoint: 'Take a checkpoint',
  checkpointTaken: (name: string) => `The checkpoint was saved as ${name}.`,
}
