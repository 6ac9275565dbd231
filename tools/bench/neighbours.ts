/**
 * What a workspace's expensive lists cost another workspace: the 95th percentile of a list's latency while four
 * workspaces with many orders ask for the dearest lists of the contract, against the same alone.
 */
import { query } from '../services/database.ts'
import { sayWithin } from '../services/say.ts'
import { type Load, startLoad } from './drive.ts'
import { rounded } from './figures.ts'
import { type Filled, fill } from './lists.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, median, ratioOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import type { Stage } from './stage.ts'

const say = sayWithin('neighbours')
const neighbours = 4
const victimRows = 10_000
const connectionsPerNeighbour = 3
/** The victim begins when its neighbours have shown what they are. */
const attackWarmUpMs = 1_000

/** A prefix that almost all orders share, sorted by another field, and a deep page of it. */
const dearest = [
  '/api/v1/transfer/query/orders/wallet/@wallet@?bizIdPrefix=t&sort=amount,asc&page=4000&size=100',
  '/api/v1/transfer/query/orders?bizIdPrefix=t&sort=amount,asc&page=4000&size=100',
  '/api/v1/wallets/@wallet@/flows?transferIdPrefix=trf_0&direction=IN&sort=amount,asc&page=2000&size=100',
]

/** What the victim asks for: a page in order of creation, and a list that is counted. */
const victimLists = {
  page: '/api/v1/transfer/query/orders',
  search: '/api/v1/transfer/query/orders?currency=EUR&sort=amount,desc',
}

export async function measureNeighbours(stage: Stage, settings: Settings): Promise<Findings> {
  const database = await stage.createDatabase('bench_neighbours')
  const { core, gateway, admin } = await stage.startService(database)
  const filled: Filled[] = []
  const rows = [...Array.from({ length: neighbours }, () => settings.neighbourRows), victimRows]
  for (const count of rows) filled.push(await fill({ core, gateway, admin }, database, count))
  say('vacuum and analyze')
  await query(database.ownerUrl, 'vacuum analyze')
  await query(database.ownerUrl, 'checkpoint')

  const [load, attack] = [startLoad(), startLoad()]
  const { warmUpMs, measureMs } = settings
  const base = { host: '127.0.0.1', port: gateway.port, kind: 'get' } as const
  const signers = filled.map(({ signer }) => signer)
  const plans = Object.entries(victimLists).map(([name, target]): [string, LoadPlan] => [
    name,
    { ...base, connections: 1, warmUpMs, measureMs, signers: signers.slice(-1), target },
  ])
  const attackPlan: LoadPlan = {
    ...base,
    connections: neighbours * connectionsPerNeighbour,
    warmUpMs: 0,
    measureMs: attackWarmUpMs + warmUpMs + measureMs,
    signers: signers.slice(0, neighbours),
    targets: dearest,
    // Too many at once, and too expensive.
    mayBeRefused: ['S002', 'S012'],
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
  const ratios = plans.map(([name]) => ratioOf(p95(`${name}, attacked`), p95(`${name}, alone`)))
  const p95Ms = Object.fromEntries(Object.keys(samples).map(name => [name, rounded(median(p95(name)))]))
  return { ratios: { victim_list_p95: Math.max(...ratios) }, figures: { neighbours: { p95Ms } } }
}

/** Its expensive lists are under way, and those that wait, before the victim asks. */
async function underAttack<Result>(attack: Load, plan: LoadPlan, measure: () => Promise<Result>): Promise<Result> {
  const attacked = attack.run(plan)
  await new Promise(resolve => setTimeout(resolve, attackWarmUpMs))
  const result = await measure()
  const { answered, refused } = await attacked
  say(`the neighbours had ${answered} answers, and ${JSON.stringify(refused)}`)
  return result
}
