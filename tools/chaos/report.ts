import { table } from '../../cli/admin/table.ts'
import type { PeakMemory } from './memory.ts'
import type { Verdict } from './reconcile.ts'

/** Times in milliseconds. Recovery: from the fault, or the end of a freeze, until every part is ready and both gateways make transfers. */
export type FaultFigures = { count: number; recoveryMs: Spread; silenceMs: Spread }
type Spread = { median: number; worst: number }

export type Report = {
  seed: number
  minutes: number
  /** Requests, retries and probes among them, and what became of them. */
  requests: number
  answers: Record<string, number>
  slowestAnswerMs: number
  faults: Record<string, FaultFigures>
  /** Transfers by what their clients knew at the end; `unknown` ones were resolved by their bizId. */
  transfers: {
    sent: number
    acknowledged: number
    refused: number
    notDone: number
    resolved: { wereDone: number; wereNotDone: number }
  }
  peakMemoryMiB: PeakMemory
  verifiedFlows: number
} & { [Name in keyof Verdict]: number }

/** Of one value or more. */
export function spreadOf(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
  return { median: Math.round(middle), worst: Math.round(sorted.at(-1)!) }
}

/** What a person reads. */
export function textOf(report: Report): string {
  const { faults, transfers, answers, peakMemoryMiB } = report
  const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(2)
  const rows = Object.entries(faults).map(([kind, { count, recoveryMs, silenceMs }]) => [
    kind,
    String(count),
    ...[recoveryMs, silenceMs].flatMap(({ median, worst }) => [seconds(median), seconds(worst)]),
  ])
  const counts = Object.entries(answers)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
  const injected = Object.values(faults).reduce((sum, { count }) => sum + count, 0)
  return `${table(['fault', 'times', 'recovery median s', 'worst s', 'silence median s', 'worst s'], rows)}

Recovery: until every part is ready and both gateways make transfers. Silence: the longest time in which no client heard
of any transfer, the fault itself included.

seed              ${report.seed}
faults injected   ${injected}
requests sent     ${report.requests} (${counts.join(', ')})
slowest answer    ${seconds(report.slowestAnswerMs)} s
transfers         ${transfers.sent}: acknowledged ${transfers.acknowledged}, refused as they had to be ${transfers.refused}, not done ${transfers.notDone}
unknown           ${transfers.resolved.wereDone + transfers.resolved.wereNotDone}, resolved by bizId: done ${transfers.resolved.wereDone}, not done ${transfers.resolved.wereNotDone}
peak memory       ${
    peakMemoryMiB
      ? Object.entries(peakMemoryMiB)
          .map(([kind, mebibytes]) => `${kind} ${mebibytes} MiB`)
          .join(', ')
      : 'not known here'
  }
verified          ${report.verifiedFlows} flows

lost              ${report.lost}
doubled           ${report.doubled}
unexplained       ${report.unexplained}`
}
