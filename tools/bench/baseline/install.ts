import { readFile } from 'node:fs/promises'
import { query } from '../../services/database.ts'

/** Workspaces and wallets of each, as in wallets.sql. */
export const workspaces = 8
export const walletsEach = 100

/** Creates the first release's tables, the function that pgbench calls, and its wallets, in an empty database. */
export async function installBaseline(ownerUrl: string): Promise<void> {
  for (const name of ['schema.sql', 'function.sql', 'wallets.sql'])
    await query(ownerUrl, await readFile(new URL(name, import.meta.url), 'utf8'))
}

/** The UUID that `bench_id` makes of a number. */
export function benchId(number: number): string {
  return number
    .toString(16)
    .padStart(32, '0')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
