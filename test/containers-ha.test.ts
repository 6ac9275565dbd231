/** Checks docker-compose.ha.yml and the configuration of its programs, as far as possible without Docker. */
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { isListenedOn, pickFreePort } from '../cli/processes/ports.ts'
import { findProgram } from '../cli/processes/programs.ts'
import { startServer } from '../cli/processes/server.ts'
import { type Compose, mountsOf, networksOf, readCompose, type Service } from './setup/compose.ts'
import { root } from './setup/images.ts'
import { listen } from './setup/listen.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

const folder = join(root, 'deploy/containers/ha')
let base: Compose
let compose: Compose
beforeAll(async () => {
  base = await readCompose()
  compose = await readCompose('docker-compose.ha.yml')
})

const servicesOf = (name: string): [string, Service][] =>
  Object.entries(compose.services).filter(([each]) => each.startsWith(`${name}-`))

test('there are three members and three etcd, and the address of the primary takes the place of the single server', () => {
  expect(servicesOf('member').map(([name]) => name)).toEqual(['member-1', 'member-2', 'member-3'])
  expect(servicesOf('etcd').map(([name]) => name)).toEqual(['etcd-1', 'etcd-2', 'etcd-3'])
  const address = compose.services.postgres!
  expect(address.volumes).toEqual([])
  expect(networksOf(base.services.postgres!)).toEqual(['data'])
  for (const [at, [name]] of servicesOf('member').entries())
    expect(address.environment).toMatchObject({
      [`MEMBER_${at + 1}`]: `${name}:5432`,
      [`MEMBER_${at + 1}_API`]: '8008',
    })
})

test('each container has the rights, limits, networks and volumes that it needs, and no more', () => {
  const volumes = new Set<string>()
  for (const [name, each] of [...servicesOf('member'), ...servicesOf('etcd')]) {
    const hardened = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], user: '999:999' }
    expect(each, name).toMatchObject({ ...hardened, image: 'workspace-wallet/postgres-ha:1.0.0', pull_policy: 'never' })
    expect(each.ports, name).toBeUndefined()
    for (const limit of ['mem_limit', 'cpu_quota', 'pids_limit', 'logging'] as const)
      expect(each[limit], `${name} ${limit}`).toBeDefined()
    const own = mountsOf(each).map(({ source }) => source)
    expect(own[0]).toBe(`${name}-data`)
    for (const source of own.slice(1)) expect(Object.keys(base.volumes)).toContain(source)
    volumes.add(own[0]!)
  }
  expect([...volumes].sort()).toEqual(Object.keys(compose.volumes).sort())
  for (const [name, each] of servicesOf('member')) expect(networksOf(each), name).toEqual(['members', 'consensus'])
  for (const [name, each] of servicesOf('etcd')) expect(networksOf(each), name).toEqual(['consensus'])
  expect(networksOf(compose.services.postgres!)).toEqual(['data', 'members'])
  expect(compose.networks).toEqual({ members: { internal: true }, consensus: { internal: true } })
  expect(Object.entries(compose.services).filter(([, { build }]) => build)).toHaveLength(1)
})

test('members and etcd advertise the names under which the others reach them', () => {
  for (const [name, { environment }] of servicesOf('member'))
    expect(environment, name).toMatchObject({
      PATRONI_NAME: name,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${name}:8008`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${name}:5432`,
      PATRONI_ETCD3_HOSTS: servicesOf('etcd')
        .map(([each]) => `${each}:2379`)
        .join(','),
    })
  for (const [name, { environment }] of servicesOf('etcd'))
    expect(environment, name).toMatchObject({
      ETCD_NAME: name,
      ETCD_ADVERTISE_CLIENT_URLS: `http://${name}:2379`,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: `http://${name}:2380`,
      ETCD_INITIAL_CLUSTER: servicesOf('etcd')
        .map(([each]) => `${each}=http://${each}:2380`)
        .join(','),
    })
})

test('Patroni confirms no commit without a standby, and a primary without etcd stops before another one is promoted', async () => {
  const { bootstrap } = parse(await readFile(join(folder, 'patroni.yml'), 'utf8'))
  const { ttl, loop_wait, retry_timeout, postgresql, ignore_slots, ...settings } = bootstrap.dcs
  expect(settings).toEqual({ synchronous_mode: 'quorum', synchronous_mode_strict: true, synchronous_node_count: 1 })
  expect(loop_wait + 2 * retry_timeout).toBeLessThanOrEqual(ttl)
  expect(postgresql).toMatchObject({ use_pg_rewind: true, parameters: { fsync: 'on', synchronous_commit: 'on' } })
  // docker-compose.yml: the service archive creates this slot.
  expect(ignore_slots).toEqual([{ name: 'archive', type: 'physical' }])
})

test('the image has the library for etcd, which the package of Patroni does not require', async () => {
  expect(await readFile(join(folder, 'Dockerfile'), 'utf8')).toMatch(
    /install .* patroni python3-etcd etcd-server haproxy /,
  )
})

test('HAProxy forwards connections to a member only once it is promoted', async () => {
  // What Patroni answers to GET /primary as soon as the member has the leader key.
  let role = 'replica'
  const patroni = createHttpServer((_request, response) => response.end(JSON.stringify({ state: 'running', role })))
  const member = createServer(socket => socket.on('error', () => {}).end('member'))
  const [api, port, address] = [await listen(patroni), await listen(member), await pickFreePort()]
  const env = Object.fromEntries(
    [1, 2, 3].flatMap(at => [
      [`MEMBER_${at}`, `127.0.0.1:${port}`],
      [`MEMBER_${at}_API`, String(api)],
    ]),
  )
  const program = await findProgram(['haproxy'], 'haproxy')
  const args = ['-db', '-f', join(folder, 'haproxy.cfg')]
  const haproxy = await startServer(
    { command: program, args, env: { ...env, LISTEN: `127.0.0.1:${address}` }, stopSteps: [] },
    join(await makeTempDir('haproxy'), 'haproxy.log'),
    () => isListenedOn(address),
  )
  const read = () => text(connect(address, '127.0.0.1')).catch(() => '')
  try {
    // Servers count as available until their first check.
    await until('no member is available', async () => (await read()) === '')
    role = 'primary'
    await until('a member is available', async () => (await read()) === 'member')
    role = 'replica'
    await until('it is not available any more', async () => (await read()) === '')
  } finally {
    await haproxy.stop()
    patroni.close()
    member.close()
  }
})
