/**
 * What a history costs that grows: core posts transfers in this process without a pause, with durable commits and autovacuum as in
 * operation. Then come the lists of the service and what operators do. It runs only by name, because many transfers take hours, and
 * almost 4 KB each with the log, a backup and its copy.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { signedHeaders } from '@workspace-wallet/client'
import { uuidFromId } from '@workspace-wallet/contract'
import { checkpointLines } from '@workspace-wallet/core-client'
import { createLog } from '@workspace-wallet/runtime'
import { table } from '../../../cli/admin/table.ts'
import { takeBaseBackup } from '../../../cli/backup/base-backup.ts'
import { restore } from '../../../cli/backup/restore.ts'
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import { openCore } from '../../../services/core/src/compose.ts'
import { coreSchema } from '../../../services/core/src/config.ts'
import { type EndedVerification, findLastVerifications } from '../../../services/core/src/integrity/records.ts'
import { runIfDue } from '../../../services/core/src/integrity/schedule/scheduler.ts'
import type { Core } from '../../../services/core/src/trpc/context.ts'
import { readCpuTimes } from '../measure/cpu.ts'
import type { Findings } from '../measure/report.ts'
import { median } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { walletsEach, workspaces } from '../testbed/plain/install.ts'
import { type Database, makeSigner, type Service, type Signer, type Testbed } from '../testbed/testbed.ts'
import { postingOf, readWalPosition } from './posting.ts'

const say = sayWithin('storage')
/** After each stretch, the cost of the transfers so far is read. */
const stretches = 10
/** Calls that wait for core at the same time. */
const calls = 256
const singlePosts = 100
const pageReads = 200
const never = new AbortController().signal

/** `bytes`: tables and indexes per transfer since the start. `wal`: the log per transfer. CPU times and latencies in microseconds. */
type Stretch = {
  transfers: number
  perSecond: number
  core: number
  postgres: number
  bytes: number
  wal: number
  singlePost: number
}

export async function measureStorage(testbed: Testbed, settings: Settings): Promise<Findings> {
  const database = await testbed.createDatabase('bench_storage')
  const service = await testbed.startService(database)
  const core = await openCore(configOf(testbed, database), log, never)
  try {
    return await measure(testbed, database, service, core.places.home, settings)
  } finally {
    await core.close()
    await service.gateway.stop()
    await service.core.stop()
  }
}

async function measure(
  testbed: Testbed,
  database: Database,
  service: Service,
  core: Core,
  settings: Settings,
): Promise<Findings> {
  say(`creating ${workspaces} workspaces with ${walletsEach} wallets each`)
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(service.admin, walletsEach)))
  const filling = { testbed, database, core, signers, bytesBefore: await bytesOf(database) }
  const filled: Stretch[] = []
  for (let transfers = 0; transfers < settings.storageTransfers; ) {
    filled.push(await fill(filling, transfers, Math.ceil(settings.storageTransfers / stretches)))
    transfers = filled.at(-1)!.transfers
    say(`${transfers} transfers, ${Math.round(filled.at(-1)!.perSecond)} per second`)
  }

  const seconds: Record<string, number> = {}
  const timed = async (what: string, work: () => Promise<unknown>) => {
    say(what)
    const startedAt = performance.now()
    await work()
    seconds[what] = (performance.now() - startedAt) / 1000
  }
  await timed('vacuum (freeze) of all transfers', () => query(database.ownerUrl, 'vacuum (freeze, analyze) transfer'))
  const pages = await timePages(service, signers[0]!)
  await timed('checkpoint', async () => {
    for await (const _ of checkpointLines(service.admin));
  })
  const whole = await verify(core)
  seconds[`whole verification of ${whole.flows} flows`] = secondsOf(whole)
  const backup = join(testbed.directory, 'storage.tar')
  await timed('backup', () => takeBaseBackup(database.ownerUrl, backup))
  const backupBytes = (await stat(backup)).size
  await timed('unpacking the backup', () => restore(backup, join(testbed.directory, 'restored')))
  await post(core, signers, Math.ceil(settings.storageTransfers / 100))
  const incremental = await verify(core)
  seconds[`incremental verification of ${incremental.flows} flows`] = secondsOf(incremental)

  return {
    ratios: {},
    figures: { storage: { stretches: filled, seconds, pages, backupBytes, objects: await objectsOf(database) } },
    tables: [
      tableOf(filled),
      table(
        ['afterwards', 'seconds'],
        Object.entries(seconds).map(([what, each]) => [what, each.toFixed(1)]),
      ),
      table(
        ['read over one connection', 'ms'],
        Object.entries(pages).map(([what, each]) => [what, each.toFixed(2)]),
      ),
    ],
  }
}

const { log } = createLog('bench', 'warn')

type Filling = { testbed: Testbed; database: Database; core: Core; signers: Signer[]; bytesBefore: number }

/** Posts `count` transfers after as many as there are. */
async function fill(
  { testbed, database, core, signers, bytesBefore }: Filling,
  before: number,
  count: number,
): Promise<Stretch> {
  const read = async () => ({
    ...process.cpuUsage(),
    postgres: readCpuTimes({ postgres: testbed.postgres.pid })?.postgres ?? Number.NaN,
    wal: await readWalPosition(testbed),
    ms: performance.now(),
  })
  const start = await read()
  await post(core, signers, count)
  const end = await read()
  const transfers = before + count
  return {
    transfers,
    perSecond: (count * 1000) / (end.ms - start.ms),
    core: (end.user + end.system - start.user - start.system) / count,
    postgres: (end.postgres - start.postgres) / count,
    bytes: ((await bytesOf(database)) - bytesBefore) / transfers,
    wal: (end.wal - start.wal) / count,
    singlePost: await timeSinglePosts(core, signers),
  }
}

/** Posts so many transfers between random wallets of random workspaces, `calls` at a time. */
async function post(core: Core, signers: Signer[], count: number): Promise<void> {
  let left = count
  await Promise.all(
    Array.from({ length: calls }, async () => {
      while (left-- > 0) await core.shards.post(randomPosting(signers))
    }),
  )
}

/** The median time of a transfer while there are no others, in microseconds. */
async function timeSinglePosts(core: Core, signers: Signer[]): Promise<number> {
  const times: number[] = []
  for (let count = 0; count < singlePosts; count++) {
    const startedAt = performance.now()
    await core.shards.post(randomPosting(signers))
    times.push((performance.now() - startedAt) * 1000)
  }
  return median(times)
}

function randomPosting(signers: Signer[]) {
  const { workspaceId, wallets } = signers[randomInt(signers.length)]!
  const source = randomInt(wallets.length)
  const target = (source + randomInt(1, wallets.length)) % wallets.length
  const walletOf = (at: number) => uuidFromId('wallet', wallets[at]!)!
  return postingOf(uuidFromId('workspace', workspaceId)!, walletOf(source), walletOf(target))
}

/** The verification that is due: a whole one first, then an incremental one. */
async function verify(core: Core): Promise<EndedVerification> {
  const last = async () => {
    const { whole, incremental } = await findLastVerifications(core)
    return incremental ?? whole
  }
  const before = await last()
  say('waiting for the next verification, and for its end')
  for (;;) {
    await runIfDue({ ...core, databaseWriters: null }, { everyMs: 1, wholeEveryMs: Number.MAX_SAFE_INTEGER }, never)
    const ended = await last()
    if (ended && ended.endedAt.getTime() !== before?.endedAt.getTime()) return ended
    await setTimeout(100)
  }
}

function secondsOf({ startedAt, endedAt }: EndedVerification): number {
  return (endedAt.getTime() - startedAt.getTime()) / 1000
}

/** The median times of requests to the gateway, in milliseconds. */
async function timePages({ gateway }: Service, signer: Signer): Promise<Record<string, number>> {
  const get = async (target: string) => {
    const headers = await signedHeaders(signer, { method: 'GET', target })
    const startedAt = performance.now()
    const response = await fetch(gateway.url + target, { headers })
    const { success, code, data } = (await response.json()) as { success: boolean; code: string; data: never }
    if (!success) throw new Error(`GET ${target} failed with ${code}`)
    return { ms: performance.now() - startedAt, data: data as { page: { totalPages: number } } }
  }
  const orders = '/api/v1/transfer/query/orders'
  const flows = `/api/v1/wallets/${signer.wallets[0]}/flows`
  const lastOf = async (target: string) => `${target}?page=${(await get(target)).data.page.totalPages - 1}`
  const targets = {
    'first page of all orders': orders,
    'last page of all orders': await lastOf(orders),
    'first page of the flows of a wallet': flows,
    'last page of the flows of a wallet': await lastOf(flows),
    'balance of a wallet': `/api/v1/wallets/${signer.wallets[0]}/balance`,
    'page of 100 events': '/api/v1/event/query/events/0?size=100',
  }
  const times: Record<string, number> = {}
  for (const [what, target] of Object.entries(targets)) {
    say(what)
    const samples: number[] = []
    for (let count = 0; count < pageReads; count++) samples.push((await get(target)).ms)
    times[what] = median(samples)
  }
  return times
}

async function bytesOf({ ownerUrl }: Database): Promise<number> {
  const [row] = await query(ownerUrl, 'select pg_database_size(current_database())::float8 as size')
  return row!.size as number
}

/** The largest tables and indexes, in bytes. */
function objectsOf({ ownerUrl }: Database): Promise<Record<string, unknown>[]> {
  return query(
    ownerUrl,
    `select relname as name, pg_relation_size(oid)::float8 as bytes from pg_class where relkind in ('r', 'i')
     order by 2 desc limit 20`,
  )
}

function tableOf(filled: Stretch[]): string {
  const rows = filled.map(each =>
    [
      each.transfers,
      ...[each.perSecond, each.core, each.postgres, each.bytes, each.wal, each.singlePost].map(Math.round),
    ].map(String),
  )
  const headings = [
    'transfers',
    'per second',
    'CPU µs of core',
    'of PostgreSQL',
    'bytes',
    'bytes of WAL',
    'µs of a single post',
  ]
  return table(headings, rows)
}

function configOf({ keyEncryptionKeys, ledgerChainKey }: Testbed, { serviceUrl }: Database) {
  return coreSchema.parse({
    DATABASE_URL: serviceUrl,
    KEY_ENCRYPTION_KEYS: keyEncryptionKeys,
    LEDGER_CHAIN_KEY: ledgerChainKey,
    RECEIPT_KEYS: `r1:${randomBytes(32).toString('base64')}`,
    SERVICE_TOKENS: `bench:admin:${'x'.repeat(32)}`,
    VERIFY_EVERY_MINUTES: '0',
  })
}
