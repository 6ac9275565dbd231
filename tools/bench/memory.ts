/**
 * Whether memory stays flat: the heaps of gateway and core after a collection, under transfers and reads for a while.
 * The load pauses while they are looked at, so that no request in the air counts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sayWithin } from '../services/say.ts'
import { type Load, startLoad } from './drive.ts'
import { type Heap, openHeap } from './heap.ts'
import type { LoadPlan } from './load.ts'
import type { Findings } from './report.ts'
import type { Settings } from './settings.ts'
import { makeSigner, type Stage } from './stage.ts'

const say = sayWithin('memory')
const connections = 64
/** Until connections that were closed are forgotten, and what goes on by the second has been round. */
const settleMs = 1_000

/** When it was looked at, in minutes under load, and what each heap held, in bytes. */
type Look = { minutes: number; gateway: number; core: number }

export async function measureMemory(stage: Stage, settings: Settings): Promise<Findings> {
  const database = await stage.createDatabase('bench_memory')
  const { gateway, core, admin } = await stage.startService(database, ['--inspect=127.0.0.1:0'])
  const signers = await Promise.all(Array.from({ length: 8 }, () => makeSigner(admin, 20)))
  const heaps = { gateway: await openHeap(gateway), core: await openHeap(core) }
  const load = startLoad()

  say('warming up')
  const { memoryWarmUpMs, memoryMs, memoryStretchMs } = settings
  const plan = { host: '127.0.0.1', port: gateway.port, connections, signers, warmUpMs: 0, measureMs: memoryStretchMs }
  const looks: Look[] = []
  for (let underLoadMs = 0; ; underLoadMs += 2 * memoryStretchMs) {
    const seen = await look(heaps, underLoadMs)
    // The warm-up is looked at, too: a collection throws compiled code away, and some of it comes back.
    if (underLoadMs >= memoryWarmUpMs) looks.push(seen)
    if (underLoadMs >= memoryWarmUpMs + memoryMs) break
    await runFor(2 * memoryStretchMs, load, plan)
  }
  load.stop()
  for (const heap of Object.values(heaps)) heap.close()
  await gateway.stop()
  await core.stop()

  const slopes = { gateway: slopeOf(looks, 'gateway'), core: slopeOf(looks, 'core') }
  return {
    ratios: { memory_slope: Math.max(slopes.gateway, slopes.core) },
    figures: { memory: { slopes, looks } },
  }
}

/** Transfers, then reads, in stretches. */
async function runFor(ms: number, load: Load, plan: Omit<LoadPlan, 'kind'>): Promise<void> {
  for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 2 * plan.measureMs) {
    await load.run({ ...plan, kind: 'transfer' })
    await load.run({ ...plan, kind: 'balance' })
  }
}

async function look(heaps: { gateway: Heap; core: Heap }, underLoadMs: number): Promise<Look> {
  await sleep(settleMs)
  const [gateway, core] = await Promise.all([heaps.gateway.measure(), heaps.core.measure()])
  say(`${underLoadMs / 1000} s: gateway ${megabytes(gateway)}, core ${megabytes(core)}`)
  return { minutes: underLoadMs / 60_000, gateway, core }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(2)} MB`
}

/** Growth in a minute over the size at the first look, by least squares. */
function slopeOf(looks: Look[], name: 'gateway' | 'core'): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const meanMinutes = mean(looks.map(({ minutes }) => minutes))
  const meanSize = mean(looks.map(each => each[name]))
  const covariance = mean(looks.map(each => (each.minutes - meanMinutes) * (each[name] - meanSize)))
  const variance = mean(looks.map(({ minutes }) => (minutes - meanMinutes) ** 2))
  return covariance / variance / looks[0]![name]
}
