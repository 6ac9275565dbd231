import {
  type BrokenRule,
  type CheckpointFindings,
  type LedgerRule,
  ledgerRules,
  listedViolations,
  type VerifyEvent,
  type VerifyReport,
} from '@workspace-wallet/contract'

/** Runs the verifications of places one after the other, and merges their reports into one. */
export async function* mergeVerifications(
  verifications: readonly AsyncIterable<VerifyEvent>[],
): AsyncGenerator<VerifyEvent, void> {
  const reports: VerifyReport[] = []
  let verified = 0
  for (const verification of verifications)
    for await (const event of verification)
      if (event.kind === 'result') {
        reports.push(event.report)
        verified += event.report.flows
      } else yield { ...event, flows: verified + event.flows, totalFlows: verified + event.totalFlows }
  yield { kind: 'result', report: reports.length === 1 ? reports[0]! : mergeReports(reports) }
}

function mergeReports(reports: readonly VerifyReport[]): VerifyReport {
  const sum = (count: 'workspaces' | 'wallets' | 'transfers' | 'flows' | 'holds' | 'journalEntries') =>
    reports.reduce((total, report) => total + report[count], 0)
  const inOrder = Object.keys(ledgerRules) as LedgerRule[]
  const checkpoints = reports.flatMap(({ checkpoint }) => checkpoint ?? [])
  const notes = new Map(reports.flatMap(({ notes }) => notes).map(note => [JSON.stringify(note), note]))
  return {
    ok: reports.every(({ ok }) => ok),
    workspaces: sum('workspaces'),
    wallets: sum('wallets'),
    transfers: sum('transfers'),
    flows: sum('flows'),
    holds: sum('holds'),
    journalEntries: sum('journalEntries'),
    brokenRules: inOrder.flatMap(rule => brokenRuleOf(reports, rule)),
    violations: inOrder.flatMap(rule =>
      reports.flatMap(({ violations }) => violations.filter(each => each.rule === rule)).slice(0, listedViolations),
    ),
    notes: [...notes.values()],
    ...(checkpoints.length > 0 && { checkpoint: mergeFindings(checkpoints) }),
  }
}

function brokenRuleOf(reports: readonly VerifyReport[], rule: LedgerRule): BrokenRule[] {
  const counts = reports.flatMap(({ brokenRules }) => brokenRules.filter(each => each.rule === rule))
  if (counts.length === 0) return []
  return [{ rule, violations: counts.reduce((total, { violations }) => total + violations, 0) }]
}

function mergeFindings(all: readonly CheckpointFindings[]): CheckpointFindings {
  return {
    ...all[0]!,
    wallets: all.reduce((total, { wallets }) => total + wallets, 0),
    fault: all.find(({ fault }) => fault !== null)?.fault ?? null,
  }
}
