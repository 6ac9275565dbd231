/**
 * What reading the event log costs: core's CPU time for an event in the largest page, with its MACs checked, compared with that
 * for a flow in the largest page of a wallet's flows; and how much eight readers of such pages slow down the transfers of another
 * workspace.
 */
import { type EventPage, maxEvents, maxPageSize } from '@workspace-wallet/contract'
import { table } from '../../cli/admin/table.ts'
import { sayWithin } from '../services/say.ts'
import { noCpuTimes } from './cpu.ts'
import { figuresOf, tableOf } from './figures.ts'
import type { LoadPlan } from './load.ts'
import { type LoadProcess, type Run, startLoadProcess } from './load-process.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, ratiosOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { spreadOf } from './spread.ts'
import { makeSigner, type Service, type Signer, type Testbed } from './testbed.ts'

const say = sayWithin('events')
const connections = 4
const wallets = 100
/** Readers of the largest pages, and connections that make the transfers of the other workspace. */
const readers = 8
const victimConnections = 4
/** The measurement starts after core has seen what the readers cost. */
const attackWarmUpMs = 500

export async function measureEvents(testbed: Testbed, settings: Settings): Promise<Findings> {
  const { warmUpMs, measureMs, rounds } = settings
  const service = await testbed.startService(await testbed.createDatabase('bench_events'))
  const { core, gateway, admin } = service
  const signer = await makeSigner(admin, wallets)
  const victim = await makeSigner(admin, wallets)
  const [load, attack] = [startLoadProcess(), startLoadProcess()]
  const base = { host: '127.0.0.1', ports: [gateway.port], connections, warmUpMs, measureMs, signers: [signer] }
  say('making transfers')
  await load.run({ ...base, kind: 'batch' })
  const targets = await pagesOf(service, signer)

  const watched = {
    gateway: gateway.process.pid!,
    core: core.process.pid!,
    postgres: testbed.postgres.pid,
    redis: testbed.redis.pid(),
  }
  const read = (target: Pick<LoadPlan, 'target' | 'targets'>, size: number) => async () =>
    perRow(await load.run({ ...base, kind: 'get', ...target }, watched), size)
  const samples = await inRounds<Run>(
    {
      events: read({ targets: targets.map(after => `${path}${after}?size=${maxEvents}`) }, maxEvents),
      flows: read({ target: `/api/v1/wallets/@wallet@/flows?size=${maxPageSize}` }, maxPageSize),
    },
    rounds,
    say,
  )
  console.log(targets.length)
  load.stop()
  attack.stop()
  await gateway.stop()
  await core.stop()
  const events = figuresOf(samples)
  const costs = (name: string) => samples[name]!.flatMap(({ cpuMicros }) => cpuMicros?.core ?? [])
  const findings: Findings = { ratios: {}, figures: { events }, tables: [tableOf('one row of a page', events)] }
  findings.ratios.event_page_cpu = ratiosOf(costs('events'), costs('flows'))
  return findings
}

const path = '/api/v1/event/query/events/'

/** The positions after which full pages of transfers begin. */
async function pagesOf({ admin }: Service, { workspaceId }: Signer): Promise<number[]> {
  const { last } = await admin.events.read.query({ workspaceId, caller: { requestId: 'bench' }, after: 'head' })
  const first = 2 * wallets
  return Array.from({ length: Math.floor((last - first) / maxEvents) }, (_, at) => first + at * maxEvents)
}

/** The rate and the CPU time of one row of a page. */
function perRow({ perSecond, cpuMicros, ...run }: Run, rows: number): Run {
  const costs = cpuMicros && Object.entries(cpuMicros).map(([name, micros]) => [name, micros / rows])
  return { ...run, perSecond: perSecond * rows, cpuMicros: costs && Object.fromEntries(costs) }
}
