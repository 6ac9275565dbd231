/**
 * Twice as many transfers as the service can make: how many succeed, compared with the most that it makes when clients wait
 * for their responses, how soon the others are rejected, and whether memory grows. Spread wallets are as in the part
 * `transfers`. A checkpoint of PostgreSQL precedes each measurement.
 */
import { readFileSync } from 'node:fs'
import { table } from '../../../cli/admin/table.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
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

/** Resident memory in MB. */
type Memory = Record<(typeof programs)[number], number>
type Sample = { peak: Run; overload: Run & { openLoop: OpenLoopResult }; before: Memory | null; after: Memory | null }

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
    await checkpoint(testbed)
    const before = readMemory()
    const arrivalsPerSecond = 2 * peak.perSecond
    const offered = { ...plan, connections: overloadConnections, arrivalsPerSecond, allowedFailures: ['S002'] }
    const { openLoop, ...overload } = await load.run(offered)
    return { peak, overload: { ...overload, openLoop: openLoop! }, before, after: readMemory() }
  }
  const { overload: samples } = await inRounds({ overload: measure }, rounds, say)
  load.stop()
  for (const program of [gateway, core]) await program.stop()
  return findingsOf(samples!)
}

function findingsOf(samples: Sample[]): Findings {
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
  return {
    ratios: { overload_goodput: ratiosOf(rates('overload'), rates('peak')) },
    figures: { overload: figures },
    tables: [
      table(
        ['overload', 'measured'],
        Object.entries(figures).map(([name, spread]) => [name, textOfSpread(spread)]),
      ),
    ],
  }
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
