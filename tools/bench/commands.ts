/**
 * What commands cost compared with plain transfers, over 64 connections: batches of 100 transfers, holds with their
 * captures, and reversals with the transfers that they reverse. Spread wallets are as in the part `transfers`.
 */
import { sayWithin } from '../../cli/processes/say.ts'
import type { LoadPlan } from './load/plan.ts'
import { batchSize } from './load/requests.ts'
import { noCpuTimes } from './measure/cpu.ts'
import { figuresOf, tableOf, totalOf } from './measure/figures.ts'
import type { Findings } from './measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from './measure/rounds.ts'
import type { Settings } from './measure/settings.ts'
import { type Run, startLoadProcess } from './testbed/load-process.ts'
import { walletsEach, workspaces } from './testbed/plain/install.ts'
import { checkpoint, makeSigner, type Testbed } from './testbed/testbed.ts'

const say = sayWithin('commands')
const connections = 64

/** Each contender, and the transfers, holds or reversals that one of its requests makes. */
const kinds: Record<string, { kind: LoadPlan['kind']; perRequest: number }> = {
  'single transfers': { kind: 'transfer', perRequest: 1 },
  [`batches of ${batchSize}`]: { kind: 'batch', perRequest: batchSize },
  'holds and captures': { kind: 'hold-capture', perRequest: 1 },
  'transfers and reversals': { kind: 'transfer-reverse', perRequest: 1 },
}

export async function measureCommands(testbed: Testbed, settings: Settings): Promise<Findings> {
  const { warmUpMs, measureMs, rounds } = settings
  const { core, gateway, admin } = await testbed.startService(await testbed.createDatabase('bench_commands'))
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(admin, walletsEach)))
  const load = startLoadProcess()
  const plan = { host: '127.0.0.1', ports: [gateway.port], connections, warmUpMs, measureMs, signers }
  const watched = {
    gateway: gateway.process.pid!,
    core: core.process.pid!,
    postgres: testbed.postgres.pid,
    redis: testbed.redis.pid(),
  }
  const contenders: Contenders<Run> = Object.fromEntries(
    Object.entries(kinds).map(([name, { kind, perRequest }]) => [
      name,
      async () => {
        await checkpoint(testbed)
        return perCommand(await load.run({ ...plan, kind }, watched), perRequest)
      },
    ]),
  )
  const samples = await inRounds(contenders, rounds, say)
  load.stop()
  for (const program of [gateway, core]) await program.stop()

  const commands = figuresOf(samples)
  const costs = (name: string) => samples[name]!.flatMap(({ cpuMicros }) => (cpuMicros ? totalOf(cpuMicros) : []))
  const [single, batch] = [costs('single transfers'), costs(`batches of ${batchSize}`)]
  const findings: Findings = { ratios: {}, figures: { commands }, tables: [tableOf('commands', commands)] }
  if (batch.length > 0) findings.ratios.batch_of_100_vs_singles = ratiosOf(batch, single)
  else findings.missing = { batch_of_100_vs_singles: noCpuTimes }
  return findings
}

/** The rate and the CPU time of one command of a request. Latencies are those of requests. */
function perCommand({ perSecond, cpuMicros, ...run }: Run, count: number): Run {
  const costs = cpuMicros && Object.entries(cpuMicros).map(([name, micros]) => [name, micros / count])
  return { ...run, perSecond: perSecond * count, cpuMicros: costs && Object.fromEntries(costs) }
}
