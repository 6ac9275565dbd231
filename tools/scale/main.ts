/**
 * `npm run scale` runs the service on buckets of a Citus cluster, moves them and kills nodes while clients send requests, and then
 * checks that nothing was lost, duplicated or left unexplained: docs/scale.md.
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkpointLines, verifyLedger } from '@workspace-wallet/core-client'
import { table } from '../../cli/admin/table.ts'
import { parseCount } from '../../cli/admin/values.ts'
import { anyText, type Values } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { createCitusDatabase, dropCitusDatabase } from '../../cli/processes/citus.ts'
import { query } from '../../cli/processes/database.ts'
import { Random } from '../../cli/processes/random.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { accountFor } from '../chaos/accounting.ts'
import type { Discrepancies } from '../chaos/reconcile.ts'
import { untilServed } from '../chaos/recovery.ts'
import { Tail } from '../chaos/tail.ts'
import { startTestbed, type Testbed } from '../chaos/testbed.ts'
import { Traffic } from '../chaos/traffic.ts'
import { verifyDump } from './dump.ts'
import { checkFeatures, newTenant } from './features.ts'

const databaseProgram = fileURLToPath(new URL('../../cli/database.ts', import.meta.url))
const run = promisify(execFile)
const say = sayWithin('scale')
/** Load before and after a fault. */
const loadMs = 5_000
/** What callers may see at any time: a rejected command of a wallet without money, and what they repeat. */
const expectedCodes = ['2000', 'T002', 'S002', 'no answer']

const flags = {
  coordinator: {
    value: 'URL',
    help: 'a database of the coordinator that has Citus, as a superuser',
    required: true,
    parse: anyText,
  },
  restart: {
    value: 'PROGRAM',
    help: 'a program that starts the node again whose HOST:PORT it gets; without it, no node is killed',
    parse: anyText,
  },
  dump: {
    value: 'PROGRAM',
    help: 'pg_dump of PostgreSQL 18; without it, no bucket is restored into PostgreSQL',
    parse: anyText,
  },
  buckets: { value: 'N', help: 'how many buckets to create, two or more', default: '4', parse: parseCount },
  pause: {
    value: 'MS',
    help: 'longest pause of each of the 48 clients between two tasks',
    default: '20',
    parse: Number,
  },
  keep: { help: 'keep the database afterwards' },
} as const

/** A fault, and codes that its callers may see besides `expectedCodes`. */
type Fault = { what: string; inject(): Promise<void>; mayAnswer?: string[] }
type Seen = { what: string; seconds: string; noAnswer: string; answers: string }

async function runScale({ coordinator, restart, dump, buckets, pause, keep }: Values<typeof flags>): Promise<void> {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => interrupted.abort(new Error('the run was interrupted')))
  const name = `scale_${Date.now()}`
  say(`creating the database ${name} with ${buckets} buckets`)
  const { url, workers } = await createCitusDatabase(coordinator, name)
  const { host, pathname } = new URL(url)
  const serviceUrl = `postgres://wallet_service:wallet_service@${host}${pathname}`
  const places = Array.from({ length: buckets }, (_, at) => `${serviceUrl}?schema=bucket_${at + 1}`)
  const database = async (...args: string[]) => {
    const env = { PATH: process.env.PATH, MIGRATION_DATABASE_URL: url, DATABASE_URL: serviceUrl }
    return (await run(process.execPath, [databaseProgram, ...args], { env })).stdout
  }
  await database('distribute', '--buckets', String(buckets))
  say('starting Redis, two cores, two couriers and two gateways, each gateway with a core of its own')
  const testbed = await startTestbed(interrupted.signal, 'single', { places, oneCorePerGateway: true })
  let isSound = false
  try {
    const cluster = { url, workers, restart, database }
    const discrepancies = await exercise(testbed, cluster, { buckets, pauseMs: pause })
    if (dump) {
      say('restoring the dump of a bucket into PostgreSQL')
      discrepancies.unexplained.push(...(await verifyDump(testbed, { url, schema: 'bucket_1', program: dump })))
    }
    for (const [kind, entries] of Object.entries(discrepancies)) {
      console.log(`${kind}: ${entries.length}`)
      for (const entry of entries.slice(0, 10)) console.error(`${kind}: ${entry}`)
    }
    isSound = Object.values(discrepancies).every(entries => entries.length === 0)
  } finally {
    await testbed.stop(!isSound)
    if (!keep) await dropCitusDatabase(coordinator, name)
    if (!isSound) {
      console.error(`The logs of all parts are in ${testbed.directory}.`)
      process.exitCode = 1
    }
  }
}

type Cluster = {
  url: string
  workers: string[]
  restart: string | undefined
  /** Runs `npm run database`. */
  database(...args: string[]): Promise<string>
}

async function exercise(
  testbed: Testbed,
  cluster: Cluster,
  { buckets, pauseMs }: { buckets: number; pauseMs: number },
): Promise<Discrepancies> {
  say('features')
  const failed = await checkFeatures(testbed)
  const tenants = await Promise.all(Array.from({ length: buckets }, (_, place) => newTenant(testbed.admin, place)))
  const traffic = new Traffic(tenants, testbed.gatewayUrls, new Random(1), pauseMs)
  await untilServed(testbed, traffic, async () => true)
  traffic.start()
  const tails = tenants.map(tenant => new Tail(tenant, traffic))
  const seen: Seen[] = []
  const unexplained: string[] = [...failed]
  for (const fault of faultsOf(cluster)) {
    const observed = await observe(testbed, traffic, fault).catch(error => `${fault.what}: ${error.message}`)
    if (typeof observed === 'string') {
      unexplained.push(observed)
      break
    }
    const [figures, ...unexpected] = observed
    seen.push(figures)
    unexplained.push(...unexpected)
  }
  say('stopping the clients')
  await traffic.stop()
  say('comparing all orders, holds and balances with the answers, and the event logs with the orders')
  const { found } = await accountFor(testbed, traffic, tails)
  say('verifying all places')
  const { flows, violations } = await verifyLedger(testbed.admin)
  const checkpoint = []
  for await (const line of checkpointLines(testbed.admin)) checkpoint.push(line)
  console.log(table(['what', 'seconds', 'no answer for', 'answers'], seen.map(Object.values)))
  console.log(
    `${traffic.acknowledged} commands acknowledged, ${flows} flows verified, a checkpoint of ${checkpoint.length} lines`,
  )
  found.unexplained.push(...unexplained, ...violations.map(each => JSON.stringify(each)))
  return found
}

/** @returns the figures, then what no caller may see during this fault */
async function observe(
  testbed: Testbed,
  traffic: Traffic,
  { what, inject, mayAnswer = [] }: Fault,
): Promise<[Seen, ...string[]]> {
  await sleep(loadMs)
  const before = { ...traffic.answers }
  traffic.startInterruption()
  const startedAtMs = performance.now()
  await inject()
  const seconds = (performance.now() - startedAtMs) / 1000
  await sleep(loadMs)
  const noAnswer = traffic.noAnswerMs / 1000
  const codes = Object.entries(traffic.answers)
    .map(([code, count]) => [code, count - (before[code] ?? 0)] as const)
    .filter(([, count]) => count > 0)
  await untilServed(testbed, traffic, async () => true)
  const answers = codes.map(([code, count]) => `${code} ${count}`).join(', ')
  say(`${what}: ${answers}`)
  const unexpected = codes.filter(([code]) => ![...expectedCodes, ...mayAnswer].includes(code))
  return [
    { what, seconds: seconds.toFixed(1), noAnswer: `${noAnswer.toFixed(1)} s`, answers },
    ...unexpected.map(([code, count]) => `${what}: ${count} answers were ${code}`),
  ]
}

function faultsOf({ url, workers, restart, database }: Cluster): Fault[] {
  const move = (bucket: string, what: string): Fault => ({
    what,
    async inject() {
      const placement = JSON.parse(await database('placement', '--json')) as {
        buckets: { bucket: string; worker: string }[]
      }
      const from = placement.buckets.find(each => each.bucket === bucket)!.worker
      await database('move', '--bucket', bucket, '--to', workers.find(each => each !== from)!)
    },
  })
  const kill = (node: string, what: string, mayAnswer: string[]): Fault => ({
    what,
    mayAnswer,
    async inject() {
      const target = Object.assign(new URL(url), { host: node }).href
      const [row] = await query(target, `select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer as pid`)
      process.kill(row!.pid as number, 'SIGKILL')
      await sleep(loadMs)
      await run(restart!, [node])
    },
  })
  const moves = [
    move('bucket_1', 'a bucket moves'),
    move('bucket_1', 'it moves back'),
    move('bucket_2', 'another bucket moves'),
  ]
  if (!restart) return moves
  return [
    ...moves,
    kill(new URL(url).host, 'the coordinator is killed', []),
    kill(workers[0]!, 'a worker is killed', ['S003']),
    move('bucket_2', 'a bucket moves afterwards'),
  ]
}

await runProgram(
  createCommand({
    name: 'npm run scale --',
    help: 'move buckets and kill nodes of a Citus cluster while clients transfer money',
    flags,
    examples: ['--coordinator postgres://postgres@127.0.0.1:7400/wallet'],
    notes: `The cluster must run already: a coordinator and two workers. The test creates a database of its own on all nodes. If anything was
lost, duplicated or left unexplained, it exits with 1 and keeps the logs. docs/scale.md explains it.`,
    run: runScale,
  }),
  process.argv.slice(2),
  error => error,
)
