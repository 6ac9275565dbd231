/**
 * Signed transfers through gateway and core, against one SQL function per transfer under pgbench.
 *
 * Spread wallets are 100 in each of 8 workspaces: a posting locks its workspace, the function's too, so in one
 * workspace the function would have no more to gain from many clients than on one hot wallet. Both sides are on one
 * server, in two databases with the same schema that grow side by side, and begin with a checkpoint each time.
 */
import { readFile } from 'node:fs/promises'
import { verifyLedger } from '@workspace-wallet/core-client'
import { query } from '../services/database.ts'
import { sayWithin } from '../services/say.ts'
import { type Load, type Run, startLoad } from './drive.ts'
import { figuresOf, type Sample, tableOf } from './figures.ts'
import type { LoadPlan } from './load.ts'
import { findPgbench, runPgbench } from './pgbench.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, median, ratioOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { type Database, makeSigner, type Service, type Signer, type Stage } from './stage.ts'

const say = sayWithin('transfers')
const kinds = ['uniform', 'hot'] as const
const clientCounts = [1, 8, 32]
const connectionCounts = [64, 256]
const workspaces = 8
const walletsEach = 100

export async function measureTransfers(stage: Stage, settings: Settings): Promise<Findings> {
  const pgbench = await findPgbench().catch((error: Error) => error)
  const baseline = await makeBaseline(stage)
  const service = await stage.startService(await stage.createDatabase('bench_service'))
  say(`making ${workspaces} workspaces of ${walletsEach} wallets`)
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(service.admin, walletsEach)))
  const load = startLoad()

  const contenders: Contenders<Sample> = {}
  for (const kind of kinds) {
    if (!(pgbench instanceof Error))
      for (const clients of clientCounts)
        contenders[`pgbench ${kind} ${clients}`] = async () => {
          await checkpoint(stage)
          const seconds = Math.ceil(settings.measureMs / 1000)
          const warmUpSeconds = Math.ceil(settings.warmUpMs / 1000)
          return { perSecond: await runPgbench(pgbench, baseline, kind, clients, { warmUpSeconds, seconds }) }
        }
    for (const connections of connectionCounts)
      contenders[`ours ${kind} ${connections}`] = async () => {
        await checkpoint(stage)
        return runOurs(stage, service, load, signers, kind, connections, settings)
      }
  }
  const samples = await inRounds(contenders, settings.rounds, say)
  load.stop()

  say('ledger verify')
  const verified = await verifyLedger(service.admin)
  if (!verified.ok) throw new Error(`The ledger is not sound after the benchmark: ${JSON.stringify(verified)}`)
  await service.gateway.stop()
  await service.core.stop()

  const findings = findingsOf(samples)
  findings.figures.verified = verified
  if (pgbench instanceof Error) findings.missing = missingWithout(pgbench)
  return findings
}

async function makeBaseline(stage: Stage): Promise<Database> {
  const database = await stage.createDatabase('bench_baseline')
  for (const name of ['function.sql', 'wallets.sql'])
    await query(database.ownerUrl, await readFile(new URL(`./baseline/${name}`, import.meta.url), 'utf8'))
  return database
}

function checkpoint({ postgres }: Stage): Promise<unknown> {
  return query(postgres.url('postgres'), 'checkpoint')
}

async function runOurs(
  { postgres, redis }: Stage,
  { core, gateway }: Service,
  load: Load,
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
    ratios[`transfer_${kind}_c64_vs_best`] = ratioOf(rates(`ours ${kind} 64`), best)
    ratios[`transfer_${kind}_c64_vs_32`] = ratioOf(rates(`ours ${kind} 64`), of32)
    ratios[`transfer_${kind}_c256_vs_32`] = ratioOf(rates(`ours ${kind} 256`), of32)
  }
  ratios.hot_vs_uniform = ratioOf(rates('ours hot 64'), rates('ours uniform 64'))

  const transfers = figuresOf(samples)
  return { ratios, figures: { transfers }, tables: [tableOf('transfers', transfers)] }
}

function missingWithout(pgbench: Error): Record<string, string> {
  const keys = kinds.flatMap(kind => ['c64_vs_best', 'c64_vs_32', 'c256_vs_32'].map(end => `transfer_${kind}_${end}`))
  return Object.fromEntries(keys.map(key => [key, pgbench.message]))
}
