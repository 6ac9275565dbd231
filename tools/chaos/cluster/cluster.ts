/**
 * A cluster of PostgreSQL as the profile `ha` of docker-compose.yml runs it: a primary and two standbys under Patroni, three etcd, and
 * an address that follows the primary. All of it runs on this machine, with the same configuration files.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isListenedOn, pickFreePort } from '../../../cli/processes/ports.ts'
import { describeProcess, familyOf, signalProcess } from '../../../cli/processes/processes.ts'
import { startServer } from '../../../cli/processes/server.ts'
import { chooseIdentity, giveTo, isRoot, runAs } from '../../../cli/processes/unprivileged.ts'
import { freeze, type Keep, type Part, thaw } from '../parts/parts.ts'
import { findClusterPrograms } from './programs.ts'

export type Member = {
  name: string
  /** Patroni. PostgreSQL is no child of it. */
  patroni: Part
  /** What connects it with etcd and the other members. Frozen, it passes nothing on. */
  link: Part
  /** What connects the address with it. */
  door: Part
  apiUrl: string
  dataDir: string
  /** While true, Patroni is not started again. */
  isHeldDown: boolean
}

export type Cluster = {
  members: Member[]
  etcd: Part[]
  leader(): Promise<Member>
  /** Whether there is a primary, both standbys stream from it, and Patroni would promote either, if commits wait for them. */
  isComplete(): Promise<boolean>
  stop(): Promise<void>
}

export type ClusterOptions = {
  keep: Keep
  directory: string
  /** The port of the address that follows the primary. */
  port: number
  superuserPassword: string
  /** Whether each commit waits for a standby. */
  isSynchronous: boolean
}

const configuration = new URL('../../../deploy/containers/ha/', import.meta.url)
const memberCount = 3
const stopSteps = [
  { signal: 'SIGTERM', timeoutMs: 20_000 },
  { signal: 'SIGQUIT', timeoutMs: 2_000 },
] as const
const startTimeoutMs = 120_000

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { keep, directory, superuserPassword } = options
  const programs = await findClusterPrograms()
  const identity = isRoot() ? await chooseIdentity(undefined, { program: programs.patroni }) : undefined
  const run = (
    program: string,
    args: string[],
    env: Record<string, string>,
    name: string,
    isReady: () => Promise<boolean>,
  ) =>
    startServer(
      { ...runAs(identity, program, args), env, stopSteps: [...stopSteps] },
      join(directory, `${name}.log`),
      isReady,
    )
  const address = (port: number) => `127.0.0.1:${port}`
  const ports = (count: number) => Promise.all(Array.from({ length: count }, pickFreePort))

  const [clientPorts, peerPorts] = [await ports(memberCount), await ports(memberCount)]
  const peers = peerPorts.map((port, at) => `etcd-${at + 1}=http://${address(port)}`).join(',')
  const etcd = await Promise.all(
    clientPorts.map(async (port, at) => {
      const name = `etcd-${at + 1}`
      const dataDir = await makeDirectory(name)
      const [client, peer] = [`http://${address(port)}`, `http://${address(peerPorts[at]!)}`]
      const args = Object.entries({
        name,
        'data-dir': dataDir,
        'listen-client-urls': client,
        'advertise-client-urls': client,
        'listen-peer-urls': peer,
        'initial-advertise-peer-urls': peer,
        'initial-cluster': peers,
        'log-level': 'warn',
      }).map(([flag, value]) => `--${flag}=${value}`)
      return keep(name, 'etcd', () => run(programs.etcd, args, {}, name, () => isListenedOn(port)))
    }),
  )
  // Patroni exits when it asks before they have decided on the version of their cluster.
  for (const port of clientPorts) await until('etcd has decided', () => hasVersion(`http://${address(port)}/version`))
  const members = await Promise.all(Array.from({ length: memberCount }, (_, at) => startMember(`member-${at + 1}`)))
  const primaryEnv: Record<string, string> = { LISTEN: address(options.port) }
  for (const [at, { door }] of members.entries()) {
    primaryEnv[`MEMBER_${at + 1}`] = address(door.postgres)
    primaryEnv[`MEMBER_${at + 1}_API`] = String(door.api)
  }
  const proxy = ['-db', '-f', fileURLToPath(new URL('haproxy.cfg', configuration))]
  await keep('address', 'address', () =>
    run(programs.haproxy, proxy, primaryEnv, 'address', () => isListenedOn(options.port)),
  )

  const cluster = clusterOf(
    members.map(({ member }) => member),
    etcd,
    options.isSynchronous,
  )
  await cluster.untilComplete()
  return cluster

  async function makeDirectory(name: string): Promise<string> {
    const path = join(directory, name)
    await mkdir(path, { mode: 0o700 })
    await giveTo(identity, path)
    return path
  }

  /** A proxy whose ports lead to others. */
  async function keepProxy(name: string, targets: [from: number, to: number][]): Promise<Part> {
    const listeners = targets.map(
      ([from, to]) => `listen p${from}\n  bind ${address(from)}\n  server to ${address(to)}\n`,
    )
    const times = ['connect 2s', 'client 24h', 'server 24h'].map(time => `  timeout ${time}\n`).join('')
    const file = join(directory, `${name}.cfg`)
    await writeFile(file, `defaults\n  mode tcp\n${times}${listeners.join('')}`)
    return keep(name, 'link', () =>
      run(programs.haproxy, ['-db', '-f', file], {}, name, () => isListenedOn(targets[0]![0])),
    )
  }

  async function startMember(name: string) {
    const [postgres, api, linkPostgres, linkApi, doorPostgres, doorApi] = (await ports(6)) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ]
    const linkEtcd = await ports(memberCount)
    const link = await keepProxy(`link-${name}`, [
      [linkPostgres, postgres],
      [linkApi, api],
      ...linkEtcd.map((port, at): [number, number] => [port, clientPorts[at]!]),
    ])
    const door = await keepProxy(`door-${name}`, [
      [doorPostgres, postgres],
      [doorApi, api],
    ])
    const home = await makeDirectory(name)
    const dataDir = join(home, 'data')
    const file = await writeConfiguration()
    const env = {
      PATH: `${programs.postgresBin}:/usr/bin:/bin`,
      LANG: 'C.UTF-8',
      HOME: home,
      PATRONI_NAME: name,
      PATRONI_ETCD3_HOSTS: linkEtcd.map(address).join(','),
      // It must not learn the addresses behind the link.
      PATRONI_ETCD3_USE_PROXIES: 'true',
      PATRONI_RESTAPI_LISTEN: address(api),
      PATRONI_RESTAPI_CONNECT_ADDRESS: address(linkApi),
      PATRONI_POSTGRESQL_LISTEN: address(postgres),
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: address(linkPostgres),
      PATRONI_POSTGRESQL_DATA_DIR: dataDir,
      PATRONI_POSTGRESQL_BIN_DIR: programs.postgresBin,
      PATRONI_POSTGRESQL_PGPASS: join(home, 'pgpass'),
      PATRONI_SUPERUSER_USERNAME: 'postgres',
      PATRONI_SUPERUSER_PASSWORD: superuserPassword,
      PATRONI_REPLICATION_USERNAME: 'replicator',
      PATRONI_REPLICATION_PASSWORD: superuserPassword,
    }
    const apiUrl = `http://${address(api)}`
    const member: Member = { name, link, door, apiUrl, dataDir, isHeldDown: false, patroni: null as never }
    member.patroni = await keep(name, 'member', async signal => {
      while (member.isHeldDown) await sleep(pollMs, undefined, { signal })
      return run(programs.patroni, [file], env, name, () => isAnswered(`${apiUrl}/liveness`))
    })
    return { member, door: { postgres: doorPostgres, api: doorApi } }

    async function writeConfiguration(): Promise<string> {
      const text = await readFile(new URL('patroni.yml', configuration), 'utf8')
      const changed = text
        .replace('synchronous_mode: quorum', 'synchronous_mode: off')
        .replace('_strict: true', '_strict: false')
      const path = join(home, 'patroni.yml')
      await writeFile(path, options.isSynchronous ? text : changed)
      return path
    }
  }
}

const pollMs = 100

/** What Patroni says of its own PostgreSQL, which it asks each time. */
type State = { state: string; role: string; replication_state?: string; quorum_standby?: boolean }

async function stateOf({ apiUrl }: Member): Promise<State | null> {
  try {
    const response = await fetch(`${apiUrl}/patroni`, { signal: AbortSignal.timeout(2_000) })
    return (await response.json()) as State
  } catch {
    return null
  }
}

function clusterOf(members: Member[], etcd: Part[], isSynchronous: boolean) {
  const isPrimary = (state: State | null) => state?.state === 'running' && /primary|master/.test(state.role)
  const isStandby = (state: State | null) =>
    state?.replication_state === 'streaming' && (!isSynchronous || state.quorum_standby === true)
  async function isComplete(): Promise<boolean> {
    const states = await Promise.all(members.map(stateOf))
    return states.filter(isPrimary).length === 1 && states.filter(isStandby).length === members.length - 1
  }
  return {
    members,
    etcd,
    isComplete,
    async leader(): Promise<Member> {
      const states = await Promise.all(members.map(stateOf))
      const member = members.find((_, at) => isPrimary(states[at]!))
      if (!member) throw new Error('the cluster has no leader')
      return member
    },
    untilComplete: () => until('the cluster is complete', isComplete),
    /** Patroni has stopped PostgreSQL, unless it was killed. */
    async stop(): Promise<void> {
      for (const member of members) await signalPostgres(member, 'SIGKILL')
    },
  }
}

/** @throws Error if it does not become true within `startTimeoutMs` */
async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + startTimeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`waited ${startTimeoutMs / 1000} s until ${what}`)
    await sleep(pollMs)
  }
}

async function hasVersion(url: string): Promise<boolean> {
  const version = await fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    response => response.json() as Promise<{ etcdcluster: string }>,
    () => null,
  )
  return version !== null && version.etcdcluster !== 'not_decided'
}

async function isAnswered(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** The pid of PostgreSQL of a member; null if none runs. A killed server leaves its file, and another process may get its pid. */
async function postmasterOf({ dataDir }: Member): Promise<number | null> {
  const text = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  const running = await describeProcess(pid)
  return running?.command.includes(dataDir) ? pid : null
}

export async function signalPostgres(member: Member, signal: NodeJS.Signals): Promise<void> {
  const pid = await postmasterOf(member)
  if (pid === null) return
  for (const each of await familyOf(pid)) signalProcess(each, signal)
}

export async function killMember(member: Member): Promise<void> {
  signalProcess(member.patroni.pid(), 'SIGKILL')
  await signalPostgres(member, 'SIGKILL')
}

export async function freezeMember(member: Member): Promise<void> {
  await freeze(member.patroni)
  await signalPostgres(member, 'SIGSTOP')
}

export async function thawMember(member: Member): Promise<void> {
  await signalPostgres(member, 'SIGCONT')
  await thaw(member.patroni)
}
