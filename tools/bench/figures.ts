/** The figures of each contender in the report. */
import { table } from '../../cli/admin/table.ts'
import type { Run } from './load-process.ts'
import { median } from './rounds.ts'

/** pgbench reports only the rate. */
export type Sample = Run | { perSecond: number }

/** Medians of the rounds. `cpuMicros` is the CPU time of one request in each process, in microseconds. */
export type Figure = {
  perSecond: number
  rounds: number[]
  latencyMs?: Record<'p50' | 'p95' | 'p99' | 'max', number>
  cpuMicros?: Record<string, number>
}
export type Figures = Record<string, Figure>

export function figuresOf(samples: Record<string, Sample[]>): Figures {
  return Object.fromEntries(Object.entries(samples).map(([name, runs]) => [name, figureOf(runs)]))
}

function figureOf(samples: Sample[]): Figure {
  const rates = samples.map(({ perSecond }) => perSecond)
  const figure = { perSecond: Math.round(median(rates)), rounds: rates.map(Math.round) }
  const runs = samples.filter(sample => 'latencyMs' in sample)
  if (runs.length === 0) return figure
  const latency = (name: 'p50' | 'p95' | 'p99' | 'max') => rounded(median(runs.map(run => run.latencyMs[name])))
  const cost = (name: string) => rounded(median(runs.map(run => run.cpuMicros![name]!)))
  return {
    ...figure,
    latencyMs: { p50: latency('p50'), p95: latency('p95'), p99: latency('p99'), max: latency('max') },
    cpuMicros: Object.fromEntries(Object.keys(runs[0]!.cpuMicros ?? {}).map(name => [name, cost(name)])),
  }
}

/** A table without processes that used less than a microsecond per request. */
export function tableOf(title: string, figures: Figures): string {
  const rows = Object.entries(figures).map(([name, { perSecond, latencyMs, cpuMicros = {} }]) => [
    name,
    `${perSecond}`,
    latencyMs ? `${latencyMs.p50}` : '',
    latencyMs ? `${latencyMs.p99}` : '',
    Object.entries(cpuMicros)
      .filter(([, micros]) => micros >= 1)
      .map(([process, micros]) => `${process} ${Math.round(micros)}`)
      .join(', '),
  ])
  return table([title, 'per second', 'p50 ms', 'p99 ms', 'CPU µs per request'], rows)
}

/** Rounded to three significant digits. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3))
}
