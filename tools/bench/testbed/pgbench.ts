/** pgbench, the benchmark of PostgreSQL, with one SQL function call per transfer. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Postgres } from '../../../cli/processes/postgres.ts'
import { findProgram } from '../../../cli/processes/programs.ts'
import { type CpuTimes, costPerOperation, readCpuTimes, readEndedCpuTime } from '../measure/cpu.ts'

/** The path of pgbench. @throws Error when it is not installed and cannot be installed */
export function findPgbench(): Promise<string> {
  return findProgram(['pgbench'], 'postgresql-contrib')
}

/** `cpuMicros`: the CPU time of one transfer in PostgreSQL and pgbench, in microseconds. */
export type PgbenchResult = { perSecond: number; cpuMicros: CpuTimes | null }

/**
 * Measures transfers per second. The first `warmUpSeconds`, in which each connection fills its caches, do not count.
 *
 * @param url of the database, with the role that owns the tables of the plain schema
 */
export async function runPgbench(
  program: string,
  { postgres, url }: { postgres: Postgres; url: string },
  kind: 'uniform' | 'hot',
  clients: number,
  { warmUpSeconds, seconds }: { warmUpSeconds: number; seconds: number },
): Promise<PgbenchResult> {
  const { hostname, port, username, password, pathname } = new URL(url)
  const script = fileURLToPath(new URL(`./plain/${kind}.pgbench`, import.meta.url))
  const connection = ['-h', hostname, '-p', port, '-U', username, pathname.slice(1)]
  const load = ['-M', 'prepared', '-n', '-j', '1', '-c', `${clients}`, '-T', `${warmUpSeconds + seconds}`]
  const before = readTimes(postgres)
  const { stdout, stderr } = await promisify(execFile)(program, [...load, '-P', '1', '-f', script, ...connection], {
    env: { PATH: process.env.PATH, PGPASSWORD: decodeURIComponent(password) },
  })
  const after = readTimes(postgres)
  const reports = [...stderr.matchAll(/^progress: ([\d.]+) s, ([\d.]+) tps/gm)].map(([, at, rate]) => ({
    at: Number(at),
    rate: Number(rate),
  }))
  const counted = reports.filter(({ at }) => at > warmUpSeconds + 0.5)
  if (counted.length === 0) throw new Error(`pgbench has reported no progress. Its output:\n${stderr}`)
  const transfers = Number(/^number of transactions actually processed: (\d+)/m.exec(stdout)?.[1])
  return {
    perSecond: counted.reduce((sum, { rate }) => sum + rate, 0) / counted.length,
    cpuMicros: costPerOperation(before, after, transfers),
  }
}

/** pgbench has exited when its CPU time is read: it is the only child of this process that exits meanwhile. */
function readTimes({ pid }: Postgres): CpuTimes | null {
  const times = readCpuTimes({ postgres: pid })
  const pgbench = readEndedCpuTime()
  return times && pgbench !== null ? { ...times, pgbench } : null
}
