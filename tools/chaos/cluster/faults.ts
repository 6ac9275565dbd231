/** The faults of a cluster of PostgreSQL, and the random order in which they are injected. */
import { setTimeout as sleep } from 'node:timers/promises'
import { signalProcess } from '../../../cli/processes/processes.ts'
import type { Random } from '../../../cli/processes/random.ts'
import type { Fault } from '../parts/fault.ts'
import { freeze, type Part, thaw } from '../parts/parts.ts'
import { type Cluster, freezeMember, killMember, type Member, signalPostgres, thawMember } from './cluster.ts'

/** Longer than `ttl` in patroni.yml: meanwhile, another member becomes the primary. */
const absenceMs = 40_000
/** Shorter than anything that Patroni does about it. */
const pauseMs = 8_000

/** Each kind of fault once, in random order. Which member is the primary is looked up when the fault begins. */
export function roundOfCluster(cluster: Cluster, cores: Part[], random: Random): Fault[] {
  const standby = async () => {
    const leader = await cluster.leader()
    return random.pick(cluster.members.filter(member => member !== leader))
  }
  const onLeader = (kind: string, action: (leader: Member) => Promise<unknown>) =>
    fault(kind, async () => action(await cluster.leader()))
  const onStandby = (kind: string, action: (member: Member) => Promise<unknown>) =>
    fault(kind, async () => action(await standby()))
  function fault(kind: string, inject: () => Promise<unknown>): Fault {
    return {
      kind,
      what: kind,
      async inject() {
        await inject()
        return { isOver: () => cluster.isComplete() }
      },
    }
  }
  return random.shuffled([
    onLeader('kill the primary', leader => signalPostgres(leader, 'SIGKILL')),
    onLeader('kill the primary and its manager', killMember),
    loseLeader(cluster),
    onLeader('lose the primary and kill a core', async leader => {
      signalProcess(random.pick(cores).pid(), 'SIGKILL')
      await lose(leader)
    }),
    onLeader('freeze the primary', leader => during(absenceMs, [leader], freezeMember, thawMember)),
    onLeader('freeze the primary briefly', leader => during(pauseMs, [leader], freezeMember, thawMember)),
    onLeader('cut the primary off', leader => during(absenceMs, [leader.link, leader.door], freeze, thaw)),
    onLeader('cut the primary off from the cluster only', leader => during(absenceMs, [leader.link], freeze, thaw)),
    onLeader('restart the primary', async leader => signalProcess(leader.patroni.pid(), leader.patroni.stopSignal)),
    onLeader('switch over', async leader => switchOver(leader, await standby())),
    onStandby('kill a standby', killMember),
    onStandby('freeze a standby', member => during(pauseMs, [member], freezeMember, thawMember)),
    onLeader('freeze both standbys', leader =>
      during(
        pauseMs,
        cluster.members.filter(member => member !== leader),
        freezeMember,
        thawMember,
      ),
    ),
    fault('kill an etcd', async () => signalProcess(random.pick(cluster.etcd).pid(), 'SIGKILL')),
    fault('freeze two of three etcd', () => during(absenceMs, random.shuffled(cluster.etcd).slice(1), freeze, thaw)),
  ])
}

/** The machine of the primary is gone, and comes back after another member has become the primary. */
export function loseLeader(cluster: Cluster): Fault {
  return {
    kind: 'lose the primary',
    what: 'lose the primary',
    async inject() {
      await lose(await cluster.leader())
      return { isOver: () => cluster.isComplete() }
    },
  }
}

/** The primary still answers cores, and nothing of it reaches the other members. */
export function isolateLeader(cluster: Cluster): Fault {
  return {
    kind: 'cut the primary off from the cluster only',
    what: 'cut the primary off from the cluster only',
    async inject() {
      await during(absenceMs, [(await cluster.leader()).link], freeze, thaw)
      return { isOver: () => cluster.isComplete() }
    },
  }
}

async function lose(member: Member): Promise<void> {
  member.isHeldDown = true
  await killMember(member)
  await sleep(absenceMs)
  member.isHeldDown = false
}

async function during<Target>(
  milliseconds: number,
  targets: Target[],
  begin: (target: Target) => Promise<void>,
  end: (target: Target) => Promise<void>,
): Promise<void> {
  await Promise.all(targets.map(begin))
  await sleep(milliseconds)
  await Promise.all(targets.map(end))
}

async function switchOver(from: Member, to: Member): Promise<void> {
  const body = JSON.stringify({ leader: from.name, candidate: to.name })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${from.apiUrl}/switchover`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`the switchover was refused: ${await response.text()}`)
}
