import { readFile } from 'node:fs/promises'
import { query } from '../../../../cli/processes/database.ts'

/** Workspaces and wallets of each, as in wallets.sql. */
export const workspaces = 8
export const walletsEach = 100

/** Creates the plain schema, its function and its wallets, in an empty database. */
export async function installPlainSchema(ownerUrl: string): Promise<void> {
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

/** The IDs of the wallets of a workspace, which is counted from 1. */
export function walletIds(workspace: number): string[] {
  return Array.from({ length: walletsEach }, (_, at) => benchId(workspace * 1000 + at))
}
