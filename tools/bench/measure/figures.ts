/** The figures of each contender in the report. */
import { table } from '../../../cli/admin/table.ts'
import type { LoadResult } from '../load/plan.ts'
import type { CpuTimes } from './cpu.ts'
import { type Spread, spreadOf, textOfSpread } from './spread.ts'

/** pgbench reports no percentiles. `cpuMicros`: the CPU time of one request in each process, in microseconds. */
export type Sample = Pick<LoadResult, 'perSecond'> & Partial<LoadResult> & { cpuMicros: CpuTimes | null }

/** `cpuMicros` has the sum of all processes but the load generator in `total`. */
export type Figure = {
  perSecond: Spread
  latencyMs?: Record<keyof LoadResult['latencyMs'], Spread>
  cpuMicros?: Record<string, Spread>
}
export type Figures = Record<string, Figure>

export function figuresOf(samples: Record<string, Sample[]>): Figures {
  return Object.fromEntries(Object.entries(samples).map(([name, runs]) => [name, figureOf(runs)]))
}

function figureOf(samples: Sample[]): Figure {
  const figure: Figure = { perSecond: spreadOf(samples.map(({ perSecond }) => perSecond)) }
  const latencies = samples.flatMap(({ latencyMs }) => latencyMs ?? [])
  if (latencies.length > 0) figure.latencyMs = spreadsOf(latencies)
  const costs = samples.flatMap(({ cpuMicros }) => (cpuMicros ? [{ ...cpuMicros, total: totalOf(cpuMicros) }] : []))
  if (costs.length > 0) figure.cpuMicros = spreadsOf<string>(costs)
  return figure
}

/** The CPU time of one request in all processes but the load generator, in microseconds. */
export function totalOf(cpuMicros: CpuTimes): number {
  return Object.entries(cpuMicros).reduce((sum, [name, micros]) => (name === 'load' ? sum : sum + micros), 0)
}

function spreadsOf<Name extends string>(rounds: Record<Name, number>[]): Record<Name, Spread> {
  const names = Object.keys(rounds[0]!) as Name[]
  const spreads = names.map(name => [name, spreadOf(rounds.map(round => round[name]))])
  return Object.fromEntries(spreads) as Record<Name, Spread>
}

/** A table without processes that used less than a microsecond per request. */
export function tableOf(title: string, figures: Figures): string {
  const rows = Object.entries(figures).map(([name, { perSecond, latencyMs, cpuMicros }]) => {
    const { total, ...processes } = cpuMicros ?? {}
    return [
      name,
      textOfSpread(perSecond),
      latencyMs ? `${latencyMs.p50.median}` : '',
      latencyMs ? `${latencyMs.p99.median}` : '',
      total ? textOfSpread(total) : '',
      Object.entries(processes)
        .filter(([, { median }]) => median >= 1)
        .map(([process, { median }]) => `${process} ${Math.round(median)}`)
        .join(', '),
    ]
  })
  return table([title, 'per second', 'p50 ms', 'p99 ms', 'CPU µs per request', 'of which; load generator'], rows)
}
