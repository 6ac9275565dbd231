/**
 * `npm run chaos` kills, freezes and restarts every part while clients transfer, hold, reverse and batch, and then checks
 * that nothing was lost, duplicated or left unexplained: docs/operations.md.
 */
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { verifyLedger } from '@workspace-wallet/core-client'
import type { Values } from '../../cli/command-line/flags.ts'
import { createCommand, runProgram } from '../../cli/command-line/program.ts'
import { Random } from '../../cli/processes/random.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { accountFor } from './accounting.ts'
import { roundOfCluster } from './cluster/faults.ts'
import { Deliveries } from './deliveries.ts'
import { roundOf } from './faults.ts'
import { flags, randomSeed } from './flags.ts'
import { measureLoss } from './loss.ts'
import { watchMemory } from './memory.ts'
import type { Fault } from './parts/fault.ts'
import type { Discrepancies } from './reconcile.ts'
import { untilServed } from './recovery.ts'
import { runRedisFailover } from './redis-failover.ts'
import { type Report, spreadOf, textOf } from './report.ts'
import { drawSamples, takeSamples } from './samples.ts'
import { Tail } from './tail.ts'
import { type DatabaseKind, startTestbed, type Testbed } from './testbed.ts'
import { makeTenant, Traffic } from './traffic.ts'

const tenantCount = 3
/** Pause between two faults. */
const restMs = 500
/** How many discrepancies of each kind are printed. */
const printedDiscrepancies = 10

const say = sayWithin('chaos')

async function runChaos({
  ha,
  asynchronous,
  chart,
  json,
  minutes,
  pause,
  redis,
  seed = randomSeed(),
}: Values<typeof flags>) {
  const interrupted = interruption()
  if (asynchronous && !ha) throw new Error('--asynchronous needs --ha')
  if (redis && ha) throw new Error('--redis and --ha are separate tests: use one')
  if (redis) return runRedisFailover(redis, json, interrupted)
  const database: DatabaseKind = ha ? (asynchronous ? 'asynchronous' : 'synchronous') : 'single'
  say(`seed ${seed}: starting PostgreSQL (${database}), Redis, two cores, two couriers and two gateways`)
  const testbed = await startTestbed(interrupted, database)
  let isSound = false
  try {
    if (asynchronous) {
      await measureLoss(testbed, new Random(seed), say)
      isSound = true
      return
    }
    const { report, samples, discrepancies } = await run(testbed, { minutes, pause, seed }, interrupted)
    if (chart) await writeFile(chart, await drawSamples(samples))
    if (json) await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    console.log(textOf(report))
    for (const [name, entries] of Object.entries(discrepancies))
      for (const entry of entries.slice(0, printedDiscrepancies)) console.error(`${name}: ${entry}`)
    isSound = Object.values(discrepancies).every(entries => entries.length === 0)
  } finally {
    await testbed.stop(!isSound)
    if (!isSound) {
      console.error(`The logs of all parts are in ${testbed.directory}.`)
      process.exitCode = 1
    }
  }
}

async function run(
  testbed: Testbed,
  { minutes, pause, seed }: { minutes: number; pause: number; seed: number },
  interrupted: AbortSignal,
) {
  const random = new Random(seed)
  const tenants = await Promise.all(Array.from({ length: tenantCount }, () => makeTenant(testbed.admin)))
  // Separate random numbers: how many the traffic draws depends on the speed of the machine.
  const traffic = new Traffic(tenants, testbed.gatewayUrls, new Random(seed + 1), pause)
  const memory = watchMemory(testbed)
  await untilServed(testbed, traffic, async () => true)
  const deliveries = new Deliveries()
  await deliveries.start()
  for (const tenant of tenants) await deliveries.subscribe(traffic, tenant)
  traffic.start()
  const sampling = takeSamples(testbed, traffic, minutes)
  const tails = tenants.map(tenant => new Tail(tenant, traffic))
  const discrepancies: Discrepancies = { lost: [], duplicated: [], unexplained: [] }
  const { apiKey } = tenants[0]!.signers[0]!
  const { cluster, parts } = testbed
  const cores = parts.filter(({ kind }) => kind === 'core')
  const nextRound = () => (cluster ? roundOfCluster(cluster, cores, random) : roundOf(testbed, apiKey, random))
  const faults = await injectFaults(testbed, traffic, nextRound, minutes, interrupted).catch(error => {
    discrepancies.unexplained.push(String(error.message))
    return {}
  })

  say('stopping the clients')
  await traffic.stop()
  const samples = await sampling.stop()
  await untilServed(testbed, traffic, async () => true)
  say('resolving unknown outcomes, and comparing all orders, holds and balances with the answers')
  const states = Object.groupBy(traffic.sent, ({ state }) => state)
  const { found, resolved } = await accountFor(testbed, traffic, tails, deliveries)
  deliveries.stop()
  for (const kind of ['lost', 'duplicated', 'unexplained'] as const) discrepancies[kind].push(...found[kind])
  say('verifying the ledger')
  const verified = await verifyLedger(testbed.admin)
  for (const violation of verified.violations) discrepancies.unexplained.push(JSON.stringify(violation))

  const report: Report = {
    seed,
    minutes,
    requests: traffic.requests,
    answers: traffic.answers,
    slowestAnswerMs: Math.round(traffic.slowestMs),
    faults,
    commands: {
      sent: traffic.sent.length,
      acknowledged: traffic.acknowledged,
      refused: states.refused?.length ?? 0,
      notDone: states['not done']?.length ?? 0,
      resolved,
    },
    peakMemoryMiB: memory.stop(),
    events: tails.reduce((sum, { eventIds }) => sum + eventIds.length, 0),
    deliveries: { events: deliveries.events, requests: deliveries.requests },
    verifiedFlows: verified.flows,
    lost: discrepancies.lost.length,
    duplicated: discrepancies.duplicated.length,
    unexplained: discrepancies.unexplained.length,
  }
  return { report, samples, discrepancies }
}

async function injectFaults(
  testbed: Testbed,
  traffic: Traffic,
  nextRound: () => Fault[],
  minutes: number,
  interrupted: AbortSignal,
): Promise<Report['faults']> {
  const injected: { kind: string; recoveryMs: number; noAnswerMs: number }[] = []
  const end = performance.now() + minutes * 60_000
  let faults: Fault[] = []
  while (performance.now() < end) {
    interrupted.throwIfAborted()
    if (faults.length === 0) faults = nextRound()
    const { kind, what, inject } = faults.shift()!
    traffic.startInterruption()
    const { isOver } = await inject()
    const faultEndedAt = performance.now()
    await untilServed(testbed, traffic, isOver).catch(error => {
      throw new Error(`after ${what}, ${error.message}`)
    })
    const recoveryMs = performance.now() - faultEndedAt
    const { noAnswerMs } = traffic
    if (testbed.cluster) await verify(testbed, what)
    injected.push({ kind, recoveryMs, noAnswerMs })
    const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`
    say(`${what}: recovered in ${seconds(recoveryMs)}, no answers for ${seconds(noAnswerMs)}`)
    await sleep(restMs)
  }
  return Object.fromEntries(
    [...Map.groupBy(injected, ({ kind }) => kind)].sort().map(([kind, each]) => [
      kind,
      {
        count: each.length,
        recoveryMs: spreadOf(each.map(({ recoveryMs }) => recoveryMs)),
        noAnswerMs: spreadOf(each.map(({ noAnswerMs }) => noAnswerMs)),
      },
    ]),
  )
}

/** @throws Error with the first violation */
async function verify({ admin }: Testbed, what: string): Promise<void> {
  const [violation] = (await verifyLedger(admin)).violations
  if (violation) throw new Error(`after ${what}, the ledger has a violation: ${JSON.stringify(violation)}`)
}

/** Aborts on a signal. The testbed is then stopped before the program exits. */
function interruption(): AbortSignal {
  const end = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => end.abort(new Error('the run was interrupted')))
  return end.signal
}

await runProgram(
  createCommand({
    name: 'npm run chaos --',
    help: 'kill, freeze and restart every part of the service while clients transfer money',
    flags,
    examples: [
      '',
      '--minutes 0.5 --seed 42',
      '--minutes 60 --pause 1000 --chart soak.svg',
      '--ha --minutes 12',
      '--redis cluster',
    ],
    notes: `The test starts its own PostgreSQL and Redis, two cores, two couriers and two gateways. If anything was lost, duplicated or left
unexplained, it exits with 1 and keeps the logs. docs/measurements.md explains the figures.

With --ha, PostgreSQL is a primary and two standbys, which fail over; docs/failover.md names the packages. Each of its faults once takes
about ten minutes.`,
    run: runChaos,
  }),
  process.argv.slice(2),
  error => error,
)
