/**
 * Signed transfers through gateway and core, compared with one SQL function per transfer under pgbench.
 *
 * Spread wallets are 100 in each of 8 workspaces: a posting locks its workspace, as the function does, so in one workspace
 * more clients would not help the function. Both use one server. The function's database has the schema of the first
 * release. A checkpoint of PostgreSQL precedes each run.
 */
import { verifyLedger } from '@workspace-wallet/core-client'
import { sayWithin } from '../services/say.ts'
import { installBaseline, walletsEach, workspaces } from './baseline/install.ts'
import { noCpuTimes } from './cpu.ts'
import { figuresOf, type Sample, tableOf, totalOf } from './figures.ts'
import type { LoadPlan } from './load.ts'
import { type LoadProcess, type Run, startLoadProcess } from './load-process.ts'
import { findPgbench, runPgbench } from './pgbench.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, median, ratiosOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { spreadOf } from './spread.ts'
import { checkpoint, makeSigner, type Service, type Signer, type Testbed } from './testbed.ts'

const say = sayWithin('transfers')
const kinds = ['uniform', 'hot'] as const
const clientCounts = [1, 8, 32]
const connectionCounts = [64, 256]

export async function measureTransfers(testbed: Testbed, settings: Settings): Promise<Findings> {
  const pgbench = await findPgbench().catch((error: Error) => error)
  const baseline = await testbed.createEmptyDatabase('bench_baseline')
  await installBaseline(baseline.ownerUrl)
  const service = await testbed.startService(await testbed.createDatabase('bench_service'))
  say(`creating ${workspaces} workspaces with ${walletsEach} wallets each`)
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(service.admin, walletsEach)))
  const load = startLoadProcess()

  const contenders: Contenders<Sample> = {}
  for (const kind of kinds) {
    if (!(pgbench instanceof Error))
      for (const clients of clientCounts)
        contenders[`pgbench ${kind} ${clients}`] = async () => {
          await checkpoint(testbed)
          const seconds = Math.ceil(settings.measureMs / 1000)
          const warmUpSeconds = Math.ceil(settings.warmUpMs / 1000)
          const database = { postgres: testbed.postgres, url: baseline.ownerUrl }
          return runPgbench(pgbench, database, kind, clients, { warmUpSeconds, seconds })
        }
    for (const connections of connectionCounts)
      contenders[`service ${kind} ${connections}`] = async () => {
        await checkpoint(testbed)
        return runService(testbed, service, load, signers, kind, connections, settings)
      }
  }
  const samples = await inRounds(contenders, settings.rounds, say)
  load.stop()

  say('verifying the ledger')
  const verified = await verifyLedger(service.admin)
  if (!verified.ok) throw new Error(`The ledger is not sound after the benchmark: ${JSON.stringify(verified)}`)
  await service.gateway.stop()
  await service.core.stop()

  const findings = findingsOf(samples)
  findings.figures.verified = verified
  if (pgbench instanceof Error) findings.missing = missingWithout(pgbench)
  return findings
}

async function runService(
  { postgres, redis }: Testbed,
  { core, gateway }: Service,
  load: LoadProcess,
  signers: Signer[],
  kind: (typeof kinds)[number],
  connections: number,
  { warmUpMs, measureMs }: Settings,
): Promise<Run> {
  const watched = {
    gateway: gateway.process.pid!,
    core: core.process.pid!,
    postgres: postgres.pid,
    redis: redis.pid(),
  }
  const plan: LoadPlan = {
    host: '127.0.0.1',
    port: gateway.port,
    connections,
    warmUpMs,
    measureMs,
    signers: kind === 'hot' ? signers.slice(0, 1) : signers,
    kind: kind === 'hot' ? 'hot-transfer' : 'transfer',
  }
  return load.run(plan, watched)
}

function findingsOf(samples: Record<string, Sample[]>): Findings {
  const rates = (name: string) => (samples[name] ?? []).map(({ perSecond }) => perSecond)
  const costs = (name: string) =>
    (samples[name] ?? []).flatMap(({ cpuMicros }) => (cpuMicros ? totalOf(cpuMicros) : []))
  const ratios: Findings['ratios'] = { hot_vs_uniform: ratiosOf(rates('service hot 64'), rates('service uniform 64')) }
  const cpuVsFunction: Findings['ratios'] = {}
  for (const kind of kinds) {
    const of32 = rates(`pgbench ${kind} 32`)
    if (of32.length === 0) continue
    const best = clientCounts
      .map(clients => `pgbench ${kind} ${clients}`)
      .toSorted((a, b) => median(rates(b)) - median(rates(a)))[0]!
    ratios[`transfer_${kind}_c64_vs_best`] = ratiosOf(rates(`service ${kind} 64`), rates(best))
    for (const connections of connectionCounts) {
      const service = `service ${kind} ${connections}`
      ratios[`transfer_${kind}_c${connections}_vs_32`] = ratiosOf(rates(service), of32)
      if (costs(service).length > 0) cpuVsFunction[`${kind}_c${connections}`] = ratiosOf(costs(service), costs(best))
    }
  }

  const transfers = figuresOf(samples)
  const spreads = Object.entries(cpuVsFunction).map(([name, rounds]) => [name, spreadOf(rounds)])
  const figures = { transfers, cpuVsFunction: Object.fromEntries(spreads) }
  const findings: Findings = { ratios, figures, tables: [tableOf('transfers', transfers)] }
  if (cpuVsFunction.uniform_c256) ratios.cpu_uniform_c256_vs_function = cpuVsFunction.uniform_c256
  else findings.missing = { cpu_uniform_c256_vs_function: noCpuTimes }
  return findings
}

function missingWithout(pgbench: Error): Record<string, string> {
  const keys = kinds.flatMap(kind => ['c64_vs_best', 'c64_vs_32', 'c256_vs_32'].map(end => `transfer_${kind}_${end}`))
  return Object.fromEntries([...keys, 'cpu_uniform_c256_vs_function'].map(key => [key, pgbench.message]))
}
