/**
 * Signed transfers through gateway and core, compared with one SQL function per transfer under pgbench.
 *
 * Spread wallets are 100 in each of 8 workspaces: a posting locks its workspace, as the function does, so in one workspace
 * more clients would not help the function. Both use one server, in two databases with the same schema that grow at the
 * same pace. A checkpoint of PostgreSQL precedes each run.
 */
import { verifyLedger } from '@workspace-wallet/core-client'
import { query } from '../services/database.ts'
import { sayWithin } from '../services/say.ts'
import { figuresOf, type Sample, tableOf } from './figures.ts'
import type { LoadPlan } from './load.ts'
import { type LoadProcess, type Run, startLoadProcess } from './load-process.ts'
import { findPgbench, installBaseline, runPgbench } from './pgbench.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, median, ratioOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { makeSigner, type Service, type Signer, type Testbed } from './testbed.ts'

const say = sayWithin('transfers')
const kinds = ['uniform', 'hot'] as const
const clientCounts = [1, 8, 32]
const connectionCounts = [64, 256]
const workspaces = 8
const walletsEach = 100

export async function measureTransfers(testbed: Testbed, settings: Settings): Promise<Findings> {
  const pgbench = await findPgbench().catch((error: Error) => error)
  const baseline = await testbed.createDatabase('bench_baseline')
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
          return { perSecond: await runPgbench(pgbench, baseline, kind, clients, { warmUpSeconds, seconds }) }
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

function checkpoint({ postgres }: Testbed): Promise<unknown> {
  return query(postgres.url('postgres'), 'checkpoint')
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
  const ratios: Record<string, number> = {}
  for (const kind of kinds) {
    const of32 = rates(`pgbench ${kind} 32`)
    if (of32.length === 0) continue
    const best = clientCounts
      .map(clients => rates(`pgbench ${kind} ${clients}`))
      .toSorted((a, b) => median(b) - median(a))[0]!
    ratios[`transfer_${kind}_c64_vs_best`] = ratioOf(rates(`service ${kind} 64`), best)
    ratios[`transfer_${kind}_c64_vs_32`] = ratioOf(rates(`service ${kind} 64`), of32)
    ratios[`transfer_${kind}_c256_vs_32`] = ratioOf(rates(`service ${kind} 256`), of32)
  }
  ratios.hot_vs_uniform = ratioOf(rates('service hot 64'), rates('service uniform 64'))

  const transfers = figuresOf(samples)
  return { ratios, figures: { transfers }, tables: [tableOf('transfers', transfers)] }
}

function missingWithout(pgbench: Error): Record<string, string> {
  const keys = kinds.flatMap(kind => ['c64_vs_best', 'c64_vs_32', 'c256_vs_32'].map(end => `transfer_${kind}_${end}`))
  return Object.fromEntries(keys.map(key => [key, pgbench.message]))
}
