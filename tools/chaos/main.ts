/**
 * `npm run chaos` breaks everything that can break, time and again, while clients transfer money, and then shows that
 * nothing was lost, doubled or left unexplained.
 */
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { verifyLedger } from '@workspace-wallet/core-client'
import { anyText, type Values } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { inParallel } from '../services/in-parallel.ts'
import { Random } from '../services/random.ts'
import { sayWithin } from '../services/say.ts'
import { type Fault, roundOf } from './faults.ts'
import { watchMemory } from './memory.ts'
import { type Found, judge, type Kept, type Verdict } from './reconcile.ts'
import { untilServed } from './recovery.ts'
import { type Report, spreadOf, textOf } from './report.ts'
import { startTestbed, type Testbed } from './testbed.ts'
import { createPath, makeTenant, type Sent, type Tenant, Traffic } from './traffic.ts'

const flags = {
  json: { value: 'FILE', help: 'write the figures to this file, too', parse: anyText },
  minutes: { value: 'N', help: 'how long faults are injected', default: '3', parse: parseMinutes },
  seed: { value: 'N', help: 'seed of the random faults; the same seed draws the same faults', parse: parseSeed },
} as const

const tenantCount = 3
/** Between two faults. */
const restMs = 500
const pageSize = 100
/** Requests at a time when outcomes are resolved and orders are read. */
const resolvers = 8
/** What is told of each kind of trouble. */
const toldLimit = 10

const say = sayWithin('chaos')

async function runChaos({ json, minutes, seed = Math.floor(Math.random() * 2 ** 32) }: Values<typeof flags>) {
  const interrupted = interruption()
  say(`seed ${seed}: starting PostgreSQL, Redis, two cores and two gateways`)
  const testbed = await startTestbed(interrupted)
  let isWell = false
  try {
    const { report, verdict } = await run(testbed, minutes, seed, interrupted)
    if (json) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    console.log(textOf(report))
    for (const [name, entries] of Object.entries(verdict))
      for (const entry of entries.slice(0, toldLimit)) console.error(`${name}: ${entry}`)
    isWell = Object.values(verdict).every(entries => entries.length === 0)
  } finally {
    await testbed.stop(!isWell)
    if (!isWell) {
      console.error(`The logs are in ${testbed.directory}.`)
      process.exitCode = 1
    }
  }
}

async function run(testbed: Testbed, minutes: number, seed: number, interrupted: AbortSignal) {
  const random = new Random(seed)
  const tenants = await Promise.all(Array.from({ length: tenantCount }, () => makeTenant(testbed.admin)))
  // Another sequence than that of the faults: how many transfers there are hangs on the machine.
  const traffic = new Traffic(tenants, testbed.gatewayUrls, new Random(seed + 1))
  const memory = watchMemory(testbed)
  await untilServed(testbed, traffic, async () => true)
  traffic.start()
  const verdict: Verdict = { lost: [], doubled: [], unexplained: [] }
  const faults = await injectFaults(testbed, traffic, random, minutes, interrupted).catch(error => {
    verdict.unexplained.push(String(error.message))
    return {}
  })

  say('no more faults; the clients end what they have begun')
  await traffic.stop()
  await untilServed(testbed, traffic, async () => true)
  say('resolving what is unknown')
  const unknown = traffic.sent.filter(({ state }) => state === 'unknown')
  const states = Object.groupBy(traffic.sent, ({ state }) => state)
  const resolved = await resolve(traffic, unknown, verdict)
  say('comparing with what the service keeps')
  for (const tenant of tenants) {
    const found = await findAll(traffic, tenant)
    const each = judge(
      tenant,
      traffic.sent.filter(sent => sent.tenant === tenant),
      found,
    )
    for (const name of ['lost', 'doubled', 'unexplained'] as const) verdict[name].push(...each[name])
  }
  verdict.unexplained.push(...traffic.strange, ...(await leftWork(testbed)))
  say('ledger verify')
  const verified = await verifyLedger(testbed.admin)
  for (const violation of verified.violations) verdict.unexplained.push(JSON.stringify(violation))

  const report: Report = {
    seed,
    minutes,
    requests: traffic.requests,
    answers: traffic.answers,
    slowestAnswerMs: Math.round(traffic.slowestMs),
    faults,
    transfers: {
      sent: traffic.sent.length,
      acknowledged: traffic.acknowledged,
      refused: states.refused?.length ?? 0,
      notDone: states['not done']?.length ?? 0,
      resolved,
    },
    peakMemoryMiB: memory.stop(),
    verifiedFlows: verified.flows,
    lost: verdict.lost.length,
    doubled: verdict.doubled.length,
    unexplained: verdict.unexplained.length,
  }
  return { report, verdict }
}

async function injectFaults(
  testbed: Testbed,
  traffic: Traffic,
  random: Random,
  minutes: number,
  interrupted: AbortSignal,
): Promise<Report['faults']> {
  const injected: { kind: string; recoveryMs: number; silenceMs: number }[] = []
  const end = performance.now() + minutes * 60_000
  let faults: Fault[] = []
  while (performance.now() < end) {
    interrupted.throwIfAborted()
    if (faults.length === 0) faults = roundOf(testbed, random)
    const { kind, what, inject } = faults.shift()!
    traffic.listen()
    const { isOver } = await inject()
    const leftAloneAt = performance.now()
    await untilServed(testbed, traffic, isOver).catch(error => {
      throw new Error(`after ${what}, ${error.message}`)
    })
    const recoveryMs = performance.now() - leftAloneAt
    const { silenceMs } = traffic
    injected.push({ kind, recoveryMs, silenceMs })
    const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`
    say(`${what}: recovered in ${seconds(recoveryMs)}, longest silence ${seconds(silenceMs)}`)
    await sleep(restMs)
  }
  return Object.fromEntries(
    [...Map.groupBy(injected, ({ kind }) => kind)].sort().map(([kind, each]) => [
      kind,
      {
        count: each.length,
        recoveryMs: spreadOf(each.map(({ recoveryMs }) => recoveryMs)),
        silenceMs: spreadOf(each.map(({ silenceMs }) => silenceMs)),
      },
    ]),
  )
}

/** By bizId: first looked up, then sent again, which must give the transfer that was found, or make the only one. */
async function resolve(traffic: Traffic, unknown: Sent[], verdict: Verdict) {
  const resolved = { wereDone: 0, wereNotDone: 0 }
  await inParallel(resolvers, unknown, async sent => {
    const { order, signer } = sent
    const found = await traffic.settle(signer, 'GET', `/api/v1/transfer/query/orders/${order.bizId}`)
    const again = await traffic.settle(signer, 'POST', createPath, order)
    const [first, second] = [found, again].map(answer => (answer.kind === 'answer' ? answer.code : answer.kind))
    if (first === '2000') resolved.wereDone++
    else resolved.wereNotDone++
    if (sent.isExcessive && first === 'T001' && second === 'T002') {
      sent.state = 'refused'
    } else if ((first === '2000' || first === 'T001') && again.kind === 'answer' && second === '2000') {
      sent.state = 'acknowledged'
      sent.transferId = String(again.data?.transferId)
      if (found.kind === 'answer' && first === '2000' && found.data?.transferId !== sent.transferId)
        verdict.doubled.push(`${order.bizId} was ${found.data?.transferId} and is ${sent.transferId}`)
    } else {
      verdict.unexplained.push(`${order.bizId} is not resolved: looked up ${first}, sent again ${second}`)
    }
  })
  return resolved
}

async function findAll(traffic: Traffic, { signers, wallets, empty }: Tenant): Promise<Found> {
  const read = async <Data>(target: string) => {
    const answer = await traffic.settle(signers[0]!, 'GET', target)
    if (answer.kind !== 'answer' || answer.code !== '2000') throw new Error(`${target}: ${JSON.stringify(answer)}`)
    return answer.data as Data
  }
  const orders: Kept[] = []
  const pageAt = (page: number) =>
    read<{ content: Kept[]; page: { totalPages: number } }>(
      `/api/v1/transfer/query/orders?size=${pageSize}&page=${page}`,
    )
  const { page } = await pageAt(0)
  const numbers = Array.from({ length: page.totalPages }, (_, number) => number)
  await inParallel(resolvers, numbers, async number => {
    orders.push(...(await pageAt(number)).content)
  })
  const balances = new Map<string, string>()
  for (const { walletId } of [...wallets, empty])
    balances.set(walletId, (await read<{ balance: string }>(`/api/v1/wallets/${walletId}/balance`)).balance)
  return { orders, balances }
}

/** Postings that a core still counts although nobody waits for any. */
async function leftWork({ coreUrls }: Testbed): Promise<string[]> {
  const left: string[] = []
  for (const url of coreUrls) {
    const text = await (await fetch(`${url}/metrics`)).text()
    const counts = [...text.matchAll(/^core_postings\{state="(\w+)"\} (\d+)$/gm)]
    if (counts.length === 0) left.push(`${url} does not tell what it is doing`)
    for (const [, state, count] of counts) if (count !== '0') left.push(`${url} has ${count} postings ${state}`)
  }
  return left
}

/** Aborts on the first signal; the parts are thawed and stopped before we go. */
function interruption(): AbortSignal {
  const end = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => end.abort(new Error('it was interrupted')))
  return end.signal
}

function parseMinutes(text: string): number {
  const minutes = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || minutes <= 0 || minutes > 10_000)
    throw new Error('must be a number of minutes above 0, such as 3 or 0.5')
  return minutes
}

function parseSeed(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) >= 2 ** 32) throw new Error('must be a whole number below 4294967296')
  return Number(text)
}

await runProgram(
  createCommand({
    name: 'npm run chaos --',
    help: 'kill, freeze and restart every part of the service while clients transfer money',
    flags,
    examples: ['', '--minutes 0.5 --seed 42'],
    notes: `It starts its own PostgreSQL and Redis, two cores and two gateways. Exits with 0 if no transfer was lost, doubled or
left unexplained, else with 1, and then keeps the logs. docs/operations.md explains the figures.`,
    run: runChaos,
  }),
  process.argv.slice(2),
  error => error,
)
