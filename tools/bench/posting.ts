/**
 * What a transfer costs in PostgreSQL: core's posting, run in this process, compared with the writing of the first release,
 * in batches of 100 transfers over one connection. Each has a database of its own, and all grow at the same pace.
 *
 * The first release competes twice: what its two databases differ by is the error of the measurement.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import { table } from '../../cli/admin/table.ts'
import { openCore } from '../../services/core/src/compose.ts'
import { coreSchema } from '../../services/core/src/config.ts'
import type { LedgerRequest } from '../../services/core/src/ledger/posting/requests.ts'
import { query } from '../services/database.ts'
import { sayWithin } from '../services/say.ts'
import { connectFirstRelease, postAsFirstRelease } from './baseline/first-release.ts'
import { benchId, installBaseline, walletsEach, workspaces } from './baseline/install.ts'
import { noCpuTimes, readThreadCpuTime } from './cpu.ts'
import type { Findings } from './report.ts'
import { inRounds, median, ratiosOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { type Spread, spreadOf, textOfSpread } from './spread.ts'
import { checkpoint, makeSigner, type Testbed } from './testbed.ts'

const say = sayWithin('posting')
const batchSize = 100
/** These rounds take a second, so there are more of them than in the other parts. */
const roundsFactor = 4
/** Of the first release, in bytes per transfer: log, and tables with indexes. */
const firstRelease = { wal: 2_500, disk: 1_500 }

/** A transfer: the number of its workspace, and those of its wallets within it, from 0. */
type Draw = { workspace: number; source: number; target: number }

type Contender = {
  ownerUrl: string
  /** The process of PostgreSQL that posts. */
  pid: number
  post(batch: Draw[]): Promise<unknown>
  close(): Promise<void>
}

/** For each transfer: CPU time of PostgreSQL's process in microseconds, if known, and bytes of the log. */
type Sample = { cpuMicros: number | null; walBytes: number }

export async function measurePosting(testbed: Testbed, settings: Settings): Promise<Findings> {
  say(`creating ${workspaces} workspaces with ${walletsEach} wallets each`)
  const contenders: Record<string, Contender> = {
    'first release': await openFirstRelease(testbed, 'bench_first_release'),
    control: await openFirstRelease(testbed, 'bench_control'),
    core: await openPosting(testbed),
  }
  const batches = Array.from({ length: settings.postingBatches }, drawBatch)
  await checkpoint(testbed)
  for (const { ownerUrl, post } of Object.values(contenders)) {
    for (const batch of batches) await post(batch)
    // Without statistics, PostgreSQL would choose other plans, and change them in the middle of the measurement.
    await query(ownerUrl, 'analyze')
  }

  const runs = Object.entries(contenders).map(([name, each]) => [name, () => measure(testbed, each, batches)] as const)
  const sizes = await sizesOf(contenders)
  const samples = await inRounds(Object.fromEntries(runs), roundsFactor * settings.rounds, say)
  const grown = await sizesOf(contenders)
  const transfers = (1 + roundsFactor * settings.rounds) * batches.length * batchSize
  for (const { close } of Object.values(contenders)) await close()

  const disk = (name: string) => (grown[name]! - sizes[name]!) / transfers
  return findingsOf(samples, Object.fromEntries(Object.keys(contenders).map(name => [name, disk(name)])))
}

function drawBatch(): Draw[] {
  return Array.from({ length: batchSize }, () => {
    const source = randomInt(walletsEach)
    return { workspace: randomInt(workspaces), source, target: (source + randomInt(1, walletsEach)) % walletsEach }
  })
}

async function openFirstRelease(testbed: Testbed, name: string): Promise<Contender> {
  const { ownerUrl } = await testbed.createEmptyDatabase(name)
  await installBaseline(ownerUrl)
  const client = await connectFirstRelease(ownerUrl)
  const [{ pid }] = (await client.query('select pg_backend_pid() as pid')).rows
  const wallet = (workspace: number, number: number) => benchId((workspace + 1) * 1000 + number)
  const post = (batch: Draw[]) =>
    postAsFirstRelease(
      client,
      batch.map(({ workspace, source, target }) =>
        postingOf(benchId(workspace + 1), wallet(workspace, source), wallet(workspace, target)),
      ),
    )
  return { ownerUrl, pid, post, close: () => client.end() }
}

/** Core's posting in this process, with one shard. */
async function openPosting(testbed: Testbed): Promise<Contender> {
  const database = await testbed.createDatabase('bench_posting')
  const service = await testbed.startService(database)
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(service.admin, walletsEach)))
  await service.gateway.stop()
  await service.core.stop()

  const config = coreSchema.parse({
    DATABASE_URL: database.serviceUrl,
    KEY_ENCRYPTION_KEYS: testbed.keyEncryptionKeys,
    LEDGER_CHAIN_KEY: testbed.ledgerChainKey,
    LEDGER_SHARDS: '1',
    RECEIPT_KEYS: `r1:${randomBytes(32).toString('base64')}`,
    SERVICE_TOKENS: `bench:admin:${'x'.repeat(32)}`,
  })
  const core = await openCore(config, createLog('bench', 'warn').log, new AbortController().signal)
  const ids = signers.map(({ workspaceId, wallets }) => ({
    workspaceId: uuidFromId('workspace', workspaceId)!,
    wallets: wallets.map(id => uuidFromId('wallet', id)!),
  }))
  const post = (batch: Draw[]) =>
    Promise.all(
      batch.map(({ workspace, source, target }) => {
        const { workspaceId, wallets } = ids[workspace]!
        return core.shards.post(postingOf(workspaceId, wallets[source]!, wallets[target]!))
      }),
    )
  await post(drawBatch())
  const backends = `select pid from pg_stat_activity where datname = current_database() and application_name = 'core ledger'`
  const [backend] = await query(database.ownerUrl, backends)
  return { ownerUrl: database.ownerUrl, pid: backend!.pid as number, post, close: () => core.close() }
}

/** A request for a transfer of 0.01 USD between two wallets. IDs are UUIDs. */
export function postingOf(workspaceId: string, sourceWalletId: string, targetWalletId: string): LedgerRequest {
  const posting = {
    kind: 'posting' as const,
    type: 'TRANSFER' as const,
    transferId: uuidFromId('transfer', mintId('transfer'))!,
    bizId: null,
    sourceWalletId,
    targetWalletId,
    amount: '0.01',
    currency: 'USD',
    remark: null,
    reference: null,
    batchId: null,
    draw: null,
    actor: 'key:ak_00000000000000000000000000',
    requestId: 'req_00000000-0000-0000-0000-000000000000',
    clientAddress: '127.0.0.1',
  }
  return { workspaceId, commands: [posting], mayBePosted: false, deadlineMs: Number.POSITIVE_INFINITY }
}

async function measure(testbed: Testbed, { pid, post }: Contender, batches: Draw[][]): Promise<Sample> {
  const walBefore = await readWalPosition(testbed)
  const cpuBefore = readThreadCpuTime(pid)
  for (const batch of batches) await post(batch)
  const cpuAfter = readThreadCpuTime(pid)
  const transfers = batches.length * batchSize
  return {
    cpuMicros: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / transfers,
    walBytes: ((await readWalPosition(testbed)) - walBefore) / transfers,
  }
}

/** Bytes of the log so far. */
async function readWalPosition({ postgres }: Testbed): Promise<number> {
  const sql = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as position`
  const [row] = await query(postgres.url('postgres'), sql)
  return row!.position as number
}

/** The bytes of transfers on disk, with their indexes. The baseline has a table of flows; of core's view the size is 0. */
async function sizesOf(contenders: Record<string, Contender>): Promise<Record<string, number>> {
  const sql = `select (pg_total_relation_size('transfer') + pg_total_relation_size('flow'))::float8 as size`
  const sizes = Object.entries(contenders).map(async ([name, { ownerUrl }]) => {
    const [row] = await query(ownerUrl, sql)
    return [name, row!.size as number] as const
  })
  return Object.fromEntries(await Promise.all(sizes))
}

type Figure = { cpuMicros?: Spread; walBytes: Spread; diskBytes: Spread }

function findingsOf(samples: Record<string, Sample[]>, diskBytes: Record<string, number>): Findings {
  const wal = (name: string) => samples[name]!.map(({ walBytes }) => walBytes)
  const cpu = (name: string) => samples[name]!.flatMap(({ cpuMicros }) => cpuMicros ?? [])
  const names = Object.keys(samples)
  const contenders = Object.fromEntries(
    names.map((name): [string, Figure] => [
      name,
      {
        ...(cpu(name).length > 0 && { cpuMicros: spreadOf(cpu(name)) }),
        walBytes: spreadOf(wal(name)),
        diskBytes: spreadOf([diskBytes[name]!]),
      },
    ]),
  )
  const findings: Findings = {
    ratios: {
      wal_per_transfer: wal('core').map(bytes => bytes / firstRelease.wal),
      bytes_per_transfer: [diskBytes.core! / firstRelease.disk],
    },
    figures: { posting: contenders },
    tables: [tableOf(contenders)],
  }
  if (cpu('core').length > 0) {
    const control = ratiosOf(cpu('control'), cpu('first release'))
    const ratios = ratiosOf(cpu('core'), cpu('first release'))
    findings.ratios.postgres_cpu_vs_first_release = ratios.map(ratio => ratio / median(control))
    findings.figures.posting = { ...contenders, controlRatio: spreadOf(control) }
  } else findings.missing = { postgres_cpu_vs_first_release: noCpuTimes }
  return findings
}

function tableOf(figures: Record<string, Figure>): string {
  const rows = Object.entries(figures).map(([name, { cpuMicros, walBytes, diskBytes }]) => [
    name,
    cpuMicros ? textOfSpread(cpuMicros) : '',
    textOfSpread(walBytes),
    textOfSpread(diskBytes),
  ])
  return table(['posting, per transfer', 'CPU µs in PostgreSQL', 'bytes of WAL', 'bytes on disk'], rows)
}
