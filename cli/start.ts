/**
 * `npm start` runs the whole service on one machine. PostgreSQL, core, the courier and the gateway are separate
 * processes, as root under separate users: started in this order, restarted after a crash, and stopped in reverse order on Ctrl-C.
 */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endProgram, storedDataExitCode } from '@workspace-wallet/runtime'
import { consoleFolder } from '../gateway/console/build/folder.ts'
import { dataDirOf } from './command-line/data-dir.ts'
import { createCommand, runProgram } from './command-line/program.ts'
import { query } from './processes/database.ts'
import { keepRotated, rotateLog } from './processes/logs.ts'
import { pickFreePort } from './processes/ports.ts'
import { type Postgres, startPostgres } from './processes/postgres.ts'
import { type LoggedCommand, runTask, StartFailure, startService } from './processes/service.ts'
import { giveTo, type Identity, identityOf, isRoot } from './processes/unprivileged.ts'
import { banner } from './start/banner.ts'
import { ensureDemo } from './start/demo.ts'
import { explainDiskFull } from './start/disk-full.ts'
import { listenForInterrupt } from './start/interrupt.ts'
import { lockDataDir } from './start/lock.ts'
import { requireFreePorts } from './start/ports.ts'
import { writePrivateJson } from './start/private-file.ts'
import { coreSecrets, courierSecrets, gatewaySecrets, loadSecrets, type Secrets } from './start/secrets.ts'
import { readSettings, type Settings } from './start/settings.ts'
import { type Supervised, supervise } from './start/supervise.ts'
import { SupervisorLog } from './start/supervisor-log.ts'

const notes = `Environment:
  DATA_DIR       directory for data, secrets and logs (default: .data in the checkout)
  GATEWAY_PORT   port of the public API, 0 for any free one (default: 8080)
  GATEWAY_HOST   address that the public API listens on (default: 127.0.0.1)
  CORE_PORT      port of core, 0 for any free one (default: 8081)
  CORE_HOST      address that core listens on (default: 127.0.0.1)
  REDIS_URL      Redis that stores the nonces (default: none; a file in DATA_DIR stores them)
  INTERNAL_PORT  port of the gateway's internal listener with the console and metrics, 0 for any free one (default: 0)
  LOG_LEVEL      debug, info, warn, error or silent (default: info)
  WEBHOOK_ALLOWED_NETWORKS
                 networks that webhooks may lead to, besides public addresses (default: this machine if GATEWAY_HOST is a
                 loopback address and TRUSTED_PROXIES is not set, else none)

All other variables are passed on to core, the courier and the gateway: see docs/configuration.md. The first start creates the
database, its passwords and all keys in DATA_DIR: back up the whole directory. If root runs npm start, PostgreSQL runs as the
owner of DATA_DIR/postgres, else postgres, else nobody, and each other program as a user of its own.`

const database = 'wallet'
const serviceRole = 'wallet_service'
const root = fileURLToPath(new URL('../', import.meta.url))
const scripts = {
  migrate: join(root, 'services/core/src/migrate.ts'),
  core: join(root, 'services/core/src/main.ts'),
  courier: join(root, 'services/courier/src/main.ts'),
  gateway: join(root, 'gateway/src/main.ts'),
  console: join(root, 'gateway/console/build/main.ts'),
}
const dataDir = resolve(dataDirOf(process.env))
const inDataDir = (...names: string[]) => join(dataDir, ...names)
const postgresDir = inDataDir('postgres')
const logFile = (name: string) => inDataDir('logs', `${name}.log`)
const log = new SupervisorLog()
let postgresPort = 0
/** Why the superuser of PostgreSQL can read the keys of the service; null if it cannot. */
let exposure: string | null = null
/** Everything to stop, in the order in which it was started. */
const running: Supervised[] = []

async function start(): Promise<void> {
  const interrupted = listenForInterrupt(
    () => log.say('Stopping …'),
    () => {
      for (const each of running) each.forceStop()
    },
  )
  let exitCode = 0
  try {
    await startAll(interrupted)
    await untilAborted(interrupted)
  } catch (error) {
    if (!interrupted.aborted) {
      const { message } = await explainDiskFull(error as Error, dataDir)
      log.note(message)
      console.error(message)
      exitCode = 1
      if (isAboutStoredData(error)) {
        log.say(repairNote())
        await untilAborted(interrupted)
      }
    }
  }
  for (const each of running.toReversed()) await each.stop()
  await log.flush()
  endProgram(exitCode)
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise(resolveWait => signal.addEventListener('abort', resolveWait))
}

function isAboutStoredData(error: unknown): boolean {
  return error instanceof StartFailure && error.outcome === `exit ${storedDataExitCode}`
}

function repairNote(): string {
  return (
    'PostgreSQL keeps running, so that you can repair the data: docs/operations.md, "Rotate the key-encryption key", says how. ' +
    `Connect to postgresql://postgres@127.0.0.1:${postgresPort}/${database} with the superuserPassword in ${inDataDir('secrets.json')}. ` +
    'Then press Ctrl-C, and run npm start again.'
  )
}

async function startAll(interrupted: AbortSignal): Promise<void> {
  const settings = await readSettings(process.env)
  if (process.env.DATABASE_URL)
    log.say('DATABASE_URL is ignored: npm start runs its own PostgreSQL. To use yours, see docs/operations.md.')
  await lockDataDirAndPorts(settings)
  const secrets = await loadSecrets(dataDir, postgresDir)
  await openLogs()

  const consoleBuilt = buildConsole(interrupted)
  const databaseUrl = await startDatabase(secrets, interrupted)
  const ownerUrl = databaseUrl('postgres', secrets.superuserPassword)
  const serviceUrl = databaseUrl(serviceRole, secrets.servicePassword)
  const needs = { program: process.execPath, directories: [dataDir], files: Object.values(scripts) }
  const coreIdentity = await identityOf('core', needs)

  log.say('Migrating the database')
  await runTask(
    program('migrate', { MIGRATION_DATABASE_URL: ownerUrl, DATABASE_URL: serviceUrl }, coreIdentity),
    interrupted,
  )

  const core = program('core', coreEnvironment(settings, secrets, serviceUrl), coreIdentity)
  await keepRunning('core', signal => startService(core, signal), interrupted)
  await writePrivateJson(inDataDir('core.json'), { coreUrl: settings.coreUrl, adminToken: secrets.adminToken })
  const { demo, isNew } = await ensureDemo(inDataDir('demo.json'), settings, secrets)

  const courier = program('courier', courierEnvironment(settings, secrets), await identityOf('courier', needs))
  await keepRunning('courier', signal => startService(courier, signal), interrupted)

  await mkdir(inDataDir('nonces'), { recursive: true, mode: 0o700 })
  const gatewayIdentity = await identityOf('gateway', needs)
  await giveTo(gatewayIdentity, inDataDir('nonces'))
  const consoleDir = await consoleBuilt
  const gateway = program('gateway', gatewayEnvironment(settings, secrets, consoleDir), gatewayIdentity)
  await keepRunning('gateway', signal => startService(gateway, signal), interrupted)
  const has = { docs: process.env.DOCS !== 'off', console: consoleDir !== undefined }
  log.show(banner(demo, isNew, inDataDir('demo.json'), dataDir, has))
  if (isNew && exposure) log.say(exposure)
}

async function lockDataDirAndPorts(settings: Settings): Promise<void> {
  await mkdir(inDataDir('logs'), { recursive: true, mode: 0o755 })
  const { wasKilled, release } = await lockDataDir(dataDir)
  running.push({ stop: release, forceStop: () => {} })
  await requireFreePorts(settings, wasKilled)
}

async function openLogs(): Promise<void> {
  const logFiles = ['supervisor', 'postgres', 'migrate', 'console', 'core', 'courier', 'gateway'].map(logFile)
  for (const path of logFiles) await rotateLog(path)
  log.openFile(logFile('supervisor'))
  const rotation = keepRotated(logFiles)
  running.push({ stop: rotation.end, forceStop: () => {} })
}

/**
 * Builds the console if its sources have changed, while PostgreSQL and core start. Returns its folder; undefined if it cannot be
 * built, because the service runs without it.
 */
async function buildConsole(interrupted: AbortSignal): Promise<string | undefined> {
  const folder = await consoleFolder()
  if (existsSync(folder)) return folder
  log.say('Building the console')
  try {
    await runTask(program('console', { NODE_ENV: 'production' }, undefined), interrupted)
    log.say('The console is built')
    return folder
  } catch (error) {
    log.note((error as Error).message)
    if (!interrupted.aborted) log.say(`The console cannot be built, and is not served: see ${logFile('console')}`)
    return undefined
  }
}

/** Starts PostgreSQL and creates the database. Returns its URL for a role and password. */
async function startDatabase(
  { superuserPassword }: Secrets,
  interrupted: AbortSignal,
): Promise<(role: string, password: string) => string> {
  // Picked once, so that a restarted PostgreSQL gets the port that core has in its configuration.
  const port = await pickFreePort()
  postgresPort = port
  await keepRunning(
    'PostgreSQL',
    async signal => {
      const postgres = await startPostgres({
        dataDir: postgresDir,
        port,
        logFile: logFile('postgres'),
        durable: true,
        superuserPassword,
        settings: { max_connections: '200' },
        onInit: () => log.say(`Creating a database in ${postgresDir}`),
        signal,
      })
      exposure = exposureOf(postgres)
      return postgres
    },
    interrupted,
  )
  await writePrivateJson(inDataDir('running.json'), { pid: process.pid, postgresPort: port })
  const url = (role: string, password: string, name = database) =>
    `postgresql://${role}:${password}@127.0.0.1:${port}/${name}`
  await createDatabase(url('postgres', superuserPassword, 'postgres'))
  return url
}

function exposureOf({ readsAllFiles }: Postgres): string | null {
  const who = 'Whoever is superuser of the database can read the keys of the service'
  if (!isRoot()) return `${who}, because PostgreSQL runs as the same user as core: see SECURITY.md.`
  if (readsAllFiles)
    return `${who}, because PostgreSQL's user cannot enter ${root} or ${dataDir}, and therefore may read all files: see SECURITY.md.`
  return null
}

async function createDatabase(maintenanceUrl: string): Promise<void> {
  const existing = await query(maintenanceUrl, 'select 1 from pg_database where datname = $1', [database])
  if (existing.length === 0) await query(maintenanceUrl, `create database ${database}`)
}

function coreEnvironment({ coreHost, corePort, webhookNetworks }: Settings, secrets: Secrets, serviceUrl: string) {
  return {
    CORE_HOST: coreHost,
    CORE_PORT: String(corePort),
    DATA_DIR: dataDir,
    DATABASE_URL: serviceUrl,
    DATABASE_WRITERS: process.env.DATABASE_WRITERS || 'postgres',
    WEBHOOK_ALLOWED_NETWORKS: webhookNetworks,
    ...coreSecrets(secrets),
  }
}

function courierEnvironment({ coreUrl, webhookNetworks }: Settings, secrets: Secrets) {
  // The log of the courier shows the port that it picked.
  return {
    INTERNAL_PORT: '0',
    CORE_URL: coreUrl,
    WEBHOOK_ALLOWED_NETWORKS: webhookNetworks,
    ...courierSecrets(secrets),
  }
}

function gatewayEnvironment(
  { gatewayHost, gatewayPort, internalHost, internalPort, coreUrl }: Settings,
  secrets: Secrets,
  consoleDir: string | undefined,
) {
  return {
    GATEWAY_HOST: gatewayHost,
    GATEWAY_PORT: String(gatewayPort),
    INTERNAL_HOST: internalHost,
    INTERNAL_PORT: String(internalPort),
    ...(consoleDir !== undefined && { CONSOLE_DIR: consoleDir }),
    CORE_URL: coreUrl,
    ...gatewaySecrets(secrets),
    // Nonces must survive a restart of the gateway, so without Redis a file stores them.
    ...(process.env.REDIS_URL ? {} : { NONCE_FILE: inDataDir('nonces', 'nonces.db') }),
  }
}

function program(
  name: keyof typeof scripts,
  env: Record<string, string>,
  identity: Identity | undefined,
): LoggedCommand {
  return { name, script: scripts[name], logFile: logFile(name), env: { ...process.env, ...env }, identity }
}

async function keepRunning(
  name: string,
  startOnce: Parameters<typeof supervise>[1],
  interrupted: AbortSignal,
): Promise<void> {
  const startOrExplain = (signal: AbortSignal) =>
    startOnce(signal).catch(async error => Promise.reject(await explainDiskFull(error, dataDir)))
  running.push(await supervise(name, startOrExplain, interrupted, line => log.say(line)))
  log.say(`${name} is running`)
}

await runProgram(
  createCommand({
    name: 'npm start',
    help: 'run the wallet service on this machine: PostgreSQL, core, courier and gateway',
    flags: {},
    examples: [''],
    notes,
    run: start,
  }),
  process.argv.slice(2),
)
