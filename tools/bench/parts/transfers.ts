/**
 * Signed transfers through gateway and core, compared with one SQL function per transfer under pgbench.
 *
 * Spread wallets are 100 in each of 8 workspaces. Both use one server. The function's database has the plain schema
 * (plain/schema.sql). A checkpoint of PostgreSQL precedes each run.
 *
 * The hot wallet is also measured with two cores: behind one gateway, whose client sends all creates of the workspace to
 * one of them, and behind two gateways with one core each, so that both cores post to the same ledger.
 */
import { verifyLedger } from '@workspace-wallet/core-client'
import { table } from '../../../cli/admin/table.ts'
import type { Program } from '../../../cli/processes/program.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import { noCpuTimes, type Watched } from '../measure/cpu.ts'
import { figuresOf, type Sample, tableOf, totalOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, median, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Spread, spreadOf, textOfSpread } from '../measure/spread.ts'
import { type LoadProcess, type Run, startLoadProcess } from '../testbed/load-process.ts'
import { findPgbench, runPgbench } from '../testbed/pgbench.ts'
import { installPlainSchema, walletsEach, workspaces } from '../testbed/plain/install.ts'
import { checkpoint, type Database, makeSigner, type Signer, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('transfers')
const kinds = ['uniform', 'hot'] as const
const clientCounts = [1, 8, 32]
const connectionCounts = [64, 256]
/** The ends of the names of contenders with two cores. */
const twoCores = [', two cores', ', contending cores'] as const

type Kind = (typeof kinds)[number]
/** The gateways that receive the load, and their cores. */
type Setup = { gateways: Program[]; cores: Program[] }
type Samples = Record<string, Sample[]>

export async function measureTransfers(testbed: Testbed, settings: Settings): Promise<Findings> {
  const pgbench = await findPgbench().catch((error: Error) => error)
  const plain = await testbed.createEmptyDatabase('bench_plain')
  await installPlainSchema(plain.ownerUrl)
  const { admin, setups, stop } = await startSetups(testbed, await testbed.createDatabase('bench_service'))
  say(`creating ${workspaces} workspaces with ${walletsEach} wallets each`)
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(admin, walletsEach)))
  const load = startLoadProcess()

  const contenders: Contenders<Sample> = {}
  for (const kind of kinds) {
    if (!(pgbench instanceof Error))
      for (const clients of clientCounts)
        contenders[`pgbench ${kind} ${clients}`] = async () => {
          await checkpoint(testbed)
          const seconds = Math.ceil(settings.measureMs / 1000)
          const warmUpSeconds = Math.ceil(settings.warmUpMs / 1000)
          const database = { postgres: testbed.postgres, url: plain.ownerUrl }
          return runPgbench(pgbench, database, kind, clients, { warmUpSeconds, seconds })
        }
    for (const connections of connectionCounts)
      for (const end of kind === 'hot' ? (['', ...twoCores] as const) : ([''] as const))
        contenders[`service ${kind} ${connections}${end}`] = async () => {
          await checkpoint(testbed)
          return runService(testbed, setups[end], load, signers, kind, connections, settings)
        }
  }
  const samples = await inRounds(contenders, settings.rounds, say)
  load.stop()

  say('verifying the ledger')
  const verified = await verifyLedger(admin)
  if (!verified.ok) throw new Error(`The ledger is not sound after the benchmark: ${JSON.stringify(verified)}`)
  await stop()

  const findings = findingsOf(samples)
  findings.figures.verified = verified
  if (pgbench instanceof Error) findings.missing = missingWithout(pgbench)
  return findings
}

async function startSetups(testbed: Testbed, database: Database) {
  const { core, gateway, admin } = await testbed.startService(database)
  const secondCore = await testbed.startCore(database)
  const gatewayOfBoth = await testbed.startGateway([core.url, secondCore.url])
  const gatewayOfSecond = await testbed.startGateway([secondCore.url])
  const cores = [core, secondCore]
  const setups: Record<'' | (typeof twoCores)[number], Setup> = {
    '': { gateways: [gateway], cores: [core] },
    ', two cores': { gateways: [gatewayOfBoth], cores },
    ', contending cores': { gateways: [gateway, gatewayOfSecond], cores },
  }
  const stop = async () => {
    for (const program of [gateway, gatewayOfBoth, gatewayOfSecond, ...cores]) await program.stop()
  }
  return { admin, setups, stop }
}

async function runService(
  { postgres, redis }: Testbed,
  { gateways, cores }: Setup,
  load: LoadProcess,
  signers: Signer[],
  kind: Kind,
  connections: number,
  { warmUpMs, measureMs }: Settings,
): Promise<Run> {
  const plan = {
    host: '127.0.0.1',
    ports: gateways.map(({ port }) => port),
    connections,
    warmUpMs,
    measureMs,
    signers: kind === 'hot' ? signers.slice(0, 1) : signers,
    kind: kind === 'hot' ? 'hot-transfer' : 'transfer',
  } as const
  const pids = { postgres: postgres.pid, redis: redis.pid() }
  return load.run(plan, { ...pidsOf('gateway', gateways), ...pidsOf('core', cores), ...pids })
}

function pidsOf(name: string, programs: Program[]): Watched {
  return Object.fromEntries(programs.map(({ process }, at) => [at === 0 ? name : `${name} ${at + 1}`, process.pid!]))
}

function ratesOf(samples: Samples, name: string): number[] {
  return (samples[name] ?? []).map(({ perSecond }) => perSecond)
}

/** The CPU time of a transfer in all processes, in microseconds; empty when it was not measured. */
function costsOf(samples: Samples, name: string): number[] {
  return (samples[name] ?? []).flatMap(({ cpuMicros }) => (cpuMicros ? totalOf(cpuMicros) : []))
}

function findingsOf(samples: Samples): Findings {
  const rates = (name: string) => ratesOf(samples, name)
  const costs = (name: string) => costsOf(samples, name)
  const ratios: Findings['ratios'] = { hot_vs_uniform: ratiosOf(rates('service hot 64'), rates('service uniform 64')) }
  const cpuVsFunction: Findings['ratios'] = {}
  for (const kind of kinds) {
    const of32 = rates(`pgbench ${kind} 32`)
    if (of32.length === 0) continue
    const best = clientCounts
      .map(clients => `pgbench ${kind} ${clients}`)
      .toSorted((a, b) => median(rates(b)) - median(rates(a)))[0]!
    ratios[`transfer_${kind}_c64_vs_best`] = ratiosOf(rates(`service ${kind} 64`), rates(best))
    ratios[`transfer_${kind}_c256_vs_32`] = ratiosOf(rates(`service ${kind} 256`), of32)
    for (const connections of connectionCounts) {
      const service = `service ${kind} ${connections}`
      if (costs(service).length > 0) cpuVsFunction[`${kind}_c${connections}`] = ratiosOf(costs(service), costs(best))
    }
  }

  const transfers = figuresOf(samples)
  const spreads = Object.entries(cpuVsFunction).map(([name, rounds]) => [name, spreadOf(rounds)])
  const vsOneCore = compareWithOneCore(samples)
  const figures = { transfers, cpuVsFunction: Object.fromEntries(spreads), vsOneCore }
  const findings: Findings = { ratios, figures, tables: [tableOf('transfers', transfers), tableOfTwoCores(vsOneCore)] }
  if (cpuVsFunction.uniform_c256) ratios.cpu_uniform_c256_vs_function = cpuVsFunction.uniform_c256
  else findings.missing = { cpu_uniform_c256_vs_function: noCpuTimes }
  return findings
}

type VsOneCore = Record<string, { perSecond: Spread; cpuMicros?: Spread }>

/** Rate and CPU time of a transfer with two cores, as ratios to those with one core in the same round. */
function compareWithOneCore(samples: Samples): VsOneCore {
  const compared: VsOneCore = {}
  for (const connections of connectionCounts)
    for (const end of twoCores) {
      const oneCore = `service hot ${connections}`
      const name = oneCore + end
      const costs = ratiosOf(costsOf(samples, name), costsOf(samples, oneCore))
      compared[name] = {
        perSecond: spreadOf(ratiosOf(ratesOf(samples, name), ratesOf(samples, oneCore))),
        ...(costs.length > 0 && { cpuMicros: spreadOf(costs) }),
      }
    }
  return compared
}

function tableOfTwoCores(vsOneCore: VsOneCore): string {
  const rows = Object.entries(vsOneCore).map(([name, { perSecond, cpuMicros }]) => [
    name,
    textOfSpread(perSecond),
    cpuMicros ? textOfSpread(cpuMicros) : '',
  ])
  return table(['compared with one core', 'per second', 'CPU per request'], rows)
}

function missingWithout(pgbench: Error): Record<string, string> {
  const keys = kinds.flatMap(kind => ['c64_vs_best', 'c256_vs_32'].map(end => `transfer_${kind}_${end}`))
  return Object.fromEntries([...keys, 'cpu_uniform_c256_vs_function'].map(key => [key, pgbench.message]))
}
