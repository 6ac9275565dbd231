/** Measures what a failover loses when no commit waits for a standby, and whether the cores notice it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { verifyLedger } from '@workspace-wallet/core-client'
import { inParallel } from '../../cli/processes/in-parallel.ts'
import { signalProcess } from '../../cli/processes/processes.ts'
import type { Random } from '../../cli/processes/random.ts'
import { isolateLeader, loseLeader } from './cluster/faults.ts'
import { untilServed } from './recovery.ts'
import type { Testbed } from './testbed.ts'
import { makeTenant, type Sent, Traffic } from './traffic.ts'

const loadMs = 10_000
const resolvers = 8

/** Reports one line for each of two faults of the primary under load. */
export async function measureLoss(testbed: Testbed, random: Random, say: (line: string) => void): Promise<void> {
  const { cluster, parts, admin, gatewayUrls, coreUrls } = testbed
  const served = (traffic: Traffic) => untilServed(testbed, traffic, async () => cluster!.isComplete())
  for (const fault of [loseLeader(cluster!), isolateLeader(cluster!)]) {
    const traffic = new Traffic([await makeTenant(admin)], gatewayUrls, random)
    await served(traffic)
    traffic.start()
    await sleep(loadMs)
    await fault.inject()
    const refusedBy = (await Promise.all(coreUrls.map(hasRefused))).filter(Boolean).length
    await traffic.stop()
    // The operator goes on with what is left.
    for (const { kind, pid } of parts) if (kind === 'core') signalProcess(pid(), 'SIGKILL')
    await served(new Traffic([traffic.sent[0]!.tenant], gatewayUrls, random))

    const acknowledged = traffic.sent.filter(
      ({ state, command }) => state === 'acknowledged' && command.orders.length > 0,
    )
    const lost = await findLost(traffic, acknowledged)
    const times = lost.map(({ acknowledgedAtMs }) => acknowledgedAtMs!)
    const seconds = lost.length > 0 ? (Math.max(...times) - Math.min(...times)) / 1000 : 0
    say(
      `${fault.what}: of ${transfersOf(acknowledged)} acknowledged transfers, ${transfersOf(lost)} were lost, acknowledged within ${seconds.toFixed(2)} s; ${refusedBy} of ${coreUrls.length} cores refused the new primary`,
    )
    const { violations } = await verifyLedger(admin)
    if (violations.length > 0) throw new Error(`ledger verify: ${JSON.stringify(violations[0])}`)
  }
}

const transfersOf = (all: Sent[]) => all.reduce((sum, { command }) => sum + command.orders.length, 0)

async function hasRefused(coreUrl: string): Promise<boolean> {
  const text = await (await fetch(`${coreUrl}/metrics`)).text()
  return /^core_database_refused_total\{reason="lost_commits"\} [1-9]/m.test(text)
}

async function findLost(traffic: Traffic, acknowledged: Sent[]): Promise<Sent[]> {
  const lost: Sent[] = []
  await inParallel(resolvers, acknowledged, async sent => {
    const { target, absent } = sent.command.lookUp
    const found = await traffic.settle(sent.signer, 'GET', target)
    if (found.kind === 'answer' && found.code === absent) lost.push(sent)
    else if (found.kind !== 'answer' || found.code !== '2000') throw new Error(`${target}: ${JSON.stringify(found)}`)
  })
  return lost
}
