/**
 * Transfers that arrive at rates up to twice the peak, which is what the service makes when clients wait for their responses: the
 * latency at each rate, and at the last one how many succeed, how soon the others are rejected, and whether memory grows. Spread
 * wallets are as in the part `transfers`. A checkpoint of PostgreSQL precedes each measurement.
 */
import { readFileSync } from 'node:fs'
import { table } from '../../../cli/admin/table.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import { drawChart, type Panel } from '../../charts/chart.ts'
import type { LoadPlan, OpenLoopResult } from '../load/plan.ts'
import type { Findings } from '../measure/report.ts'
import { inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Spread, spreadOf, textOfSpread } from '../measure/spread.ts'
import { type Run, startLoadProcess } from '../testbed/load-process.ts'
import { walletsEach, workspaces } from '../testbed/plain/install.ts'
import { checkpoint, makeSigner, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('overload')
/** As many as saturate the service. */
const connections = 256
const programs = ['gateway', 'core'] as const
/** Rates of arrivals, in percent of the peak. */
const loads = [10, 25, 50, 75, 90, 100, 150, 200]
const overloadPercent = 200

/** Resident memory in MB. */
type Memory = Record<(typeof programs)[number], number>
type OpenRun = Run & { openLoop: OpenLoopResult }
/** `offered`: by load. `overload` is the last of them. */
type Sample = {
  peak: Run
  offered: Record<number, OpenRun>
  overload: OpenRun
  before: Memory | null
  after: Memory | null
}

export async function measureOverload(
  testbed: Testbed,
  { warmUpMs, measureMs, rounds, overloadConnections }: Settings,
): Promise<Findings> {
  const { core, gateway, admin } = await testbed.startService(await testbed.createDatabase('bench_overload'))
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(admin, walletsEach)))
  const load = startLoadProcess()
  const ports = [gateway.port]
  const plan: LoadPlan = { host: '127.0.0.1', ports, connections, warmUpMs, measureMs, signers, kind: 'transfer' }
  const readMemory = () => memoryOf({ gateway: gateway.process.pid!, core: core.process.pid! })
  const measure = async (): Promise<Sample> => {
    await checkpoint(testbed)
    const peak = await load.run(plan)
    const before = readMemory()
    const offered: Record<number, OpenRun> = {}
    for (const percent of loads) {
      await checkpoint(testbed)
      const arrivalsPerSecond = (percent / 100) * peak.perSecond
      const { openLoop, ...run } = await load.run({
        ...plan,
        connections: overloadConnections,
        arrivalsPerSecond,
        allowedFailures: ['S002'],
      })
      offered[percent] = { ...run, openLoop: openLoop! }
    }
    return { peak, offered, overload: offered[overloadPercent]!, before, after: readMemory() }
  }
  const { overload: samples } = await inRounds({ overload: measure }, rounds, say)
  load.stop()
  for (const program of [gateway, core]) await program.stop()
  return findingsOf(samples!)
}

async function findingsOf(samples: Sample[]): Promise<Findings> {
  const ofRounds = (read: (sample: Sample) => number) => spreadOf(samples.map(read))
  const ofArrivals = (read: (sample: Sample) => number) =>
    ofRounds(sample => read(sample) / Math.max(1, sample.overload.openLoop.arrivals))
  const figures: Record<string, Spread> = {
    peakPerSecond: ofRounds(({ peak }) => peak.perSecond),
    successesPerSecond: ofRounds(({ overload }) => overload.perSecond),
    successP50Ms: ofRounds(({ overload }) => overload.latencyMs.p50),
    successP99Ms: ofRounds(({ overload }) => overload.latencyMs.p99),
    rejectedShare: ofArrivals(({ overload }) => overload.failures.S002 ?? 0),
    rejectionP50Ms: ofRounds(({ overload }) => overload.openLoop.failureLatencyMs.p50),
    rejectionP95Ms: ofRounds(({ overload }) => overload.openLoop.failureLatencyMs.p95),
    rejectionP99Ms: ofRounds(({ overload }) => overload.openLoop.failureLatencyMs.p99),
    rejectedWithoutRetryAfter: ofRounds(({ overload }) => overload.openLoop.withoutRetryAfter),
    unsentShare: ofArrivals(({ overload }) => overload.openLoop.unsent),
    unansweredShare: ofArrivals(({ overload }) => overload.openLoop.unanswered),
  }
  for (const name of programs)
    for (const time of ['before', 'after'] as const) {
      const sizes = samples.flatMap(sample => sample[time]?.[name] ?? [])
      if (sizes.length > 0) figures[`${name}Megabytes, ${time}`] = spreadOf(sizes)
    }
  const rates = (name: 'overload' | 'peak') => samples.map(sample => sample[name].perSecond)
  const curve = curveOf(samples)
  return {
    ratios: { overload_goodput: ratiosOf(rates('overload'), rates('peak')) },
    figures: { overload: figures, offeredLoad: curve },
    charts: { 'offered-load.svg': await drawChart(panelsOf(curve)) },
    tables: [
      table(
        ['offered load', 'successes', 'p50 in ms', 'p99 in ms'],
        loads.map(percent => {
          const { goodput, p50Ms, p99Ms } = curve[percent]!
          return [`${percent} % of the peak`, ...[goodput, p50Ms, p99Ms].map(textOfSpread)]
        }),
      ),
      table(
        ['overload', 'measured'],
        Object.entries(figures).map(([name, spread]) => [name, textOfSpread(spread)]),
      ),
    ],
  }
}

/** `goodput`: successes in percent of the peak. Latencies are those of successes, from the time at which they were to arrive. */
type Curve = Record<number, { goodput: Spread; p50Ms: Spread; p99Ms: Spread }>

function curveOf(samples: Sample[]): Curve {
  const at = (percent: number) => {
    const ofRounds = (read: (run: OpenRun, sample: Sample) => number) =>
      spreadOf(samples.map(sample => read(sample.offered[percent]!, sample)))
    return {
      goodput: ofRounds(({ perSecond }, { peak }) => (100 * perSecond) / peak.perSecond),
      p50Ms: ofRounds(({ latencyMs }) => latencyMs.p50),
      p99Ms: ofRounds(({ latencyMs }) => latencyMs.p99),
    }
  }
  return Object.fromEntries(loads.map(percent => [percent, at(percent)]))
}

function panelsOf(curve: Curve): Panel[] {
  const xTitle = 'arrivals, in percent of the peak'
  const pointsOf = (series: string, name: keyof Curve[number]) =>
    loads.map(x => ({ series, x, y: curve[x]![name].median }))
  return [
    {
      title: 'Latency of transfers',
      xTitle,
      linear: ['x'],
      yTitle: 'milliseconds',
      points: [...pointsOf('median', 'p50Ms'), ...pointsOf('99th percentile', 'p99Ms')],
    },
    {
      title: 'Transfers that succeed',
      xTitle,
      linear: ['x', 'y'],
      yTitle: 'percent of the peak',
      points: pointsOf('successes', 'goodput'),
    },
  ]
}

/** Null on other systems than Linux. */
function memoryOf(pids: Record<keyof Memory, number>): Memory | null {
  if (process.platform !== 'linux') return null
  const read = (pid: number) => {
    const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
    return (Number(kibibytes) * 1024) / 1e6
  }
  return { gateway: read(pids.gateway), core: read(pids.core) }
}
