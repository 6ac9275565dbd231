import { table } from '../../../cli/admin/table.ts'
import { type Spread, spreadOf, textOfSpread } from './spread.ts'
import { isReached, targets } from './targets.ts'

/** The machine of a run. Absolute figures of different machines cannot be compared. */
export type Machine = {
  cpu: string
  cores: number
  memoryGiB: number
  kernel: string
  node: string
  postgres: string
  redis: string
  /** The time to make one block durable on the disk of the database, in microseconds. */
  fsyncMicros: number
}

/** The results of one part. `ratios`: those of every round. `missing`: the reason why a key has no ratio. */
export type Findings = {
  ratios: Record<string, number[]>
  figures: Record<string, unknown>
  missing?: Record<string, string>
  /** For the text report. */
  tables?: string[]
  /** SVG documents by file name. */
  charts?: Record<string, string>
}

/** `ratios`: the medians of the rounds. `figures.spreads`: the ratios of all rounds. */
export type Report = {
  machine: Machine
  ratios: Record<string, number>
  figures: Record<string, unknown> & { spreads: Record<string, Spread>; missing?: Record<string, string> }
}

export function reportOf(machine: Machine, findings: Findings[]): Report {
  const ratios: Findings['ratios'] = Object.assign({}, ...findings.map(each => each.ratios))
  const spreads = Object.fromEntries(Object.entries(ratios).map(([key, rounds]) => [key, spreadOf(rounds)]))
  const missing: Record<string, string> = Object.assign({}, ...findings.map(each => each.missing))
  const figures: Record<string, unknown> = Object.assign({}, ...findings.map(each => each.figures))
  return {
    machine,
    ratios: Object.fromEntries(Object.entries(spreads).map(([key, { median }]) => [key, median])),
    figures: { spreads, ...figures, ...(Object.keys(missing).length > 0 && { missing }) },
  }
}

/** The text report: the machine, the tables of each part, then every key with its target. */
export function textOf({ machine, figures }: Report, findings: Findings[]): string {
  const { spreads, missing = {} } = figures
  const rows = targets
    .filter(({ key }) => key in spreads || key in missing)
    .map(target => {
      const measured = spreads[target.key]
      const sign = target.bound === 'atLeast' ? '≥' : '≤'
      const reached = !measured ? missing[target.key]! : isReached(target, measured.median) ? 'yes' : 'no'
      return [target.key, measured ? textOfSpread(measured) : '–', `${sign} ${target.value}`, reached, target.what]
    })
  const { cpu, cores, memoryGiB, kernel, node, postgres, redis, fsyncMicros } = machine
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${kernel}, Node ${node}, PostgreSQL ${postgres}, Redis ${redis}
An fsync takes ${fsyncMicros} µs on this disk.

${findings
  .flatMap(({ tables = [] }) => tables)
  .map(text => `${text}\n\n`)
  .join('')}${table(['key', 'measured', 'target', 'reached', 'comparison'], rows)}`
}
