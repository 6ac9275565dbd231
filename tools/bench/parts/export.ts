/**
 * `statement export` of a wallet with many flows: lines per second, and the peak memory of the command, which does not depend on
 * the number of lines.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { uuidFromId } from '@workspace-wallet/contract'
import { table } from '../../../cli/admin/table.ts'
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { Findings } from '../measure/report.ts'
import type { Settings } from '../measure/settings.ts'
import type { Database, Service, Testbed } from '../testbed/testbed.ts'

const say = sayWithin('export')
const script = fileURLToPath(new URL('../../../cli/admin.ts', import.meta.url))
/** A command that kept its lines would need more for the largest wallet. */
const heapLimit = '--max-old-space-size=64'

type Exported = { lines: number; perSecond: number; peakMegabytes: number | null }

export async function measureExport(testbed: Testbed, settings: Settings): Promise<Findings> {
  const database = await testbed.createDatabase('bench_export')
  const service = await testbed.startService(database)
  const measured: Exported[] = []
  for (const lines of settings.listSizes) measured.push(await measure(testbed, service, database, lines))
  await service.gateway.stop()
  await service.core.stop()
  const rows = measured.map(({ lines, perSecond, peakMegabytes }) =>
    [lines, perSecond, peakMegabytes ?? 'unknown'].map(String),
  )
  return {
    ratios: {},
    figures: { export: measured },
    tables: [table(['lines of an export', 'lines per second', 'peak memory in MB'], rows)],
  }
}

async function measure(testbed: Testbed, service: Service, database: Database, lines: number): Promise<Exported> {
  say(`filling a wallet with ${lines} flows`)
  const { workspaceId, walletId } = await fill(service, database, lines)
  const out = join(testbed.directory, `export-${lines}.csv`)
  const range = ['--from', '2d', '--to', '1m', '--format', 'csv', '--out', out]
  const args = [heapLimit, script, 'statement', 'export', '--workspace', workspaceId, '--wallet', walletId, ...range]
  say(`exporting ${lines} lines`)
  const startedAt = performance.now()
  const peakMegabytes = await run([...args, '--json'], { CORE_URL: service.core.url, CORE_TOKEN: testbed.adminToken })
  const seconds = (performance.now() - startedAt) / 1000
  return { lines, perSecond: Math.round(lines / seconds), peakMegabytes }
}

/** Runs the command. Returns its peak resident memory in MB; null where there is no /proc. */
async function run(args: string[], environment: NodeJS.ProcessEnv): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const env = { PATH: process.env.PATH, ...environment }
  const child = execFile(process.execPath, args, { env }, error => (error ? reject(error) : resolve()))
  let peak: number | null = null
  const sampling = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(status) ?? []
    if (kilobytes) peak = Math.round(Number(kilobytes) / 1000)
  }, 50)
  await promise.finally(() => clearInterval(sampling))
  return peak
}

/** A wallet with this number of deposits of 1.00, a day old. MACs are not valid: exports do not check them. */
async function fill({ admin }: Service, { ownerUrl }: Database, count: number) {
  const { workspaceId } = await admin.workspaces.create.mutate({ name: `Exported ${count}` })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Exported' })
  const [workspace, wallet] = [uuidFromId('workspace', workspaceId), uuidFromId('wallet', walletId)]
  await query(
    ownerUrl,
    `set session_replication_role = replica;
     insert into transfer (workspace_id, id, position, order_count, type, amount, currency, actor, request_id, created_at,
         source_wallet_id, source_sequence, source_order_count, source_balance, source_mac, target_wallet_id,
         target_sequence, target_order_count, target_balance, target_mac)
       select w.workspace_id, uuidv7(), l.position + n, 0, 'DEPOSIT', 1, 'USD', 'bench', 'bench',
         now() - interval '1 day' + n * interval '1 ms', e.id, n, 0, -n, '', w.id, n, 0, n, ''
       from wallet w join ledger l using (workspace_id) join wallet e on e.workspace_id = w.workspace_id and e.kind = 'EXTERNAL',
         generate_series(1, ${count}) n where w.workspace_id = '${workspace}' and w.id = '${wallet}';
     update wallet set sequence = ${count}, balance = ${count} where workspace_id = '${workspace}' and id = '${wallet}';
     reset session_replication_role; analyze transfer`,
  )
  return { workspaceId, walletId }
}
