/**
 * What a transfer costs if the workspaces are spread over several places: core's posting, run in this process, with 1, 2, 4 and 8
 * databases of one server, each of which gets as many transfers. One machine has no more transfers per second with more places; what
 * shows that more machines would is the CPU time of a transfer, which must not grow with their number. All places are open, but they
 * get their transfers in turn: on machines of their own, they would not compete for the caches of one. Beside it, what a transfer costs
 * if they do: all places at once.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import { table } from '../../../cli/admin/table.ts'
import { query } from '../../../cli/processes/database.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import { openCore } from '../../../services/core/src/compose.ts'
import { coreSchema } from '../../../services/core/src/config.ts'
import type { Core } from '../../../services/core/src/trpc/context.ts'
import { noCpuTimes, readCpuTimes } from '../measure/cpu.ts'
import type { Findings } from '../measure/report.ts'
import { inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { spreadOf, textOfSpread } from '../measure/spread.ts'
import { checkpoint, makeSigner, type Signer, type Testbed } from '../testbed/testbed.ts'
import { postingOf } from './posting.ts'

const say = sayWithin('places')
const counts = [1, 2, 4, 8] as const
const batchSize = 20
const walletsEach = 20
/** More batches than in the posting part: CPU times are in units of 10 ms. */
const batchesFactor = 20
/** What core does without transfers, such as its polls, is measured for so long, and left out. */
const idleMs = 2_000

/** The databases are copies of one, so each has the same workspace: this part calls the ledgers of the places directly. */
type Places = { urls: string[]; signer: Signer }

/** CPU time of a transfer in core and in PostgreSQL, in microseconds: if the places get their transfers in turn, and all at once. */
type Sample = Record<'inTurn' | 'atOnce', { core: number; postgres: number }>

export async function measurePlaces(testbed: Testbed, settings: Settings): Promise<Findings> {
  if (readCpuTimes({ postgres: testbed.postgres.pid }) === null)
    return { ratios: {}, figures: {}, missing: { cpu_8_places_vs_1: noCpuTimes } }
  const places = await makePlaces(testbed)
  await checkpoint(testbed)
  const runs = counts.map(count => [`${count}`, () => measure(testbed, places, count, settings)] as const)
  const samples = await inRounds(Object.fromEntries(runs), settings.rounds, say)
  const ratiosTo1 = (count: number, order: keyof Sample) => {
    const [several, one] = [count, 1].map(each => samples[each]!.map(run => run[order].core + run[order].postgres))
    return ratiosOf(several!, one!)
  }
  const rows = counts.map(count => [
    String(count),
    textOfSpread(spreadOf(samples[count]!.map(({ inTurn }) => inTurn.core))),
    textOfSpread(spreadOf(samples[count]!.map(({ inTurn }) => inTurn.postgres))),
    textOfSpread(spreadOf(ratiosTo1(count, 'inTurn'))),
    textOfSpread(spreadOf(ratiosTo1(count, 'atOnce'))),
  ])
  const headers = [
    'places',
    'CPU µs of core per transfer',
    'of PostgreSQL',
    'both, over one place',
    'the same, all at once',
  ]
  return {
    ratios: { cpu_8_places_vs_1: ratiosTo1(counts.at(-1)!, 'inTurn') },
    figures: { places: samples },
    tables: [table(headers, rows)],
  }
}

async function makePlaces(testbed: Testbed): Promise<Places> {
  say(`creating ${counts.at(-1)} databases`)
  const first = await testbed.createDatabase('bench_place_0')
  const service = await testbed.startService(first)
  const signer = await makeSigner(service.admin, walletsEach)
  await service.gateway.stop()
  await service.core.stop()
  const urls = [first.serviceUrl]
  for (let place = 1; place < counts.at(-1)!; place++) {
    const name = `bench_place_${place}`
    await query(testbed.postgres.url('postgres'), `create database ${name} template ${first.name}`)
    urls.push(Object.assign(new URL(first.serviceUrl), { pathname: `/${name}` }).href)
  }
  return { urls, signer }
}

async function measure(
  testbed: Testbed,
  { urls, signer }: Places,
  count: number,
  { postingBatches }: Settings,
): Promise<Sample> {
  const core = await openCore(configOf(testbed, urls.slice(0, count)), createLog('bench', 'warn').log, never.signal)
  const { all } = core.places
  const atOnce = async (batches: number) => {
    await Promise.all(all.map(place => postBatches(place, signer, batches)))
  }
  const inTurn = async (batches: number) => {
    for (const place of all) await postBatches(place, signer, batches)
  }
  await atOnce(postingBatches)
  const idle = await used(testbed, () => setTimeout(idleMs))
  const batches = postingBatches * batchesFactor
  async function costOf(post: (batches: number) => Promise<void>) {
    const posting = await used(testbed, () => post(batches))
    const cost = (name: 'core' | 'postgres') =>
      (posting[name] - (idle[name] * posting.ms) / idle.ms) / (count * batches * batchSize)
    return { core: cost('core'), postgres: cost('postgres') }
  }
  const sample = { inTurn: await costOf(inTurn), atOnce: await costOf(atOnce) }
  await core.close()
  return sample
}

const never = new AbortController()

/** The CPU times of core and PostgreSQL during some work, in microseconds, and its duration. */
async function used({ postgres }: Testbed, work: () => Promise<unknown>) {
  const read = () => ({
    ...process.cpuUsage(),
    postgres: readCpuTimes({ postgres: postgres.pid })!.postgres!,
    ms: performance.now(),
  })
  const before = read()
  await work()
  const after = read()
  return {
    core: after.user + after.system - before.user - before.system,
    postgres: after.postgres - before.postgres,
    ms: after.ms - before.ms,
  }
}

/** Each batch in turn, from one wallet to the next. */
async function postBatches({ shards }: Core, { workspaceId, wallets }: Signer, batches: number): Promise<void> {
  const workspace = uuidFromId('workspace', workspaceId)!
  const ids = wallets.map(id => uuidFromId('wallet', id)!)
  for (let batch = 0; batch < batches; batch++)
    await Promise.all(
      Array.from({ length: batchSize }, (_, at) =>
        shards.post(postingOf(workspace, ids[at % ids.length]!, ids[(at + 1) % ids.length]!)),
      ),
    )
}

function configOf({ keyEncryptionKeys, ledgerChainKey }: Testbed, [first, ...others]: string[]) {
  return coreSchema.parse({
    DATABASE_URL: first,
    DATABASE_URLS: others.join(' '),
    KEY_ENCRYPTION_KEYS: keyEncryptionKeys,
    LEDGER_CHAIN_KEY: ledgerChainKey,
    LEDGER_SHARDS: '1',
    RECEIPT_KEYS: `r1:${randomBytes(32).toString('base64')}`,
    SERVICE_TOKENS: `bench:admin:${'x'.repeat(32)}`,
    VERIFY_EVERY_MINUTES: '0',
  })
}
