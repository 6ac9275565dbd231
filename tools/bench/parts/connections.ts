/**
 * Signed transfers over one connection to hundreds, beside a service that makes one transaction of plain statements per
 * transfer and, if asked for, one that calls pgledger, and beside the same service behind PgBouncer. Each connection has one
 * request in flight. A checkpoint of PostgreSQL precedes each run.
 */
import { sayWithin } from '../../../cli/processes/say.ts'
import { drawChart, type Panel } from '../../charts/chart.ts'
import { noCpuTimes } from '../measure/cpu.ts'
import { type Figures, figuresOf, tableOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Run, startLoadProcess } from '../testbed/load-process.ts'
import { type Peer, startPeers, startPgledger, startPooled } from '../testbed/peers.ts'
import { checkpoint, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('connections')
const connectionCounts = [1, 4, 16, 64, 256]

export async function measureConnections(
  testbed: Testbed,
  { rounds, warmUpMs, measureMs, peerWorkspaces, pgledger, pgbouncer }: Settings,
): Promise<Findings> {
  const peers: Record<string, Peer> = {
    ...(await startPeers(testbed, 'bench_connections', peerWorkspaces)),
    ...(pgledger && { pgledger: await startPgledger(testbed, 'bench_pgledger', peerWorkspaces, pgledger) }),
    ...(pgbouncer && { pgbouncer: await startPooled(testbed, 'bench_pgbouncer', peerWorkspaces, pgbouncer) }),
  }
  const load = startLoadProcess()
  const contenders: Contenders<Run> = {}
  for (const connections of connectionCounts)
    for (const [name, { port, signers, watched }] of Object.entries(peers))
      contenders[contenderOf(name, connections)] = async () => {
        await checkpoint(testbed)
        const plan = { host: '127.0.0.1', ports: [port], connections, warmUpMs, measureMs, signers, kind: 'transfer' }
        return load.run({ ...plan, kind: 'transfer' }, watched)
      }
  const samples = await inRounds(contenders, rounds, say)
  load.stop()
  for (const { stop } of Object.values(peers)) await stop()
  return findingsOf(samples, Object.keys(peers))
}

function contenderOf(name: string, connections: number): string {
  return `${name} ${connections}`
}

async function findingsOf(samples: Record<string, Run[]>, peers: string[]): Promise<Findings> {
  const compare = (connections: number, read: (run: Run) => number | undefined, peer = 'transaction'): number[] => {
    const [service, other] = ['service', peer].map(name =>
      samples[contenderOf(name, connections)]!.flatMap(run => read(run) ?? []),
    )
    return ratiosOf(service!, other!)
  }
  const ratios: Findings['ratios'] = {
    p50_c1_vs_transaction: compare(1, ({ latencyMs }) => latencyMs.p50),
    p99_c256_vs_transaction: compare(256, ({ latencyMs }) => latencyMs.p99),
  }
  const missing: Findings['missing'] = {}
  for (const connections of connectionCounts)
    for (const peer of peers.filter(name => name !== 'service'))
      ratios[`transfer_c${connections}_vs_${peer}`] = compare(connections, ({ perSecond }) => perSecond, peer)
  for (const connections of [1, 16, 256]) {
    const key = `postgres_cpu_c${connections}_vs_transaction`
    const costs = compare(connections, ({ cpuMicros }) => cpuMicros?.postgres)
    if (costs.length > 0) ratios[key] = costs
    else missing[key] = noCpuTimes
  }
  const figures = figuresOf(samples)
  return {
    ratios,
    missing,
    figures: { connections: figures },
    tables: [tableOf('transfers over N connections', figures)],
    charts: { 'connections.svg': await drawChart(panelsOf(figures, peers)) },
  }
}

const seriesOf: Record<string, string> = {
  service: 'this service',
  transaction: 'one transaction per request',
  pgbouncer: 'this service behind PgBouncer',
}

function panelsOf(figures: Figures, peers: string[]): Panel[] {
  const pointsOf = (read: (name: string) => number) =>
    peers.flatMap(name =>
      connectionCounts.map(x => ({
        series: seriesOf[name] ?? name,
        x,
        y: read(contenderOf(name, x)),
      })),
    )
  const xTitle = 'connections'
  return [
    {
      title: 'Transfers per second',
      xTitle,
      yTitle: 'per second',
      points: pointsOf(name => figures[name]!.perSecond.median),
    },
    {
      title: 'Median latency',
      xTitle,
      yTitle: 'milliseconds',
      points: pointsOf(name => figures[name]!.latencyMs!.p50.median),
    },
  ]
}
