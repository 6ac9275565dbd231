import { table } from '../../cli/admin/table.ts'
import type { PeakMemory } from './memory.ts'
import type { Discrepancies } from './reconcile.ts'

/** Times in milliseconds. docs/measurements.md defines both. */
export type FaultFigures = { count: number; recoveryMs: Spread; noAnswerMs: Spread }
type Spread = { median: number; worst: number }

export type Report = {
  seed: number
  minutes: number
  /** All requests, also retries and probes, and their number by outcome. */
  requests: number
  answers: Record<string, number>
  slowestAnswerMs: number
  faults: Record<string, FaultFigures>
  /** Commands by the last response to their clients. `resolved`: unknown outcomes, looked up by bizId. */
  commands: {
    sent: number
    acknowledged: number
    refused: number
    notDone: number
    resolved: { wereDone: number; wereNotDone: number }
  }
  peakMemoryMiB: PeakMemory
  /** Events that the readers of the logs saw, each once and in order. */
  events: number
  /** Events that webhooks delivered, and requests of the couriers, which repeat some of them. */
  deliveries: { events: number; requests: number }
  verifiedFlows: number
} & { [Name in keyof Discrepancies]: number }

/** Of one value or more. */
export function spreadOf(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
  return { median: Math.round(middle), worst: Math.round(sorted.at(-1)!) }
}

/** The text report. */
export function textOf(report: Report): string {
  const { faults, commands, answers, peakMemoryMiB } = report
  const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(2)
  const rows = Object.entries(faults).map(([kind, { count, recoveryMs, noAnswerMs }]) => [
    kind,
    String(count),
    ...[recoveryMs, noAnswerMs].flatMap(({ median, worst }) => [seconds(median), seconds(worst)]),
  ])
  const counts = Object.entries(answers)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
  const injected = Object.values(faults).reduce((sum, { count }) => sum + count, 0)
  return `${table(['fault', 'times', 'recovery median s', 'worst s', 'no answer median s', 'worst s'], rows)}

Recovery: from the end of the fault until every part is ready and both gateways make transfers. No answer: the longest
time without an answer to any command, including the fault itself.

seed              ${report.seed}
faults injected   ${injected}
requests sent     ${report.requests} (${counts.join(', ')})
slowest answer    ${seconds(report.slowestAnswerMs)} s
commands          ${commands.sent}: acknowledged ${commands.acknowledged}, correctly rejected ${commands.refused}, not done ${commands.notDone}
unknown outcomes  ${commands.resolved.wereDone + commands.resolved.wereNotDone}, resolved by bizId: done ${commands.resolved.wereDone}, not done ${commands.resolved.wereNotDone}
peak memory       ${
    peakMemoryMiB
      ? Object.entries(peakMemoryMiB)
          .map(([kind, mebibytes]) => `${kind} ${mebibytes} MiB`)
          .join(', ')
      : 'unknown on this system'
  }
events            ${report.events}
delivered         ${report.deliveries.events} in ${report.deliveries.requests} requests
verified          ${report.verifiedFlows} flows

lost              ${report.lost}
duplicated        ${report.duplicated}
unexplained       ${report.unexplained}`
}
