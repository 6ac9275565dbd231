/**
 * `npm start`: the whole service on one machine, from nothing. PostgreSQL, core and gateway run as processes of their
 * own, in this order, are started again when they crash, and stop in reverse order on Ctrl-C.
 */
import { mkdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { keepRotated, rotateLog } from '../tools/services/logs.ts'
import { lowestUnprivilegedPort, pickFreePort, portTrouble } from '../tools/services/ports.ts'
import { startPostgres } from '../tools/services/postgres.ts'
import { type LoggedCommand, runTask, startService } from '../tools/services/service.ts'
import { giveTo, identityBeside, isRoot } from '../tools/services/unprivileged.ts'
import { createCommand, runProgram } from './command-line/program.ts'
import { banner } from './start/banner.ts'
import { ensureDemo } from './start/demo.ts'
import { orDiskFull } from './start/disk-full.ts'
import { takeLock } from './start/lock.ts'
import { writePrivateJson } from './start/private-file.ts'
import { loadSecrets } from './start/secrets.ts'
import { type Supervised, supervise } from './start/supervise.ts'
import { SupervisorLog } from './start/supervisor-log.ts'

const notes = `Environment:
  DATA_DIR       where data, secrets and logs are kept (default: .data)
  GATEWAY_PORT   port of the public API, 0 for any free one (default: 8080)
  GATEWAY_HOST   address that the public API listens on (default: 127.0.0.1)
  CORE_PORT      port of core, 0 for any free one (default: 8081)
  CORE_HOST      address that core listens on (default: 127.0.0.1)
  REDIS_URL      where nonces are kept (default: a file in DATA_DIR)
  INTERNAL_PORT  port of the metrics, 0 for any free one (default: 0)
  LOG_LEVEL      debug, info, warn, error or silent (default: info)

Started by root, it runs all programs as another user: the owner of DATA_DIR/postgres, else postgres, else nobody.

All other variables are passed on to core and gateway: see docs/configuration.md. The first start creates the database,
its passwords and all keys in DATA_DIR: back up the whole directory.`

interface Settings {
  gatewayHost: string
  gatewayPort: number
  coreHost: string
  corePort: number
}

const database = 'wallet'
const serviceRole = 'wallet_service'
const root = fileURLToPath(new URL('../', import.meta.url))
const dataDir = resolve(process.env.DATA_DIR || '.data')
const log = new SupervisorLog()
const say = (text: string) => log.say(text)

async function start(): Promise<void> {
  const running: Supervised[] = []
  const interrupted = listenForTheEnd(() => {
    for (const each of running) each.forceStop()
  })
  let exitCode = 0
  try {
    await startAll(running, interrupted)
    if (!interrupted.aborted) await new Promise(resolveWait => interrupted.addEventListener('abort', resolveWait))
  } catch (error) {
    if (!interrupted.aborted) {
      const { message } = await orDiskFull(error as Error, dataDir)
      log.note(message)
      console.error(message)
      exitCode = 1
    }
  }
  for (const each of running.toReversed()) await each.stop()
  await log.flush()
  process.exit(exitCode)
}

async function startAll(running: Supervised[], interrupted: AbortSignal): Promise<void> {
  const settings = await readSettings(process.env)
  const inDataDir = (...names: string[]) => join(dataDir, ...names)
  await mkdir(inDataDir('logs'), { recursive: true, mode: 0o755 })
  const { wasCutOff, release } = await claim(dataDir)
  running.push({ stop: release, forceStop: () => {} })
  await requirePorts(settings, wasCutOff)
  const secrets = await loadSecrets(dataDir, inDataDir('postgres'))

  const logFile = (name: string) => inDataDir('logs', `${name}.log`)
  const logFiles = ['supervisor', 'postgres', 'migrate', 'core', 'gateway'].map(logFile)
  for (const path of logFiles) await rotateLog(path)
  log.openFile(logFile('supervisor'))
  const rotation = keepRotated(logFiles)
  running.push({ stop: rotation.end, forceStop: () => {} })
  const keep = async (name: string, start: Parameters<typeof supervise>[1]) => {
    const startOrExplain = (signal: AbortSignal) =>
      start(signal).catch(async error => Promise.reject(await orDiskFull(error, dataDir)))
    running.push(await supervise(name, startOrExplain, interrupted, say))
    say(`${name} is running`)
  }

  // The same port for as long as we run, because core has it in its configuration.
  const postgresPort = await pickFreePort()
  const server = { dataDir: inDataDir('postgres'), port: postgresPort, logFile: logFile('postgres'), durable: true }
  await keep('PostgreSQL', signal =>
    startPostgres({
      ...server,
      superuserPassword: secrets.superuserPassword,
      settings: { max_connections: '200' },
      onInit: () => say(`Making a new database in ${server.dataDir}`),
      signal,
    }),
  )
  await writePrivateJson(inDataDir('running.json'), { pid: process.pid, postgresPort })
  const databaseUrl = (name: string, user: string, password: string) =>
    `postgresql://${user}:${password}@127.0.0.1:${postgresPort}/${name}`
  const serviceUrl = databaseUrl(database, serviceRole, secrets.servicePassword)
  const ownerUrl = (name: string) => databaseUrl(name, 'postgres', secrets.superuserPassword)

  const scripts = {
    migrate: 'services/core/src/migrate.ts',
    core: 'services/core/src/main.ts',
    gateway: 'gateway/src/main.ts',
  }
  const files = Object.values(scripts).map(script => join(root, script))
  const identity = await identityBeside(server.dataDir, { program: process.execPath, directories: [dataDir], files })
  const program = (name: keyof typeof scripts, env: Record<string, string>): LoggedCommand => ({
    name,
    script: join(root, scripts[name]),
    logFile: logFile(name),
    env: { ...process.env, ...env },
    identity,
  })
  say('Bringing the schema up to date')
  await createDatabase(ownerUrl('postgres'))
  const migration = { MIGRATION_DATABASE_URL: ownerUrl(database), DATABASE_URL: serviceUrl }
  await runTask(program('migrate', migration), interrupted)

  const core = program('core', {
    CORE_HOST: settings.coreHost,
    CORE_PORT: String(settings.corePort),
    DATABASE_URL: serviceUrl,
    KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
    LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
    SERVICE_TOKENS: [
      `gateway:gateway:${secrets.gatewayToken}`,
      `service:service:${secrets.serviceToken}`,
      `funding:funding:${secrets.fundingToken}`,
      `admin:admin:${secrets.adminToken}`,
    ].join(','),
  })
  await keep('core', signal => startService(core, signal))

  const addresses = {
    baseUrl: `http://${callable(settings.gatewayHost)}:${settings.gatewayPort}`,
    coreUrl: `http://${callable(settings.coreHost)}:${settings.corePort}`,
  }
  await writePrivateJson(inDataDir('core.json'), { coreUrl: addresses.coreUrl, adminToken: secrets.adminToken })
  const { demo, isNew } = await ensureDemo(inDataDir('demo.json'), addresses, secrets.adminToken)

  await mkdir(inDataDir('nonces'), { recursive: true, mode: 0o700 })
  await giveTo(identity, inDataDir('nonces'))
  const gateway = program('gateway', {
    GATEWAY_HOST: settings.gatewayHost,
    GATEWAY_PORT: String(settings.gatewayPort),
    // Its log names the port that it got.
    INTERNAL_PORT: process.env.INTERNAL_PORT || '0',
    CORE_URL: addresses.coreUrl,
    CORE_TOKEN: secrets.gatewayToken,
    KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
    // Nonces have to survive a restart of the gateway: without Redis they are kept in a file.
    ...(process.env.REDIS_URL ? {} : { NONCE_FILE: inDataDir('nonces', 'nonces.db') }),
  })
  await keep('gateway', signal => startService(gateway, signal))
  log.show(banner(demo, isNew, inDataDir('demo.json'), dataDir))
}

async function readSettings(env: NodeJS.ProcessEnv): Promise<Settings> {
  const settings = {
    gatewayHost: env.GATEWAY_HOST || '127.0.0.1',
    gatewayPort: await readPort('GATEWAY_PORT', env.GATEWAY_PORT || '8080'),
    coreHost: env.CORE_HOST || '127.0.0.1',
    corePort: await readPort('CORE_PORT', env.CORE_PORT || '8081'),
  }
  if (settings.gatewayPort === settings.corePort)
    throw new Error(`GATEWAY_PORT and CORE_PORT are both ${settings.corePort}: set one of them to another port.`)
  if (env.DATABASE_URL)
    say('DATABASE_URL is ignored: npm start runs a PostgreSQL of its own. To use yours, see docs/operations.md.')
  return settings
}

async function readPort(variable: string, text: string): Promise<number> {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Error(`${variable} is ${JSON.stringify(text)}: set it to a port from 1 to 65535.`)
  return port || pickFreePort()
}

/** An address to listen on is not always one to call. */
function callable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/**
 * Makes this process the only one on the data directory. `wasCutOff` says that the one before did not stop in order, so
 * that parts of it may still be on their way out.
 */
async function claim(dataDir: string): Promise<{ wasCutOff: boolean; release: () => Promise<void> }> {
  const lock = takeLock(join(dataDir, 'lock'))
  if (!lock) throw new Error(`Another npm start uses ${dataDir}: stop it, or set DATA_DIR to another directory.`)
  const runningFile = join(dataDir, 'running.json')
  const wasCutOff = (await stat(runningFile).catch(() => undefined)) !== undefined
  const release = async () => {
    await rm(runningFile, { force: true })
    lock.release()
  }
  return { wasCutOff, release }
}

async function requirePorts(settings: Settings, wasCutOff: boolean): Promise<void> {
  const deadline = Date.now() + (wasCutOff ? 15_000 : 0)
  const wanted = [
    { variable: 'GATEWAY_PORT', host: settings.gatewayHost, port: settings.gatewayPort },
    { variable: 'CORE_PORT', host: settings.coreHost, port: settings.corePort },
  ]
  const lowest = isRoot() ? await lowestUnprivilegedPort() : 0
  for (const { variable, host, port } of wanted) {
    if (port < lowest)
      throw new Error(
        `Port ${port} is for root, and nothing runs as root here: set ${variable} to ${lowest} or above, and let a proxy listen on ${port}.`,
      )
    for (;;) {
      const trouble = await portTrouble(host, port)
      if (trouble === undefined) break
      if (trouble !== 'EADDRINUSE' || Date.now() > deadline) throw new Error(explainPort(variable, host, port, trouble))
      await sleep(100)
    }
  }
}

function explainPort(variable: string, host: string, port: number, trouble: string): string {
  if (trouble === 'EADDRINUSE')
    return `Port ${port} is in use by another program: stop that, or set ${variable} to a free port.`
  return `${host}:${port} cannot be listened on (${trouble}): set ${variable} to another port or correct the host.`
}

async function createDatabase(adminUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl })
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [database])
    if (rowCount === 0) await client.query(`create database ${database}`)
  } finally {
    await client.end()
  }
}

/** Aborts on the first signal to stop, or when whoever started us is gone; later signals call `forceStop`. */
function listenForTheEnd(forceStop: () => void): AbortSignal {
  const end = new AbortController()
  let since = 0
  const stop = () => {
    if (!end.signal.aborted) {
      since = Date.now()
      say('Stopping …')
      end.abort()
      return
    }
    // npm passes a Ctrl-C on to us that the terminal has sent us already: that is not a second one.
    if (Date.now() - since > 500) forceStop()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  // npm killed by SIGKILL passes nothing on.
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent && !end.signal.aborted) stop()
  }, 500).unref()
  // The reader of our output may be gone before us.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  return end.signal
}

await runProgram(
  createCommand({
    name: 'npm start',
    help: 'run the wallet service on this machine: PostgreSQL, core and gateway',
    flags: {},
    examples: [''],
    notes,
    run: start,
  }),
  process.argv.slice(2),
)
