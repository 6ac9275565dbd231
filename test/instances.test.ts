import { randomUUID } from 'node:crypto'
import {
  type Instance,
  type InstanceReport,
  instancesPerName,
  kindsOfMixedVersions,
  mintId,
} from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAdmin } from './setup/admin-command.ts'
import { call } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Cores, gateways and couriers report themselves, and operators see which run. */

let system: System
beforeAll(async () => {
  system = await startSystem({ cores: 2 })
})
afterAll(() => system.stop())

const list = async () => (await system.admin.system.status.query()).instances
const status = async () => (await runAdmin(system, 'system status')).stdout
const find = async (is: (instance: Instance) => boolean) => (await list()).find(is)
const named = (instanceId: string) => find(each => each.instanceId === instanceId)

const report = (change: Partial<InstanceReport> = {}): InstanceReport => ({
  instanceId: randomUUID(),
  host: 'elsewhere',
  version: '1.0.0',
  uptimeMs: 60_000,
  fault: null,
  waiting: 0,
  unhealthyCores: 0,
  ...change,
})
const send = (change?: Partial<InstanceReport>) => system.gatewayClient.instances.report.mutate(report(change))

/** Reports an instance, and returns what core has stored. */
async function reported(change: Partial<InstanceReport> = {}): Promise<Instance> {
  const instanceId = randomUUID()
  await send({ instanceId, ...change })
  return until('the report is stored', () => named(instanceId))
}

/** Sets back when an instance was seen, as if time had passed. */
const setBack = (instanceId: string, interval: string) =>
  execute(
    system.database.ownerUrl,
    `update instance set seen_at = seen_at - interval '${interval}' where id = '${instanceId}'`,
  )

test('every core, gateway and courier is shown as running, with its version', async () => {
  const courier = await system.startCourier()
  const found = await until('all instances have reported themselves', async () => {
    const found = await list()
    return found.length === 4 && found
  })
  const expected = (kind: string, name: string) => ({
    instanceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    kind,
    name,
    host: expect.stringMatching(/^[!-~]+$/),
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    startedAt: expect.any(Date),
    seenAt: expect.any(Date),
    isRunning: true,
    fault: null,
    waiting: expect.any(Number),
    unhealthyCores: 0,
  })
  // Right after its start, a courier or gateway may not have heard of core yet.
  expect(found.map(each => ({ ...each, fault: null }))).toEqual([
    expected('core', 'core'),
    expected('core', 'core'),
    expected('gateway', 'g'),
    expected('courier', 'c'),
  ])
  expect(new Set(found.map(({ instanceId }) => instanceId)).size).toBe(4)
  for (const { startedAt, seenAt } of found) expect(startedAt.getTime()).toBeLessThan(seenAt.getTime() + 1)
  expect(kindsOfMixedVersions(found)).toEqual([])
  await courier.stop()
})

test.each(['core', 'gateway', 'courier'])(
  'a %s that stops is no longer listed; one that is killed is not seen any more',
  async kind => {
    const start = { core: system.startCore, gateway: system.startGateway, courier: system.startCourier }[kind]!
    const before = new Set((await list()).map(({ instanceId }) => instanceId))
    const appeared = () =>
      until(`the ${kind} has reported itself`, () => find(each => each.kind === kind && !before.has(each.instanceId)))
    const stopped = await start()
    const { instanceId } = await appeared()
    await stopped.stop()
    await until('it has left', async () => !(await named(instanceId)))

    const killed = await start()
    const { instanceId: lost } = await appeared()
    await killed.kill('SIGKILL')
    // Each time: core may still write the last report.
    await until('it is not seen any more', async () => {
      await setBack(lost, '31 seconds')
      return !(await named(lost))!.isRunning
    })
    expect(await named(lost)).toMatchObject({ kind, isRunning: false })
    await until('it is no longer listed', async () => {
      await setBack(lost, '1 hour')
      return !(await named(lost))
    })
  },
)

test('an instance that was not seen for a while is running again after its next report', async () => {
  const { instanceId, startedAt } = await reported()
  await setBack(instanceId, '31 seconds')
  expect(await named(instanceId)).toMatchObject({ isRunning: false })
  await send({ instanceId, fault: 'nonces: no answer', waiting: 7, unhealthyCores: 1, version: '1.0.1' })
  const back = await until('it is seen again', async () => {
    const instance = await named(instanceId)
    return instance?.isRunning && instance
  })
  expect(back).toMatchObject({ fault: 'nonces: no answer', waiting: 7, unhealthyCores: 1, version: '1.0.1', startedAt })
  await system.gatewayClient.instances.leave.mutate({ instanceId })
})

test('a gateway says that it cannot reach its nonce store', async () => {
  const gateway = await system.startGateway({ REDIS_URL: 'redis://127.0.0.1:1' })
  const found = await until('the gateway has reported itself', () => find(({ fault }) => fault !== null))
  expect(found).toMatchObject({ kind: 'gateway', isRunning: true, fault: expect.stringMatching(/nonces: /) })
  await gateway.stop()
})

test('different versions of running instances of one kind are a warning', async () => {
  const { instanceId } = await reported({ version: '9.9.9', host: 'new-host' })
  expect(kindsOfMixedVersions(await list())).toEqual(['gateway'])
  const shown = await status()
  expect(shown).toMatch(/^gateway:g +new-host +9\.9\.9 +\S+Z +0 +running +/m)
  expect(shown).toContain('\nWARNING: gateways run different versions.\n')
  await setBack(instanceId, '31 seconds')
  expect(await status()).not.toContain('WARNING')
  expect(await status()).toMatch(/^gateway:g +new-host .+ NOT SEEN SINCE \S+Z/m)
  await system.gatewayClient.instances.leave.mutate({ instanceId })
})

test('requests do not wait for a core that stores no reports', async () => {
  await execute(system.database.ownerUrl, 'alter table instance rename to instance_away')
  await send()
  await until('a core has failed to store a report', () =>
    system.cores.some(core => core.output().includes('reports of instances could not be stored')),
  )
  expect((await call(system, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
  await execute(system.database.ownerUrl, 'alter table instance_away rename to instance')
  await reported()
})

describe('the holder of the token of a gateway', () => {
  test('reports as no core, and neither changes nor removes an instance of another name', async () => {
    const core = (await find(({ kind }) => kind === 'core'))!
    await send({ instanceId: core.instanceId, version: '0.0.1', fault: 'forged' })
    await system.gatewayClient.instances.leave.mutate({ instanceId: core.instanceId })
    // What is reported later is stored later.
    await reported()
    const { kind, name, version, fault } = core
    expect(await named(core.instanceId)).toMatchObject({ kind, name, version, fault })
  })

  test.each([
    ['a long fault', { fault: 'x'.repeat(201) }],
    ['a null character', { fault: '\u0000' }],
    ['a long host', { host: 'x'.repeat(65) }],
    ['a line break', { version: 'a\nb' }],
    ['a number that is not whole', { waiting: 0.5 }],
    ['a number that PostgreSQL cannot store', { waiting: 2 ** 31 }],
    ['a start before all times', { uptimeMs: Number.MAX_SAFE_INTEGER }],
    ['an ID that is no UUID', { instanceId: mintId('apiKey') }],
  ])('cannot store %s', async (_, change) => {
    await expect(send(change)).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
  })

  test('cannot keep the reports of others from being stored', async () => {
    const oldest = await reported({ uptimeMs: 3_155_760_000_000 })
    expect(oldest.startedAt).toEqual(new Date(0))
    await system.gatewayClient.instances.leave.mutate({ instanceId: oldest.instanceId })
  })

  test('cannot fill the table, and displaces nobody who runs', async () => {
    const { instanceId } = await reported({ host: 'genuine' })
    const cores = system.cores.slice(0, 2)
    const clients = cores.map(({ url }) => createCoreClient({ url, token: system.gatewayToken }))
    await Promise.all(
      Array.from({ length: 10 * instancesPerName }, (_, at) =>
        clients[at % clients.length]!.instances.report.mutate(report({ host: 'flood' })),
      ),
    )
    const found = await until('the flood is stored', async () => {
      const found = (await list()).filter(({ kind }) => kind === 'gateway')
      return found.length >= instancesPerName && found
    })
    // Each core counts for itself what is stored already.
    expect(found.length).toBeLessThanOrEqual(instancesPerName * cores.length)
    expect(found.map(each => each.instanceId)).toContain(instanceId)
    await send({ instanceId, host: 'genuine', waiting: 5 })
    await until('it is still seen', async () => (await named(instanceId))?.waiting === 5)
    expect((await list()).some(({ kind }) => kind === 'core')).toBe(true)
    // Most of those that are gone make room at once.
    await execute(
      system.database.ownerUrl,
      `update instance set seen_at = seen_at - interval '31 seconds' where host = 'flood'`,
    )
    await until('there is room', async () => {
      await send({ instanceId })
      return (await list()).filter(({ host }) => host === 'flood').length <= 20
    })
    await Promise.all(clients.map(client => client.close()))
  })
})

test('whatever is stored with the role of the service, the state of the service is answered, with all others', async () => {
  const { instanceId } = await reported({ host: 'sound' })
  const times = [
    `'infinity'`,
    `'-infinity'`,
    `'0044-03-15 BC'`,
    `'294276-12-31'`,
    `'1970-01-01'`,
    `'9999-12-31'`,
    'null',
  ]
  const texts = [`''`, `E'\\x01\\n<script>'`, `repeat('😀', 64)`, `repeat('x', 3000000)`, 'null']
  const numbers = ['-1', '2147483647', 'null']
  const values: Record<string, string[]> = {
    id: [`'00000000-0000-0000-0000-000000000000'`, `'ffffffff-ffff-ffff-ffff-ffffffffffff'`],
    kind: [`'odd'`, ...texts],
    ...Object.fromEntries(['name', 'host', 'version', 'fault'].map(column => [column, texts])),
    ...Object.fromEntries(['started_at', 'seen_at'].map(column => [column, times])),
    ...Object.fromEntries(['waiting', 'unhealthy_cores'].map(column => [column, numbers])),
  }
  const sound: Record<string, string> = {
    id: 'gen_random_uuid()',
    kind: `'gateway'`,
    name: `'g'`,
    host: `'forged'`,
    version: `'1.0.0'`,
    started_at: 'now()',
    waiting: '0',
    unhealthy_cores: '0',
  }
  let stored = 0
  for (const [column, all] of Object.entries(values))
    for (const value of all) {
      const { seen_at, ...row } = { ...sound, [column]: value }
      const insert = `insert into instance (${Object.keys(row)}) values (${Object.values(row)}) returning id`
      const update = (id: string) => `update instance set seen_at = ${seen_at} where id = '${id}'`
      await query(system.database.serviceUrl, insert)
        .then(async ([found]) => {
          if (seen_at) await execute(system.database.serviceUrl, update(String(found!.id)))
        })
        .then(
          () => stored++,
          (error: { code?: string }) => expect(error.code, `${column} = ${value}`).toMatch(/^(22|23|42501)/),
        )
      expect(
        (await list()).map(each => each.instanceId),
        `${column} = ${value}`,
      ).toContain(instanceId)
    }
  expect(stored).toBeGreaterThan(20)
  expect(await status()).not.toContain('\u0001')
  // Reports are still stored, and times to come are removed.
  await reported()
  await until('no time to come is left', async () => {
    await send()
    return (
      (await query(system.database.serviceUrl, "select from instance where seen_at > now() + interval '1 minute'"))
        .length === 0
    )
  })
})
