/**
 * How much the expensive lists of some workspaces slow down another workspace: the 95th percentile of the latency of a
 * list while four workspaces with many orders request the most expensive lists, compared with the same list alone.
 */
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, largestOf, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { spreadOf } from '../measure/spread.ts'
import { type LoadProcess, startLoadProcess } from '../testbed/load-process.ts'
import type { Testbed } from '../testbed/testbed.ts'
import { type Filled, fill } from './lists/fill.ts'

const say = sayWithin('neighbours')
const neighbours = 4
const victimRows = 10_000
const connectionsPerNeighbour = 3
/** The measurement starts after core has seen that the requests of the others are expensive. */
const attackWarmUpMs = 1_000

/** A prefix that almost all orders have, sorted by another field, and a deep page. */
const expensiveLists = [
  '/api/v1/transfer/query/orders/wallet/@wallet@?bizIdPrefix=t&sort=amount,asc&page=4000&size=100',
  '/api/v1/transfer/query/orders?bizIdPrefix=t&sort=amount,asc&page=4000&size=100',
  '/api/v1/wallets/@wallet@/flows?transferIdPrefix=trf_0&direction=IN&sort=amount,asc&page=2000&size=100',
]

/** The measured lists: a page in order of creation, and a list with a filter and another order. */
const victimLists = {
  page: '/api/v1/transfer/query/orders',
  search: '/api/v1/transfer/query/orders?currency=EUR&sort=amount,desc',
}

export async function measureNeighbours(testbed: Testbed, settings: Settings): Promise<Findings> {
  const database = await testbed.createDatabase('bench_neighbours')
  const { core, gateway, admin } = await testbed.startService(database)
  const filled: Filled[] = []
  const rows = [...Array.from({ length: neighbours }, () => settings.neighbourRows), victimRows]
  for (const count of rows) filled.push(await fill({ core, gateway, admin }, database, count))
  say('vacuum and analyze')
  await query(database.ownerUrl, 'vacuum analyze')
  await query(database.ownerUrl, 'checkpoint')

  const [load, attack] = [startLoadProcess(), startLoadProcess()]
  const { warmUpMs, measureMs } = settings
  const base = { host: '127.0.0.1', ports: [gateway.port], kind: 'get' } as const
  const signers = filled.map(({ signer }) => signer)
  const plans = Object.entries(victimLists).map(([name, target]): [string, LoadPlan] => [
    name,
    { ...base, connections: 1, warmUpMs, measureMs, signers: signers.slice(-1), target },
  ])
  const attackPlan: LoadPlan = {
    ...base,
    connections: neighbours * connectionsPerNeighbour,
    warmUpMs,
    measureMs,
    signers: signers.slice(0, neighbours),
    targets: expensiveLists,
    // Too many lists at a time, or one that takes too long.
    allowedFailures: ['S002', 'S012'],
  }
  const contenders: Contenders<LoadResult> = {}
  for (const [name, plan] of plans) {
    contenders[`${name}, alone`] = () => load.run(plan)
    contenders[`${name}, attacked`] = () => underAttack(attack, attackPlan, () => load.run(plan))
  }
  const samples = await inRounds(contenders, settings.rounds, say)
  load.stop()
  attack.stop()
  await gateway.stop()
  await core.stop()

  const p95 = (name: string) => samples[name]!.map(({ latencyMs }) => latencyMs.p95)
  const ratios = plans.map(([name]) => ratiosOf(p95(`${name}, attacked`), p95(`${name}, alone`)))
  const p95Ms = Object.fromEntries(Object.keys(samples).map(name => [name, spreadOf(p95(name))]))
  return { ratios: { victim_list_p95: largestOf(ratios) }, figures: { neighbours: { p95Ms } } }
}

/** Measures while other workspaces send expensive requests. @param plan with the times of the measurement */
export async function underAttack<Result>(
  attack: LoadProcess,
  plan: LoadPlan,
  measure: () => Promise<Result>,
): Promise<Result> {
  const measureMs = attackWarmUpMs + plan.warmUpMs + plan.measureMs
  const attacked = attack.run({ ...plan, warmUpMs: 0, measureMs })
  await new Promise(resolve => setTimeout(resolve, attackWarmUpMs))
  const result = await measure()
  const { answered, failures } = await attacked
  say(`the other workspaces got ${answered} answers, and failures: ${JSON.stringify(failures)}`)
  return result
}
