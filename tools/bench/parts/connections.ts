/**
 * Signed transfers over one connection to hundreds, beside a service that makes one transaction of plain statements per
 * transfer. Each connection has one request in flight. A checkpoint of PostgreSQL precedes each run.
 */
import { sayWithin } from '../../../cli/processes/say.ts'
import { drawChart, type Panel } from '../measure/chart.ts'
import { noCpuTimes } from '../measure/cpu.ts'
import { type Figures, figuresOf, tableOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Run, startLoadProcess } from '../testbed/load-process.ts'
import { type PeerName, peerNames, startPeers } from '../testbed/peers.ts'
import { checkpoint, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('connections')
const connectionCounts = [1, 4, 16, 64, 256]

export async function measureConnections(
  testbed: Testbed,
  { rounds, warmUpMs, measureMs, peerWorkspaces }: Settings,
): Promise<Findings> {
  const peers = await startPeers(testbed, 'bench_connections', peerWorkspaces)
  const load = startLoadProcess()
  const contenders: Contenders<Run> = {}
  for (const connections of connectionCounts)
    for (const name of peerNames)
      contenders[contenderOf(name, connections)] = async () => {
        const { port, signers, watched } = peers[name]
        await checkpoint(testbed)
        const plan = { host: '127.0.0.1', ports: [port], connections, warmUpMs, measureMs, signers, kind: 'transfer' }
        return load.run({ ...plan, kind: 'transfer' }, watched)
      }
  const samples = await inRounds(contenders, rounds, say)
  load.stop()
  for (const { stop } of Object.values(peers)) await stop()
  return findingsOf(samples)
}

function contenderOf(name: PeerName, connections: number): string {
  return `${name} ${connections}`
}

async function findingsOf(samples: Record<string, Run[]>): Promise<Findings> {
  const compare = (connections: number, read: (run: Run) => number | undefined): number[] => {
    const [service, transaction] = peerNames.map(name =>
      samples[contenderOf(name, connections)]!.flatMap(run => read(run) ?? []),
    )
    return ratiosOf(service!, transaction!)
  }
  const ratios: Findings['ratios'] = {
    p50_c1_vs_transaction: compare(1, ({ latencyMs }) => latencyMs.p50),
    p99_c256_vs_transaction: compare(256, ({ latencyMs }) => latencyMs.p99),
  }
  const missing: Findings['missing'] = {}
  for (const connections of connectionCounts)
    ratios[`transfer_c${connections}_vs_transaction`] = compare(connections, ({ perSecond }) => perSecond)
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
    charts: { 'connections.svg': await drawChart(panelsOf(figures)) },
  }
}

function panelsOf(figures: Figures): Panel[] {
  const pointsOf = (read: (name: string) => number) =>
    peerNames.flatMap(name =>
      connectionCounts.map(x => ({
        series: name === 'service' ? 'this service' : 'one transaction per request',
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
