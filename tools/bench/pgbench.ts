/** pgbench, the benchmark of PostgreSQL, with one SQL function call per transfer. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { query } from '../services/database.ts'
import { findProgram } from '../services/programs.ts'
import type { Database } from './testbed.ts'

/** The path of pgbench. @throws Error when it is not installed and cannot be installed */
export function findPgbench(): Promise<string> {
  return findProgram(['pgbench'], 'postgresql-contrib')
}

/** Creates the function that pgbench calls, and its wallets, in a database with the schema. */
export async function installBaseline(ownerUrl: string): Promise<void> {
  for (const name of ['function.sql', 'wallets.sql'])
    await query(ownerUrl, await readFile(new URL(`./baseline/${name}`, import.meta.url), 'utf8'))
}

/**
 * Measures transfers per second. The first `warmUpSeconds`, in which each connection fills its caches, do not count.
 */
export async function runPgbench(
  program: string,
  database: Database,
  kind: 'uniform' | 'hot',
  clients: number,
  { warmUpSeconds, seconds }: { warmUpSeconds: number; seconds: number },
): Promise<number> {
  const { hostname, port, username } = new URL(database.serviceUrl)
  const script = fileURLToPath(new URL(`./baseline/${kind}.pgbench`, import.meta.url))
  const connection = ['-h', hostname, '-p', port, '-U', username, database.name]
  const load = ['-M', 'prepared', '-n', '-j', '1', '-c', `${clients}`, '-T', `${warmUpSeconds + seconds}`]
  const { stderr } = await promisify(execFile)(program, [...load, '-P', '1', '-f', script, ...connection], {
    env: { PATH: process.env.PATH, PGPASSWORD: database.servicePassword },
  })
  const reports = [...stderr.matchAll(/^progress: ([\d.]+) s, ([\d.]+) tps/gm)].map(([, at, rate]) => ({
    at: Number(at),
    rate: Number(rate),
  }))
  const counted = reports.filter(({ at }) => at > warmUpSeconds + 0.5)
  if (counted.length === 0) throw new Error(`pgbench has reported no progress. Its output:\n${stderr}`)
  return counted.reduce((sum, { rate }) => sum + rate, 0) / counted.length
}
