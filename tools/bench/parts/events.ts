/**
 * What reading the event log costs: core's CPU time for an event in the largest page, whose MACs it checks, compared with that of a
 * flow in the largest page of a wallet's flows; and how much others slow down the transfers of a workspace: four workspaces that read
 * such pages, over two connections each, and one that sends batches of transfers over eight.
 */
import { maxEvents, maxPageSize } from '@workspace-wallet/contract'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import { noCpuTimes } from '../measure/cpu.ts'
import { figuresOf, tableOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, largestOf, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { spreadOf } from '../measure/spread.ts'
import { type LoadProcess, type Run, startLoadProcess } from '../testbed/load-process.ts'
import { makeSigner, type Service, type Signer, type Testbed } from '../testbed/testbed.ts'
import { underAttack } from './neighbours.ts'

const say = sayWithin('events')
const wallets = 100
const readers = 4
const connectionsPerReader = 2
const batchConnections = 8
const victimConnections = 4
/** The events of a workspace before its first transfer: of each wallet, its creation and its deposit. */
const firstTransfer = 2 * wallets
const events = '/api/v1/event/query/events'

export async function measureEvents(testbed: Testbed, settings: Settings): Promise<Findings> {
  const { warmUpMs, measureMs, rounds } = settings
  const service = await testbed.startService(await testbed.createDatabase('bench_events'))
  const { core, gateway, admin } = service
  const signers = await Promise.all(Array.from({ length: readers }, () => makeSigner(admin, wallets)))
  const victim = await makeSigner(admin, wallets)
  const [load, attack] = [startLoadProcess(), startLoadProcess()]
  const base = { host: '127.0.0.1', ports: [gateway.port], warmUpMs, measureMs, signers }
  await fillPages(service, load, { ...base, connections: readers, kind: 'batch' }, signers)

  const watched = { gateway: gateway.process.pid!, core: core.process.pid!, postgres: testbed.postgres.pid }
  const read = (target: string, rows: number) => async () =>
    perRow(await load.run({ ...base, connections: readers, kind: 'get', target }, watched), rows)
  const page = `${events}/${firstTransfer}?size=${maxEvents}`
  const pages = await inRounds(
    {
      'an event': read(page, maxEvents),
      'a flow': read(`/api/v1/wallets/@wallet@/flows?size=${maxPageSize}`, maxPageSize),
    },
    rounds,
    say,
  )

  const transfers: LoadPlan = { ...base, connections: victimConnections, kind: 'transfer', signers: [victim] }
  // S002: too many at a time.
  const others = { ...base, allowedFailures: ['S002'] }
  const attacks: Record<string, LoadPlan> = {
    pages: { ...others, connections: readers * connectionsPerReader, kind: 'get', target: page },
    batches: { ...others, connections: batchConnections, kind: 'batch', signers: signers.slice(0, 1) },
  }
  const contenders: Contenders<LoadResult> = { alone: () => load.run(transfers) }
  for (const [name, plan] of Object.entries(attacks))
    contenders[name] = () => underAttack(attack, plan, () => load.run(transfers))
  const latencies = await inRounds(contenders, rounds, say)
  for (const process of [load, attack]) process.stop()
  for (const program of [gateway, core]) await program.stop()

  const figures = figuresOf(pages)
  const p50 = (name: string) => latencies[name]!.map(({ latencyMs }) => latencyMs.p50)
  const victimMs = Object.fromEntries(Object.keys(latencies).map(name => [name, spreadOf(p50(name))]))
  const findings: Findings = {
    ratios: { victim_transfer_p50: largestOf(Object.keys(attacks).map(name => ratiosOf(p50(name), p50('alone')))) },
    figures: { events: { pages: figures, victimMs } },
    tables: [tableOf('of a page', figures)],
  }
  const costs = (name: string) => pages[name]!.flatMap(({ cpuMicros }) => cpuMicros?.core ?? [])
  const [event, flow] = [costs('an event'), costs('a flow')]
  if (event.length > 0) findings.ratios.event_page_cpu = ratiosOf(event, flow)
  else findings.missing = { event_page_cpu: noCpuTimes }
  return findings
}

/** Makes transfers until each of these workspaces has a full page of them. */
async function fillPages({ admin }: Service, load: LoadProcess, plan: LoadPlan, signers: readonly Signer[]) {
  const heads = () =>
    Promise.all(
      signers.map(async ({ workspaceId }) => {
        const page = { workspaceId, caller: { requestId: 'bench' }, after: 'head' as const }
        return (await admin.events.read.query(page)).last
      }),
    )
  say('making transfers')
  do await load.run(plan)
  while (Math.min(...(await heads())) < firstTransfer + maxEvents)
}

/** The rate and the CPU time of one row of a page. Latencies are those of pages. */
function perRow({ perSecond, cpuMicros, ...run }: Run, rows: number): Run {
  const costs = cpuMicros && Object.entries(cpuMicros).map(([name, micros]) => [name, micros / rows])
  return { ...run, perSecond: perSecond * rows, cpuMicros: costs && Object.fromEntries(costs) }
}
