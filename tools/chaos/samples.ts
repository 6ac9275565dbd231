/** How memory, disk, latency and the lag of webhooks develop during a run. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../cli/processes/database.ts'
import { drawChart, type Panel } from '../charts/chart.ts'
import type { PartKind } from './parts/parts.ts'
import type { Testbed } from './testbed.ts'
import type { Traffic } from './traffic.ts'

/** A run has so many samples, however long it is. */
const samplesOfRun = 120
const readTimeoutMs = 1_000
/** Without PostgreSQL, whose processes share most of their memory. */
const watched: PartKind[] = ['gateway', 'core', 'courier', 'Redis']

/** What cannot be read, because a fault is in progress, is missing. Sizes in MiB. */
export type Sample = {
  minute: number
  /** Resident memory of the largest part of each kind, on Linux only. */
  memoryMiB: Partial<Record<PartKind, number>>
  /** The database on disk. */
  databaseMiB?: number
  /** Of acknowledged commands since the last sample, retries included. */
  latencyMs?: { p50: number; p99: number }
  acknowledged: number
  /** Events that active webhooks have not got yet. */
  waitingEvents?: number
}

/** Takes samples until it is stopped. */
export function takeSamples(testbed: Testbed, traffic: Traffic, minutes: number): { stop(): Promise<Sample[]> } {
  const stopping = new AbortController()
  const startedAt = performance.now()
  const samples: Sample[] = []
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await sleep((minutes * 60_000) / samplesOfRun, undefined, { signal: stopping.signal }).catch(() => {})
      const minute = (performance.now() - startedAt) / 60_000
      samples.push({ minute, ...(await takeSample(testbed, traffic)) })
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
      return samples
    },
  }
}

async function takeSample(testbed: Testbed, traffic: Traffic): Promise<Omit<Sample, 'minute'>> {
  const latencies = traffic.takeLatencies().toSorted((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)]!
  const [databaseMiB, waitingEvents] = await Promise.all([
    readDatabaseSize(testbed).catch(() => undefined),
    readWaitingEvents(testbed).catch(() => undefined),
  ])
  return {
    memoryMiB: readMemory(testbed),
    ...(databaseMiB !== undefined && { databaseMiB }),
    ...(latencies.length > 0 && { latencyMs: { p50: at(0.5), p99: at(0.99) } }),
    acknowledged: latencies.length,
    ...(waitingEvents !== undefined && { waitingEvents }),
  }
}

function readMemory({ parts }: Testbed): Sample['memoryMiB'] {
  const sizes: Sample['memoryMiB'] = {}
  for (const { kind, pid } of parts) {
    if (!watched.includes(kind)) continue
    const size = residentMiB(pid())
    if (size !== undefined) sizes[kind] = Math.max(sizes[kind] ?? 0, size)
  }
  return sizes
}

function residentMiB(pid: number): number | undefined {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) / 1024
  } catch {
    return undefined
  }
}

async function readDatabaseSize({ ownerUrl }: Testbed): Promise<number | undefined> {
  const text = 'select (pg_database_size(current_database()) / 1048576.0)::float8 as mebibytes'
  const rows = await Promise.race([query(ownerUrl, text), sleep(readTimeoutMs, undefined, { ref: false })])
  return rows?.[0]?.mebibytes as number | undefined
}

async function readWaitingEvents({ coreUrls }: Testbed): Promise<number> {
  return Promise.any(
    coreUrls.map(async url => {
      const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(readTimeoutMs) })
      const value = /^core_webhook_lag_events (\S+)$/m.exec(await answer.text())?.[1]
      if (value === undefined) throw new Error('core exports no lag of webhooks')
      return Number(value)
    }),
  )
}

/** The picture of a run. */
export function drawSamples(samples: readonly Sample[]): Promise<string> {
  const xTitle = 'minutes'
  const pointsOf = (series: string, read: (sample: Sample) => number | undefined) =>
    samples.flatMap(sample => {
      const y = read(sample)
      return y === undefined ? [] : [{ series, x: sample.minute, y }]
    })
  const panels: Panel[] = [
    {
      title: 'Latency of commands',
      xTitle,
      yTitle: 'milliseconds',
      linear: ['x'],
      points: [
        ...pointsOf('median', ({ latencyMs }) => latencyMs?.p50),
        ...pointsOf('99th percentile', ({ latencyMs }) => latencyMs?.p99),
      ],
    },
    {
      title: 'Memory of the largest part of each kind',
      xTitle,
      yTitle: 'MiB',
      linear: ['x', 'y'],
      points: watched.flatMap(kind => pointsOf(kind, ({ memoryMiB }) => memoryMiB[kind])),
    },
    {
      title: 'Database on disk',
      xTitle,
      yTitle: 'MiB',
      linear: ['x', 'y'],
      points: pointsOf('database', ({ databaseMiB }) => databaseMiB),
    },
    {
      title: 'Events that webhooks have not delivered yet',
      xTitle,
      yTitle: 'events',
      linear: ['x', 'y'],
      points: pointsOf('events', ({ waitingEvents }) => waitingEvents),
    },
  ]
  return drawChart(panels)
}
