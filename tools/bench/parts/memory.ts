/**
 * Whether memory grows: the heaps of gateway and core after garbage collections, under transfers and reads. The load
 * pauses during a measurement, so that requests in flight do not count.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { LoadPlan } from '../load/plan.ts'
import { type Heap, openHeap } from '../measure/heap.ts'
import type { Findings } from '../measure/report.ts'
import type { Settings } from '../measure/settings.ts'
import { type LoadProcess, startLoadProcess } from '../testbed/load-process.ts'
import { makeSigner, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('memory')
const connections = 64
/** After this time, closed connections are released, and timers that fire every second have fired. */
const settleMs = 1_000

/** A measurement: the minutes under load so far, and the sizes of the heaps in bytes. */
type Measurement = { minutes: number; gateway: number; core: number }

export async function measureMemory(testbed: Testbed, settings: Settings): Promise<Findings> {
  const database = await testbed.createDatabase('bench_memory')
  const { gateway, core, admin } = await testbed.startService(database, ['--inspect=127.0.0.1:0'])
  const signers = await Promise.all(Array.from({ length: 8 }, () => makeSigner(admin, 20)))
  const heaps = { gateway: await openHeap(gateway), core: await openHeap(core) }
  const load = startLoadProcess()

  say('warming up')
  const { memoryWarmUpMs, memoryMs, memoryStretchMs } = settings
  const plan = {
    host: '127.0.0.1',
    ports: [gateway.port],
    connections,
    signers,
    warmUpMs: 0,
    measureMs: memoryStretchMs,
  }
  const measurements: Measurement[] = []
  for (let underLoadMs = 0; ; underLoadMs += 2 * memoryStretchMs) {
    const measurement = await measure(heaps, underLoadMs)
    // Also during the warm-up: a collection discards compiled code, some of which is compiled again.
    if (underLoadMs >= memoryWarmUpMs) measurements.push(measurement)
    if (underLoadMs >= memoryWarmUpMs + memoryMs) break
    await runFor(2 * memoryStretchMs, load, plan)
  }
  load.stop()
  for (const heap of Object.values(heaps)) heap.close()
  await gateway.stop()
  await core.stop()

  const slopes = { gateway: slopeOf(measurements, 'gateway'), core: slopeOf(measurements, 'core') }
  return {
    ratios: { memory_slope: [Math.max(slopes.gateway, slopes.core)] },
    figures: { memory: { slopes, measurements } },
  }
}

/** Transfers and reads in turns, each for `measureMs`. */
async function runFor(ms: number, load: LoadProcess, plan: Omit<LoadPlan, 'kind'>): Promise<void> {
  for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 2 * plan.measureMs) {
    await load.run({ ...plan, kind: 'transfer' })
    await load.run({ ...plan, kind: 'balance' })
  }
}

async function measure(heaps: { gateway: Heap; core: Heap }, underLoadMs: number): Promise<Measurement> {
  await sleep(settleMs)
  const [gateway, core] = await Promise.all([heaps.gateway.measure(), heaps.core.measure()])
  say(`${underLoadMs / 1000} s: gateway ${megabytes(gateway)}, core ${megabytes(core)}`)
  return { minutes: underLoadMs / 60_000, gateway, core }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2)} MB`
}

/** Growth per minute as a fraction of the size at the first measurement, by least squares. */
function slopeOf(measurements: Measurement[], name: 'gateway' | 'core'): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanMinutes = mean(measurements.map(({ minutes }) => minutes))
  const meanSize = mean(measurements.map(each => each[name]))
  const covariance = mean(measurements.map(each => (each.minutes - meanMinutes) * (each[name] - meanSize)))
  const variance = mean(measurements.map(({ minutes }) => (minutes - meanMinutes) ** 2))
  return covariance / variance / measurements[0]![name]
}
