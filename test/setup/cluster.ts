/**
 * What `docker compose up` starts, without Docker: the images of the Dockerfile as folders, the services of
 * docker-compose.yml as processes. They have the configuration of the containers, with hosts and ports of this machine.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Postgres, startPostgres } from '../../cli/processes/postgres.ts'
import { type Program, startProgram } from '../../cli/processes/program.ts'
import { type Redis, startRedis } from '../../cli/processes/redis.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { type Compose, mountsOf, readCompose, redisSettings, stageOf } from './compose.ts'
import { connect } from './database.ts'
import { buildImage, type Image, readStages, root } from './images.ts'
import { makeTempDir } from './temp.ts'

const execute = promisify(execFile)

export type Cluster = {
  baseUrl: string
  postgres: Postgres
  redis: Redis
  images: Record<string, Image>
  /** By service: core-1, core-2, courier-1, courier-2, gateway-1, gateway-2. */
  programs: Record<string, Program>
  /** Everything that all programs have written, also before a restart, with the logs of PostgreSQL and the load balancers. */
  logs(): Promise<string>
  /** The content of all/secrets.json. */
  secrets: Record<string, string>
  secretsFile: string
  /** Starts a second load balancer, with TLS. */
  startTlsBalancer(certificate: string): Promise<Balancer>
  /** Stops one of `programs` if it runs, and starts it again at the same address. */
  restart(name: string): Promise<void>
  /** `docker compose run --rm SERVICE ARGUMENT…`. Returns what it prints. */
  run(service: string, args: string[], environment?: NodeJS.ProcessEnv): Promise<string>
  /** The variables of a service, with the paths and addresses of this machine. */
  environmentOf(service: string): Promise<NodeJS.ProcessEnv>
  stop(): Promise<void>
}

/** A test is one client with one address and one key. It sends more than docker-compose.yml allows such a client. */
const limits = { KEY_REQUESTS_PER_SECOND: '100000', CONNECTIONS_PER_SOURCE: '4000' }

export async function startCluster(): Promise<Cluster> {
  const compose = await readCompose()
  const directory = await makeTempDir('cluster')
  const images = await buildImages(join(directory, 'images'))
  const hosts: Record<string, string> = {}
  const stops: (() => Promise<unknown>)[] = []
  const everStarted: Program[] = []
  const started = <Server extends { stop(): Promise<unknown> }>(server: Server): Server => {
    stops.push(() => server.stop())
    return server
  }
  try {
    const secretsDir = join(directory, 'secrets')
    await runInImage(images.tools!, ['deploy/containers/secrets.ts', secretsDir])
    const secretsFile = join(secretsDir, 'all/secrets.json')
    const secrets = JSON.parse(await readFile(secretsFile, 'utf8')) as Record<string, string>
    const environmentOf = async (name: string) => {
      await replaceHosts(secretsDir, hosts)
      return containerEnvironment(compose, name, images, secretsDir, hosts)
    }

    const postgres = started(
      await startPostgres({
        dataDir: join(directory, 'postgres'),
        port: 0,
        durable: false,
        superuserPassword: secrets.superuserPassword!,
        settings: postgresSettings(compose),
      }),
    )
    hosts['postgres:5432'] = `127.0.0.1:${postgres.port}`
    await makeOwner(postgres.url('postgres'), secrets)
    const redis = started(await startRedis(redisSettings(compose, secretsDir, await makeTempDir('redis'))))
    hosts['redis:6379'] = `127.0.0.1:${redis.port}`
    await runInImage(images.migrate!, images.migrate!.command.slice(1), await environmentOf('migrate'))

    const programs: Record<string, Program> = {}
    const start = async (name: string, more: NodeJS.ProcessEnv) => {
      const { directory, command } = images[stageOf(compose.services[name]!)!]!
      // A secret must not appear in any log line, whatever its level.
      const own = await environmentOf(name)
      // The path is that in the image, which is a folder here.
      if (own.CONSOLE_DIR) own.CONSOLE_DIR = join(directory, '..', own.CONSOLE_DIR)
      const environment = { ...own, LOG_LEVEL: 'debug', ...limits, ...more }
      const program = await startProgram(join(directory, command[1]!), environment)
      programs[name] = started(program)
      everStarted.push(program)
      return program
    }
    for (const name of ['core-1', 'core-2']) {
      const { port } = await start(name, { CORE_PORT: '0' })
      hosts[`${name}:8081`] = `127.0.0.1:${port}`
    }
    for (const name of ['courier-1', 'courier-2']) await start(name, { INTERNAL_PORT: '0' })
    for (const name of ['gateway-1', 'gateway-2']) {
      const { port } = await start(name, { GATEWAY_PORT: '0', INTERNAL_PORT: '0' })
      hosts[`${name}:8080`] = `127.0.0.1:${port}`
    }
    const balancer: Balancer = started(await startBalancer(hosts, directory, limits))
    hosts['balancer:8080'] = new URL(balancer.url).host

    return {
      baseUrl: balancer.url,
      postgres,
      redis,
      images,
      programs,
      secrets,
      secretsFile,
      async logs() {
        const names = (await readdir(directory)).filter(name => name.endsWith('.log'))
        const files = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
        return [...everStarted.map(program => program.output()), ...files].join('\n')
      },
      startTlsBalancer: async certificate =>
        started(await startBalancer(hosts, directory, { ...limits, TLS_CERTIFICATE: certificate })),
      async restart(name) {
        const { port } = programs[name]!
        await programs[name]!.stop()
        if (name.startsWith('courier')) await start(name, { INTERNAL_PORT: '0' })
        else if (name.startsWith('core')) await start(name, { CORE_PORT: `${port}` })
        else await start(name, { GATEWAY_PORT: `${port}`, INTERNAL_PORT: '0' })
      },
      async run(service, args, environment = {}) {
        const { entrypoint } = compose.services[service]!
        const own = { ...(await environmentOf(service)), ...environment }
        return runInImage(images[stageOf(compose.services[service]!)!]!, [...entrypoint!.slice(1), ...args], own)
      },
      environmentOf,
      stop: () => stopAll(stops),
    }
  } catch (error) {
    await stopAll(stops)
    throw error
  }
}

async function stopAll(stops: (() => Promise<unknown>)[]): Promise<void> {
  for (const stop of stops.toReversed()) await stop()
}

async function buildImages(directory: string): Promise<Record<string, Image>> {
  const stages = await readStages()
  const images: Record<string, Image> = {}
  // A stage that others build on has no program of its own.
  for (const { name } of stages.filter(stage => !stages.some(({ from }) => from === stage.name)))
    images[name] = await buildImage(stages, name, directory)
  return images
}

async function runInImage(image: Image, args: string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, ...image.environment, ...environment }
  const { stdout } = await execute(process.execPath, args, { cwd: image.directory, env })
  return stdout
}

async function containerEnvironment(
  compose: Compose,
  name: string,
  images: Record<string, Image>,
  secretsDir: string,
  hosts: Record<string, string>,
): Promise<NodeJS.ProcessEnv> {
  const service = compose.services[name]!
  const volume = mountsOf(service).find(({ target }) => target === '/secrets')?.source
  const environment = { ...images[stageOf(service)!]!.environment, ...service.environment }
  return Object.fromEntries(
    Object.entries(environment).map(([variable, value]) => [
      variable,
      replaceAll(String(value), {
        ...hosts,
        '/secrets/': `${join(secretsDir, volume?.replace(/-secrets$/, '') ?? '')}/`,
        '0.0.0.0': '127.0.0.1',
        // The address of the load balancer on its network.
        '172.16.250.10': '127.0.0.1',
        // The address of the service on the internal network.
        [`${name}-internal`]: '127.0.0.1',
      }),
    ]),
  )
}

function replaceAll(text: string, replacements: Record<string, string>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => result.replaceAll(from, to), text)
}

/** Some secrets are URLs that name hosts. */
async function replaceHosts(secretsDir: string, hosts: Record<string, string>): Promise<void> {
  for (const name of await readdir(secretsDir, { recursive: true })) {
    if (!name.endsWith('_URL')) continue
    const path = join(secretsDir, name)
    const text = await readFile(path, 'utf8')
    await rm(path)
    await writeFile(path, replaceAll(text, hosts), { mode: 0o400 })
  }
}

/** Runs deploy/containers/owner.sql, with the passwords that psql would insert. */
async function makeOwner(url: string, secrets: Record<string, string>): Promise<void> {
  const script = await readFile(join(root, 'deploy/containers/owner.sql'), 'utf8')
  const statements = script
    .replaceAll(/^(--|\\).*$/gm, '')
    .replaceAll(":'password'", pg.escapeLiteral(secrets.ownerPassword!))
    .replaceAll(":'archive_password'", pg.escapeLiteral(secrets.archivePassword!))
    .split(';')
  const client = await connect(url)
  try {
    // One by one: CREATE DATABASE cannot run in a transaction.
    for (const statement of statements) if (statement.trim()) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The settings of the container's command line, without those that only make a test slower. */
function postgresSettings(compose: Compose): Record<string, string> {
  const settings = compose.services.postgres!.command!.slice(1).map(option => option.replace(/^--/, '').split('='))
  const slow = ['fsync', 'synchronous_commit', 'full_page_writes']
  return Object.fromEntries(settings.filter(([name]) => !slow.includes(name!)))
}
