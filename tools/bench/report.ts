import { table } from '../../cli/admin/table.ts'
import { rounded } from './figures.ts'
import type { Machine } from './machine.ts'
import { isReached, targets } from './targets.ts'

/** The results of one part. `missing`: the reason why a key has no ratio. */
export type Findings = {
  ratios: Record<string, number>
  figures: Record<string, unknown>
  missing?: Record<string, string>
  /** For the text report. */
  tables?: string[]
}

export type Report = { machine: Machine; ratios: Record<string, number>; figures: Record<string, unknown> }

export function reportOf(machine: Machine, findings: Findings[]): Report {
  const ratios: Record<string, number> = Object.assign({}, ...findings.map(each => each.ratios))
  const missing: Record<string, string> = Object.assign({}, ...findings.map(each => each.missing))
  const figures: Record<string, unknown> = Object.assign({}, ...findings.map(each => each.figures))
  return {
    machine,
    ratios: Object.fromEntries(Object.entries(ratios).map(([key, ratio]) => [key, rounded(ratio)])),
    figures: Object.keys(missing).length > 0 ? { ...figures, missing } : figures,
  }
}

/** The text report: the machine, the tables of each part, then every key with its target. */
export function textOf({ machine, ratios, figures }: Report, findings: Findings[]): string {
  const missing = (figures.missing ?? {}) as Record<string, string>
  const rows = targets
    .filter(({ key }) => key in ratios || key in missing)
    .map(target => {
      const measured = ratios[target.key]
      const sign = target.bound === 'atLeast' ? '≥' : '≤'
      const reached = measured === undefined ? missing[target.key]! : isReached(target, measured) ? 'yes' : 'no'
      return [target.key, measured === undefined ? '–' : `${measured}`, `${sign} ${target.value}`, reached, target.what]
    })
  const { cpu, cores, memoryGiB, kernel, node, postgres, redis, fsyncMicros } = machine
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${kernel}, Node ${node}, PostgreSQL ${postgres}, Redis ${redis}
An fsync takes ${fsyncMicros} µs on this disk.

${findings
  .flatMap(({ tables = [] }) => tables)
  .map(text => `${text}\n\n`)
  .join('')}${table(['key', 'measured', 'target', 'reached', 'comparison'], rows)}`
}
