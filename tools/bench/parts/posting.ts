/**
 * What a transfer costs in PostgreSQL: core's posting, run in this process, in batches of 1, 10 and 100 transfers over one
 * connection.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import { table } from '../../../cli/admin/table.ts'
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import { openCore } from '../../../services/core/src/compose.ts'
import { coreSchema } from '../../../services/core/src/config.ts'
import type { LedgerRequest } from '../../../services/core/src/ledger/decide/requests.ts'
import { readThreadCpuTime } from '../measure/cpu.ts'
import type { Findings } from '../measure/report.ts'
import { inRounds } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Spread, spreadOf, textOfSpread } from '../measure/spread.ts'
import { walletsEach, workspaces } from '../testbed/plain/install.ts'
import { checkpoint, makeSigner, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('posting')
const batchSizes = [1, 10, 100] as const
/** These rounds take a second, so there are more of them than in the other parts. */
const roundsFactor = 4
/** What a transfer of the first release took, in bytes: log, and tables with indexes. */
const firstRelease = { wal: 2_500, disk: 1_500 }

/** A transfer: the number of its workspace, and those of its wallets within it, from 0. */
type Draw = { workspace: number; source: number; target: number }

type Posting = {
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
  const posting = await openPosting(testbed)
  const batches = Object.fromEntries(
    batchSizes.map(size => [size, Array.from({ length: settings.postingBatches }, () => drawBatch(size))]),
  )
  await checkpoint(testbed)
  for (const each of Object.values(batches)) for (const batch of each) await posting.post(batch)
  // Without statistics, PostgreSQL would choose other plans, and change them in the middle of the measurement.
  await query(posting.ownerUrl, 'analyze')

  const runs = batchSizes.map(size => [`batches of ${size}`, () => measure(testbed, posting, batches[size]!)] as const)
  const size = await sizeOf(posting)
  const samples = await inRounds(Object.fromEntries(runs), roundsFactor * settings.rounds, say)
  const perRound = batchSizes.reduce((sum, each) => sum + each, 0) * settings.postingBatches
  const transfers = (1 + roundsFactor * settings.rounds) * perRound
  const diskBytes = ((await sizeOf(posting)) - size) / transfers
  await posting.close()
  return findingsOf(samples, diskBytes)
}

function drawBatch(size: number): Draw[] {
  return Array.from({ length: size }, () => {
    const source = randomInt(walletsEach)
    return { workspace: randomInt(workspaces), source, target: (source + randomInt(1, walletsEach)) % walletsEach }
  })
}

/** Core's posting in this process, with one shard. */
async function openPosting(testbed: Testbed): Promise<Posting> {
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
        return core.places.home.shards.post(postingOf(workspaceId, wallets[source]!, wallets[target]!))
      }),
    )
  await post(drawBatch(100))
  const backends = `select pid from pg_stat_activity where datname = current_database() and application_name = 'core ledger'`
  const [backend] = await query(database.ownerUrl, backends)
  return { ownerUrl: database.ownerUrl, pid: backend!.pid as number, post, close: () => core.close() }
}

/** A request for a transfer of 0.01 USD between two wallets. */
export function postingOf(
  workspaceId: Uuid<'workspace'>,
  sourceWalletId: Uuid<'wallet'>,
  targetWalletId: Uuid<'wallet'>,
): LedgerRequest {
  const posting = {
    kind: 'posting' as const,
    type: 'TRANSFER' as const,
    transferId: uuidFromId('transfer', mintId('transfer')),
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

async function measure(testbed: Testbed, { pid, post }: Posting, batches: Draw[][]): Promise<Sample> {
  const walBefore = await readWalPosition(testbed)
  const cpuBefore = readThreadCpuTime(pid)
  for (const batch of batches) await post(batch)
  const cpuAfter = readThreadCpuTime(pid)
  const transfers = batches.reduce((sum, batch) => sum + batch.length, 0)
  return {
    cpuMicros: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / transfers,
    walBytes: ((await readWalPosition(testbed)) - walBefore) / transfers,
  }
}

/** Bytes of the log so far. */
export async function readWalPosition({ postgres }: Testbed): Promise<number> {
  const sql = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as position`
  const [row] = await query(postgres.url('postgres'), sql)
  return row!.position as number
}

/** The bytes of transfers on disk, with their indexes. */
async function sizeOf({ ownerUrl }: Posting): Promise<number> {
  const [row] = await query(ownerUrl, `select pg_total_relation_size('transfer')::float8 as size`)
  return row!.size as number
}

type Figure = { cpuMicros?: Spread; walBytes: Spread }

function findingsOf(samples: Record<string, Sample[]>, diskBytes: number): Findings {
  const figures = Object.fromEntries(Object.entries(samples).map(([name, runs]) => [name, figureOf(runs)]))
  const walOf100 = samples['batches of 100']!.map(({ walBytes }) => walBytes / firstRelease.wal)
  return {
    ratios: { wal_per_transfer: walOf100, bytes_per_transfer: [diskBytes / firstRelease.disk] },
    figures: { posting: { ...figures, diskBytes } },
    tables: [tableOf(figures)],
  }
}

function figureOf(samples: Sample[]): Figure {
  const cpu = samples.flatMap(({ cpuMicros }) => cpuMicros ?? [])
  return {
    ...(cpu.length > 0 && { cpuMicros: spreadOf(cpu) }),
    walBytes: spreadOf(samples.map(({ walBytes }) => walBytes)),
  }
}

function tableOf(figures: Record<string, Figure>): string {
  const rows = Object.entries(figures).map(([name, { cpuMicros, walBytes }]) => [
    name,
    cpuMicros ? textOfSpread(cpuMicros) : '',
    textOfSpread(walBytes),
  ])
  return table(['posting, per transfer', 'CPU µs in PostgreSQL', 'bytes of WAL'], rows)
}
