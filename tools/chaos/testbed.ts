/** The programs of a run, each under a supervisor: PostgreSQL and Redis that lose nothing, two cores, two couriers, two gateways. */
import { appendFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import type { Child } from '../../cli/processes/child.ts'
import { query } from '../../cli/processes/database.ts'
import { pickFreePort } from '../../cli/processes/ports.ts'
import { startPostgres } from '../../cli/processes/postgres.ts'
import { findRedis, runRedis } from '../../cli/processes/redis.ts'
import { type LoggedCommand, runTask, startService } from '../../cli/processes/service.ts'
import { coreSecrets, makeSecrets } from '../../cli/start/secrets.ts'
import { type Supervised, supervise } from '../../cli/start/supervise.ts'
import { type Cluster, startCluster } from './cluster/cluster.ts'
import { type Keep, type Part, thaw } from './parts/parts.ts'

/** One PostgreSQL, or a cluster whose commits wait for a standby or do not. */
export type DatabaseKind = 'single' | 'synchronous' | 'asynchronous'

export type Testbed = {
  parts: Part[]
  /** Null with one PostgreSQL. */
  cluster: Cluster | null
  gatewayUrls: string[]
  coreUrls: string[]
  courierUrls: string[]
  admin: CoreClient
  adminToken: string
  /** The service token of the couriers. */
  courierToken: string
  /** The database, with the role of the service, and with the role that owns the tables. */
  serviceUrl: string
  ownerUrl: string
  /** LEDGER_CHAIN_KEY, and the other secrets of a core. */
  coreSecrets: Record<string, string>
  /** Contains the logs of all parts. */
  directory: string
  /** Stops all parts. Removes the directory unless its logs are kept. */
  stop(keepsLogs: boolean): Promise<void>
}

const root = new URL('../../', import.meta.url)
const database = 'wallet'
const loopback = '127.0.0.0/8'

type TestbedOptions = {
  /** Of a Redis that runs already; by default, one is a part of the testbed. */
  redisUrl?: string
  /** The service URLs of places that exist already; by default, PostgreSQL is a part of the testbed. */
  places?: readonly string[]
  /** Each gateway calls one core, so that both cores post to the same workspaces. */
  oneCorePerGateway?: boolean
}

export async function startTestbed(
  interrupted: AbortSignal,
  databaseKind: DatabaseKind,
  { redisUrl, places, oneCorePerGateway = false }: TestbedOptions = {},
): Promise<Testbed> {
  const directory = await mkdtemp(join(tmpdir(), 'wallet-chaos-'))
  // PostgreSQL may have to run as another user.
  await chmod(directory, 0o755)
  const supervised: Supervised[] = []
  const parts: Part[] = []
  let cluster: Cluster | null = null

  async function stop(keepsLogs: boolean): Promise<void> {
    // A frozen process does not react to signals.
    for (const part of parts) await thaw(part)
    for (const each of supervised.toReversed()) await each.stop()
    await cluster?.stop()
    if (!keepsLogs) await rm(directory, { recursive: true, force: true })
  }

  const keep: Keep = async (name, kind, start, stopSignal = 'SIGTERM') => {
    let current: Child | undefined
    const say = (line: string) =>
      appendFileSync(join(directory, 'supervisor.log'), `${new Date().toISOString()} ${line}\n`)
    const startOnce = async (signal: AbortSignal) => {
      current = await start(signal)
      return current
    }
    supervised.push(await supervise(name, startOnce, interrupted, say))
    const part: Part = { name, kind, pid: () => current!.pid, stopSignal }
    parts.push(part)
    return part
  }

  async function startDatabase(port: number, superuserPassword: string): Promise<void> {
    if (databaseKind !== 'single') {
      const isSynchronous = databaseKind === 'synchronous'
      cluster = await startCluster({ keep, directory, port, superuserPassword, isSynchronous })
      return
    }
    const dataDir = join(directory, 'postgres')
    const server = { dataDir, port, durable: true, superuserPassword, removeWhenStopped: [dataDir] }
    // SIGTERM would wait until all clients disconnect. `pg_ctl restart` sends SIGINT.
    await keep('PostgreSQL', 'PostgreSQL', signal => startPostgres({ ...server, signal }), 'SIGINT')
  }

  try {
    const secrets = makeSecrets()
    const ports = await Promise.all(Array.from({ length: 8 }, pickFreePort))
    const [postgresPort, redisPort, ...programPorts] = ports as [number, number, ...number[]]
    const corePorts = programPorts.slice(0, 2)
    const courierPorts = programPorts.slice(2, 4)
    const gatewayPorts = programPorts.slice(4)
    const url = (port: number) => `http://127.0.0.1:${port}`
    const coreUrls = corePorts.map(url)

    const postgresUrl = (name: string, user: string, password: string) =>
      `postgresql://${user}:${password}@127.0.0.1:${postgresPort}/${name}`
    const ownerUrl = (name: string) => postgresUrl(name, 'postgres', secrets.superuserPassword)
    const serviceUrl = postgresUrl(database, 'wallet_service', secrets.servicePassword)
    if (!places) await startDatabase(postgresPort, secrets.superuserPassword)

    if (redisUrl === undefined) {
      const redis = await findRedis()
      const redisDir = join(directory, 'redis')
      await mkdir(redisDir)
      const durable = { appendonly: 'yes', appendfsync: 'always', dir: redisDir }
      await keep('Redis', 'Redis', () => runRedis(redis, redisPort, durable))
    }

    const program = (name: string, script: string, env: Record<string, string>): LoggedCommand => ({
      name,
      script: fileURLToPath(new URL(script, root)),
      logFile: join(directory, `${name}.log`),
      env: { PATH: process.env.PATH, NODE_ENV: 'production', LOG_LEVEL: 'warn', ...env },
    })
    if (!places) {
      await query(ownerUrl('postgres'), `create database ${database}`)
      const migration = { MIGRATION_DATABASE_URL: ownerUrl(database), DATABASE_URL: serviceUrl }
      await runTask(program('migrate', 'services/core/src/migrate.ts', migration), interrupted)
    }
    const [home, ...further] = places ?? [serviceUrl]

    const { keyEncryptionKeys: KEY_ENCRYPTION_KEYS, adminToken } = secrets
    for (const [at, port] of corePorts.entries()) {
      const core = program(`core-${at + 1}`, 'services/core/src/main.ts', {
        CORE_PORT: String(port),
        DATABASE_URL: home!,
        DATABASE_URLS: further.join(' '),
        ...coreSecrets(secrets),
        WEBHOOK_ALLOWED_NETWORKS: loopback,
      })
      await keep(core.name, 'core', signal => startService(core, signal))
    }
    for (const [at, port] of courierPorts.entries()) {
      const courier = program(`courier-${at + 1}`, 'services/courier/src/main.ts', {
        INTERNAL_PORT: String(port),
        CORE_URL: coreUrls.join(','),
        CORE_TOKEN: secrets.courierToken,
        WEBHOOK_ALLOWED_NETWORKS: loopback,
      })
      await keep(courier.name, 'courier', signal => startService(courier, signal))
    }
    for (const [at, port] of gatewayPorts.entries()) {
      const gateway = program(`gateway-${at + 1}`, 'gateway/src/main.ts', {
        GATEWAY_PORT: String(port),
        INTERNAL_PORT: '0',
        CORE_URL: oneCorePerGateway ? coreUrls[at]! : coreUrls.join(','),
        CORE_TOKEN: secrets.gatewayToken,
        KEY_ENCRYPTION_KEYS,
        REDIS_URL: redisUrl ?? `redis://127.0.0.1:${redisPort}`,
      })
      await keep(gateway.name, 'gateway', signal => startService(gateway, signal))
    }
    const admin = createCoreClient({ url: coreUrls, token: adminToken })
    supervised.push({ stop: () => admin.close(), forceStop: () => {} })
    return {
      parts,
      cluster,
      gatewayUrls: gatewayPorts.map(url),
      coreUrls,
      courierUrls: courierPorts.map(url),
      admin,
      adminToken,
      courierToken: secrets.courierToken,
      serviceUrl,
      ownerUrl: ownerUrl(database),
      coreSecrets: coreSecrets(secrets),
      directory,
      stop,
    }
  } catch (error) {
    await stop(false)
    throw error
  }
}
