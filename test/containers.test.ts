/**
 * Checks docker-compose.yml, the Dockerfile and their configuration files as far as possible without Docker: that names
 * resolve, that programs read the variables, and that nothing is exposed. replicas.test.ts runs them.
 */
import { execFile } from 'node:child_process'
import { glob, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readEnvironment } from '@workspace-wallet/runtime'
import { beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'
import { gatewaySchema } from '../gateway/src/config.ts'
import packageJson from '../package.json' with { type: 'json' }
import { coreSchema, migrationSchema } from '../services/core/src/config.ts'
import { courierSchema } from '../services/courier/src/config.ts'
import { attemptReserveMs } from '../services/courier/src/deliver.ts'
import { type Compose, mountsOf, networksOf, readCompose, type Service, stageOf } from './setup/compose.ts'
import { readCopy, readStages, root, type Stage, wholeStage } from './setup/images.ts'
import { listen } from './setup/listen.ts'
import { makeTempDir } from './setup/temp.ts'

const schemas: Record<string, z.ZodObject> = {
  core: coreSchema,
  migrate: migrationSchema,
  courier: courierSchema,
  gateway: gatewaySchema,
}

let compose: Compose
let services: [string, Service][]
let stages: Stage[]
let secretsDir: string
beforeAll(async () => {
  compose = await readCompose()
  services = Object.entries(compose.services)
  stages = await readStages()
  secretsDir = await makeTempDir('secrets')
  await makeSecrets()
})

async function makeSecrets(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(root, 'deploy/containers/secrets.ts'), secretsDir])
}

function service(name: string): Service {
  const found = compose.services[name]
  if (!found) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

/** The services that run a program of ours, with the schema of its configuration. */
function configured(): [string, Service, z.ZodObject][] {
  return services.flatMap(([name, each]): [string, Service, z.ZodObject][] => {
    const schema = schemas[stageOf(each) ?? '']
    return schema ? [[name, each, schema]] : []
  })
}

/** The variables of the image and of the service. */
function environmentOf(service: Service): Record<string, string> {
  const { environment = {} } = service
  const written = wholeStage(stages, stageOf(service)!).flatMap(({ name, text }) =>
    name === 'ENV' ? text.split(' ').map(pair => pair.split('=') as [string, string]) : [],
  )
  const set = Object.entries(environment).map(([name, value]): [string, string] => [name, String(value)])
  return Object.fromEntries([...written, ...set])
}

/** The folder that a container mounts at /secrets. */
function secretsOf(each: Service): string {
  const mount = mountsOf(each).find(({ target }) => target === '/secrets')
  return mount ? join(secretsDir, mount.source.replace(/-secrets$/, '')) : ''
}

test('there are two cores, two couriers and two gateways, PostgreSQL 18 and Redis 8', () => {
  const targets = services.map(([, each]) => stageOf(each))
  for (const program of ['core', 'courier', 'gateway'])
    expect(targets.filter(target => target === program)).toHaveLength(2)
  expect(service('postgres').image).toMatch(/^postgres:18\./)
  expect(service('redis').image).toMatch(/^redis:8\./)
})

test('images are pinned to a version', () => {
  for (const [name, { image }] of services) expect(image, name).toMatch(/^[a-z/-]+:v?\d+\.\d+(\.\d+)?(-[a-z-]+)?$/)
  for (const { from, name } of stages)
    if (!stages.some(stage => stage.name === from)) expect(from, name).toMatch(/^node:24\.\d+\.\d+-[a-z]+-slim$/)
})

test('every service, volume and network that is named exists, and every one is used', () => {
  const used = { volumes: new Set<string>(), networks: new Set<string>() }
  for (const [name, each] of services) {
    for (const [other, { condition }] of Object.entries(each.depends_on ?? {})) {
      const needed = service(other)
      const isHealthChecked =
        needed.healthcheck ?? wholeStage(stages, stageOf(needed) ?? '').find(({ name }) => name === 'HEALTHCHECK')
      if (condition === 'service_healthy')
        expect(isHealthChecked, `${name} waits for the health of ${other}`).toBeTruthy()
      else
        expect([condition, needed.restart], `${name} waits for ${other}`).toEqual([
          'service_completed_successfully',
          'no',
        ])
    }
    for (const { source } of mountsOf(each)) used.volumes.add(source)
    for (const network of networksOf(each)) used.networks.add(network)
  }
  for (const kind of ['volumes', 'networks'] as const)
    expect([...used[kind]].sort(), kind).toEqual(Object.keys(compose[kind]).sort())
})

test('each of our images is built by one service and never pulled', () => {
  const built: string[] = []
  for (const [name, each] of services) {
    const stage = stageOf(each)
    expect(each.pull_policy, name).toBe(stage && 'never')
    if (!each.build) continue
    expect(each.build, name).toEqual({ context: '.', target: stage })
    // `docker compose up` builds only the services that it starts.
    expect(each.profiles, name).toBeUndefined()
    built.push(each.build.target)
  }
  const own = services.flatMap(([, each]) => stageOf(each) ?? [])
  expect(built.sort()).toEqual([...new Set(own)].sort())
  for (const target of built) expect(stages.map(({ name }) => name)).toContain(target)
})

test('no container runs as root, gains privileges, or writes outside its volumes', () => {
  for (const [name, each] of services) {
    expect(each, name).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
    expect(each.privileged, name).toBeUndefined()
    for (const limit of ['mem_limit', 'cpu_quota', 'pids_limit', 'logging'] as const)
      expect(each[limit], `${name} ${limit}`).toBeDefined()
    // An engine refuses `cpus` above the number of processors that it has.
    expect(each.cpus, name).toBeUndefined()
    for (const { source } of mountsOf(each)) expect(source, `${name} mounts nothing of its host`).toMatch(/^[a-z-]+$/)
    const user = each.user ?? wholeStage(stages, stageOf(each) ?? '').findLast(({ name }) => name === 'USER')?.text
    // HAProxy's image sets its own user.
    if (name === 'secrets') expect([user, each.cap_add, each.network_mode]).toEqual(['0:0', ['CHOWN'], 'none'])
    else if (name !== 'balancer') expect(user, name).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    if (name !== 'secrets') expect(each.cap_add, name).toBeUndefined()
  }
})

test('only the load balancer and Grafana are published, and each service reaches only the networks that it needs', () => {
  const networks = (name: string) => networksOf(service(name)).sort()
  expect(services.flatMap(([name, { ports }]) => (ports ? [[name, ports]] : []))).toEqual([
    ['balancer', ['127.0.0.1:8080:8080']],
    ['grafana', ['127.0.0.1:3000:3000']],
  ])
  for (const [name, network] of Object.entries(compose.networks))
    expect(network?.internal ?? false, name).toBe(!['public', 'outbound', 'dashboards'].includes(name))
  const servicesOn = (network: string) =>
    services.filter(([, each]) => networksOf(each).includes(network)).map(([name]) => name)
  expect(servicesOn('public')).toEqual(['balancer'])
  expect(servicesOn('outbound')).toEqual(['courier-1', 'courier-2'])
  expect(servicesOn('dashboards')).toEqual(['grafana'])
  expect(networks('prometheus')).toEqual(['inner', 'monitoring'])
  expect(networks('courier-1')).toEqual(['inner', 'outbound'])
  expect(networks('gateway-1')).toEqual(['edge', 'inner', 'nonces'])
  expect(networks('core-1')).toEqual(['data', 'inner'])
  expect([networks('postgres'), networks('redis'), networks('migrate')]).toEqual([['data'], ['nonces'], ['data']])
  expect(networks('archive')).toEqual(['data'])
})

test('a container mounts its own secrets and no others', () => {
  for (const [name, each] of services) {
    const seen = mountsOf(each).filter(({ source }) => source.endsWith('-secrets'))
    if (name === 'secrets') continue
    const own = stageOf(each) === 'tools' ? name : (stageOf(each) ?? name)
    for (const { source, isReadOnly } of seen) expect([source, isReadOnly], name).toEqual([`${own}-secrets`, true])
  }
  expect(service('secrets').volumes).toEqual(
    Object.keys(compose.volumes)
      .filter(volume => !volume.endsWith('-data'))
      .map(volume => `${volume}:/secrets/${volume.replace(/-secrets$/, '')}`),
  )
  expect(service('balancer').volumes).toEqual(['balancer-config:/usr/local/etc/haproxy:ro'])
  expect(service('postgres').volumes).toContain('postgres-init:/docker-entrypoint-initdb.d:ro')
})

test('every variable is known to its program and valid, and every required one is set', async () => {
  expect(configured().map(([name]) => name)).toEqual([
    'migrate',
    'core-1',
    'core-2',
    'gateway-1',
    'gateway-2',
    'courier-1',
    'courier-2',
  ])
  for (const [name, each, schema] of configured()) {
    const { NODE_ENV, ...environment } = environmentOf(each)
    expect(NODE_ENV, name).toBe('production')
    const variables = Object.keys(environment).map(variable => variable.replace(/_FILE$/, ''))
    for (const variable of variables) expect(Object.keys(schema.shape), name).toContain(variable)
    for (const [variable, type] of Object.entries(schema.shape))
      if (!type.isOptional()) expect(variables, name).toContain(variable)
    // docker-compose.yml contains no secret.
    for (const variable of [
      'DATABASE_URL',
      'MIGRATION_DATABASE_URL',
      'KEY_ENCRYPTION_KEYS',
      'LEDGER_CHAIN_KEY',
      'RECEIPT_KEYS',
      'SERVICE_TOKENS',
      'CORE_TOKEN',
      'REDIS_URL',
    ])
      expect(environment[variable], `${name} ${variable}`).toBeUndefined()
    for (const [variable, value] of Object.entries(environment))
      if (variable.endsWith('_FILE')) environment[variable] = value.replace(/^\/secrets/, secretsOf(each))
    expect(() => readEnvironment(schema, environment), name).not.toThrow()
  }
  for (const name of ['gateway-1', 'gateway-2']) expect(service(name).environment).toHaveProperty('REDIS_URL_FILE')
})

test('every address names a service and port that listens, on a shared network', async () => {
  const addresses: [string, string][] = []
  for (const [name, each] of services) {
    const values = Object.entries(each.environment ?? {}).map(async ([variable, value]) =>
      variable.endsWith('_FILE') && value?.startsWith('/secrets')
        ? readFile(join(secretsOf(each), value.slice('/secrets'.length)), 'utf8')
        : String(value ?? ''),
    )
    for (const text of await Promise.all(values))
      for (const [, host] of text.matchAll(/\w+:\/\/(?:[^@/,]*@)?([\w.-]+:\d+)/g)) addresses.push([name, host!])
  }
  const balancer = await readFile(join(root, 'deploy/containers/haproxy.cfg'), 'utf8')
  for (const [, host] of balancer.matchAll(/^\s+server \S+ (\S+)$/gm)) addresses.push(['balancer', host!])

  const ports: Record<string, number> = { postgres: 5432, redis: 6379, balancer: 8080 }
  for (const [from, address] of addresses) {
    const [host = '', port] = address.split(':')
    const exposed = wholeStage(stages, stageOf(service(host)) ?? '').find(({ name }) => name === 'EXPOSE')?.text
    expect(Number(port), address).toBe(ports[host] ?? Number(exposed?.split(' ')[0]))
    const shared = networksOf(service(from)).filter(network => networksOf(service(host)).includes(network))
    expect(shared, `${from} reaches ${host}`).not.toEqual([])
  }
  const reached = (from: string) => addresses.filter(each => each[0] === from).map(each => each[1].split(':')[0])
  expect(new Set(reached('balancer'))).toEqual(new Set(['gateway-1', 'gateway-2']))
  for (const name of ['gateway-1', 'gateway-2', 'courier-1', 'courier-2', 'admin']) {
    expect(reached(name)).toContain('core-1')
    expect(reached(name)).toContain('core-2')
  }
  // The exposed ports are the defaults of the programs.
  expect(coreSchema.shape.CORE_PORT.parse(undefined)).toBe(8081)
  expect(gatewaySchema.shape.GATEWAY_PORT.parse(undefined)).toBe(8080)
  expect(gatewaySchema.shape.INTERNAL_PORT.parse(undefined)).toBe(8082)
  expect(courierSchema.shape.INTERNAL_PORT.parse(undefined)).toBe(8083)
})

test('the internal listeners of gateways and couriers listen on the internal network only', () => {
  for (const name of ['gateway-1', 'gateway-2', 'courier-1', 'courier-2']) {
    const { environment, networks } = service(name)
    const aliases = Object.entries(networks!).flatMap(([network, more]) =>
      (more?.aliases ?? []).map((alias: string) => [network, alias]),
    )
    expect(aliases, name).toEqual([['inner', `${name}-internal`]])
    expect(environment!.INTERNAL_HOST, name).toBe(`${name}-internal`)
  }
  const images = ['gateway', 'courier'].flatMap(stage => wholeStage(stages, stage))
  const variables = images.flatMap(({ name, text }) => (name === 'ENV' ? text.split(' ') : []))
  expect(variables.filter(pair => pair.startsWith('INTERNAL_HOST='))).toEqual([])
})

test('each key and each address has a limit by default', () => {
  for (const name of ['gateway-1', 'gateway-2'])
    expect(service(name).environment!.KEY_REQUESTS_PER_SECOND, name).toBe(500)
  expect(service('balancer').environment!.CONNECTIONS_PER_SOURCE).toBe(200)
})

test('every variable that an operator may set is documented', async () => {
  const text = await readFile(join(root, 'docker-compose.yml'), 'utf8')
  const handbook = await readFile(join(root, 'docs/operations.md'), 'utf8')
  const names = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
  expect(names).not.toEqual([])
  for (const name of names) expect(handbook.includes(`\`${name}\``), name).toBe(true)
})

function blockOf(cidr: string): BlockList {
  const [network = '', length] = cidr.split('/')
  const block = new BlockList()
  block.addSubnet(network, Number(length))
  return block
}

test('gateways trust only the load balancer as a proxy, and no other container can get its address', () => {
  const address = (service('balancer').networks as Record<string, { ipv4_address: string }>).edge!.ipv4_address
  for (const name of ['gateway-1', 'gateway-2']) expect(service(name).environment!.TRUSTED_PROXIES).toBe(address)
  const [config] = compose.networks.edge!.ipam!.config
  expect(blockOf(config!.subnet).check(address)).toBe(true)
  expect(blockOf(config!.ip_range).check(address)).toBe(false)
  // Docker assigns subnets from these pools by default: a network of another project may already use one.
  for (const pool of ['172.17.0.0/16', '172.18.0.0/15', '172.20.0.0/14', '172.24.0.0/13', '192.168.0.0/16'])
    expect(blockOf(pool).check(address), pool).toBe(false)
})

test('the health checks of our images ask for readiness, without starting Node', async () => {
  const body = '{"status":"not ready","parts":{}}'
  const server = createServer(({ url }, response) => {
    response.statusCode = url === '/readyz' ? status : 404
    response.end(body)
  })
  let status = 200
  const port = await listen(server)
  const check = (...host: string[]) =>
    promisify(execFile)('bash', [join(root, 'deploy/containers/is-ready.sh'), String(port), ...host])
  try {
    await check()
    await check('')
    await check('localhost')
    status = 503
    await expect(check()).rejects.toMatchObject({ code: 1, stdout: `${body}\n` })
  } finally {
    await new Promise(resolve => server.close(resolve))
  }
  await expect(check()).rejects.toMatchObject({ code: 1 })

  for (const stage of ['core', 'courier', 'gateway']) {
    const instructions = wholeStage(stages, stage)
    const text = (wanted: string) => instructions.find(({ name }) => name === wanted)!.text
    const [exposed] = text('EXPOSE').split(' ')
    const check = stage === 'courier' ? `CMD is-ready ${exposed} "$INTERNAL_HOST"` : `CMD ["is-ready", "${exposed}"]`
    expect(text('HEALTHCHECK'), stage).toContain(check)
    const copies = instructions.filter(({ name }) => name === 'COPY').map(({ text }) => readCopy(text))
    expect(copies).toContainEqual(
      expect.objectContaining({
        sources: ['deploy/containers/is-ready.sh'],
        target: '/usr/local/bin/is-ready',
        mode: '755',
      }),
    )
  }
})

test('PostgreSQL is not healthy before its first start has created the database', () => {
  const { test: command } = service('postgres').healthcheck!
  expect(command[1]).toContain('pg_isready --quiet --host=127.0.0.1 && psql --dbname=wallet')
})

test('the archive receives the log of the version that PostgreSQL has, and cannot fill its disk', async () => {
  const { image, command = [], environment } = service('archive')
  expect(image).toBe(service('postgres').image)
  const role = environment!.PGUSER
  const created =
    '--slot=archive --create-slot --if-not-exists && exec pg_receivewal --no-password --slot=archive --no-loop --synchronous --directory='
  expect(command.at(-1)).toContain(created)
  expect(service('archive').healthcheck!.test[1]).toContain("slot_name = 'archive'")
  expect(service('postgres').command).toContainEqual(expect.stringMatching(/^--max_slot_wal_keep_size=\d+GB$/))
  expect(await readFile(join(secretsDir, 'archive/pgpass'), 'utf8')).toBe(
    `postgres:5432:*:${role}:${await readFile(join(secretsDir, 'postgres/archive-password'), 'utf8')}`,
  )
})

test('the container that takes checkpoints has a token of its own, which may only read', async () => {
  const each = service('checkpoints')
  expect(each).toMatchObject({ entrypoint: ['bash', '-c'], restart: 'unless-stopped', working_dir: '/home/node' })
  expect(mountsOf(each)).toContainEqual({ source: 'checkpoint-data', target: each.working_dir, isReadOnly: false })
  expect(networksOf(each)).toEqual(['inner'])
  const token = await readFile(join(secretsDir, 'checkpoints/CORE_TOKEN'), 'utf8')
  expect((await readFile(join(secretsDir, 'core/SERVICE_TOKENS'), 'utf8')).split(',')).toContain(
    `checkpoints:viewer:${token}`,
  )
})

test('Compose waits longer than a program needs to stop', () => {
  for (const [name, each] of configured()) {
    if (each.restart === 'no') continue
    const delayMs = Number(each.environment?.STOP_DELAY_MS ?? 0)
    // Cores and gateways end by themselves after 13 s, with a line in the log that says what they waited for.
    expect(1000 * Number.parseInt(each.stop_grace_period!, 10), name).toBeGreaterThan(
      delayMs + (stageOf(each) === 'courier' ? attemptReserveMs : 13_000),
    )
  }
})

test('no image depends on the umask of the checkout, and no container mounts its files', () => {
  for (const { name, instructions } of stages)
    for (const { name: instruction, text } of instructions) {
      if (instruction !== 'COPY') continue
      const { from, mode } = readCopy(text)
      expect(mode, `${name}: COPY ${text}`).toBe(from ? undefined : '755')
    }
  for (const [name, each] of services) expect(each, name).not.toHaveProperty('configs')
})

test('Redis writes no snapshots, and starts without what was left when it was killed while it wrote a file', async () => {
  const { entrypoint, command } = service('redis')
  expect(command!.slice(command!.indexOf('--save')).slice(0, 2)).toEqual(['--save', ''])
  const data = await makeTempDir('redis-data')
  for (const name of ['temp-rewriteaof-7.aof', 'temp-rewriteaof-bg-7.aof', 'temp-7.rdb', 'appendonly.aof.1.incr.aof'])
    await writeFile(join(data, name), '')
  const [shell, ...args] = entrypoint!.map(each =>
    each.replaceAll('/data', data).replaceAll('$$', '$').replace('docker-entrypoint.sh', 'env'),
  )
  // Also without any such files.
  for (let starts = 0; starts < 2; starts++) {
    const { stdout } = await promisify(execFile)(shell!, [...args, 'printf', '[%s]', ...command!])
    expect(stdout).toBe(command!.map(each => `[${each}]`).join(''))
    expect(await readdir(data)).toEqual(['appendonly.aof.1.incr.aof'])
  }
})

test('every file that the Dockerfile copies exists and is not ignored; all package.json files are copied before npm ci', async () => {
  const ignored = (await readFile(join(root, '.dockerignore'), 'utf8')).split('\n')
  expect(ignored).toContain('*')
  const copied = stages.flatMap(stage =>
    stage.instructions.flatMap(({ name, text }) => (name === 'COPY' ? [{ stage: stage.name, ...readCopy(text) }] : [])),
  )
  for (const { from, sources } of copied)
    for (const source of sources) {
      if (from) {
        expect(stages.map(stage => stage.name)).toContain(from)
        continue
      }
      await expect(stat(join(root, source)), source).resolves.toBeDefined()
      expect(ignored, source).toContain(`!${source.split('/')[0]}`)
    }
  const manifests = copied.filter(({ stage }) => stage === 'manifests').flatMap(({ sources }) => sources)
  const wanted = [
    'package.json',
    'package-lock.json',
    ...(await Array.fromAsync(
      glob(
        packageJson.workspaces.map(workspace => `${workspace}/package.json`),
        { cwd: root },
      ),
    )),
  ]
  for (const manifest of wanted) expect(manifests).toContain(manifest)
})

/** The ID of the user that must own a file of deploy/containers/secrets.ts. */
function userOf(file: string): number {
  if (file.startsWith('all/')) return 0
  if (file.startsWith('balancer-config/')) return 99
  if (file.startsWith('prometheus')) return 65_534
  if (file.startsWith('grafana')) return 472
  return /^(postgres|archive|redis)/.test(file) ? 999 : 1000
}

test('secrets are created once, each readable by one user, and deleted copies are restored', async () => {
  const files = async () => {
    const names = (await readdir(secretsDir, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
    return new Map(
      await Promise.all(
        names.map(async entry => {
          const path = join(entry.parentPath, entry.name)
          const { mode, uid } = await stat(path)
          return [
            path.slice(secretsDir.length + 1),
            { mode: mode & 0o777, uid, text: await readFile(path, 'utf8') },
          ] as const
        }),
      ),
    )
  }
  const before = await files()
  for (const [name, { mode, uid }] of before) {
    expect(mode, name).toBe(name === 'all/secrets.json' ? 0o600 : 0o400)
    if (process.getuid!() !== 0) continue
    expect(uid, name).toBe(userOf(name))
  }
  await rm(join(secretsDir, 'core', 'LEDGER_CHAIN_KEY'))
  await makeSecrets()
  expect(await files()).toEqual(before)
  expect(JSON.parse(before.get('all/secrets.json')!.text).ledgerChainKey).toBe(
    before.get('core/LEDGER_CHAIN_KEY')!.text,
  )
})
