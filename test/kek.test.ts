import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Delivery, type LeasedWebhook, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient, readKekStatus } from '@workspace-wallet/core-client'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import type { Program } from '../cli/processes/program.ts'
import { type Credentials, call } from './setup/client.ts'
import { execute, holdWrites, query } from './setup/database.ts'
import { dumpOf, formsOf } from './setup/dump.ts'
import { pauseAfter } from './setup/load.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createKey } from './setup/workspaces.ts'

/**
 * API secrets at rest: what a dump contains, and the replacement of the key-encryption key under traffic. The tests
 * follow the steps of docs/operations.md in their order.
 */

const keks = { k1: randomBytes(32), k2: randomBytes(32) }
const ringOf = (...ids: ('k1' | 'k2')[]) => ids.map(id => `${id}:${keks[id].toString('base64')}`).join(',')
const list = '/api/v1/wallets'
const keyCount = 230

let system: System
/** All keys, and all secrets that they have had. */
let keys: Credentials[]
const secrets: string[] = []
/** Cores and gateways after the second step: all of them have both keys, and cores have the new one first. */
let cores: Program[]
let gateways: Program[]

beforeAll(async () => {
  // Step 1: every program has the new key after the old one.
  const environment = { KEY_ENCRYPTION_KEYS: ringOf('k1', 'k2') }
  // Tests make a rotation wait for a row lock.
  system = await startSystem({ coreEnvironment: environment, gatewayEnvironment: environment, waitsForLocks: true })
  keys = []
  webhooks.push(await newWebhook(), await newWebhook(), await newWebhook())
  await inParallel(8, Array(keyCount).fill(null), async () => void keys.push(await newKey()))
  // In the order of a rotation, in which tests stop at certain keys.
  keys.sort((a, b) => (a.apiKey < b.apiKey ? -1 : 1))
  // Step 2: cores encrypt under the new key.
  const reordered = { KEY_ENCRYPTION_KEYS: ringOf('k2', 'k1') }
  cores = [await system.startCore(reordered), await system.startCore(reordered)]
  const through = { CORE_URL: cores.map(({ url }) => url).join(',') }
  gateways = [await system.startGateway(through), await system.startGateway(through)]
})
afterAll(() => system.stop())

async function newKey(): Promise<Credentials> {
  const key = await createKey(system, { scopes: ['wallet:read'] })
  secrets.push(key.apiSecret)
  return key
}

/** Webhooks of the workspace, with the secrets that sign their deliveries. */
const webhooks: { webhookId: string; secrets: string[] }[] = []

async function newWebhook(): Promise<(typeof webhooks)[number]> {
  const body = { url: 'https://receiver.example/', bizId: `hook-${webhooks.length}-${randomBytes(4).toString('hex')}` }
  const { webhookId, secret } = (await call(system, 'POST', '/api/v1/webhook/command/create', body)).body.data
  secrets.push(secret.slice('whsec_'.length))
  return { webhookId, secrets: [secret] }
}

type Result = { exitCode: number | null; stdout: string; stderr: string }

/** `npm run admin -- kek …` against one core. */
function admin(core: Program, verb: string): { process: ChildProcess; ended: Promise<Result> } {
  const script = fileURLToPath(new URL('../cli/admin.ts', import.meta.url))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [script, 'kek', verb, '--json'], {
    env: { PATH, NODE_COMPILE_CACHE, CORE_URL: core.url, CORE_TOKEN: system.adminToken },
  })
  const result: Result = { exitCode: null, stdout: '', stderr: '' }
  child.stdout.on('data', chunk => (result.stdout += chunk))
  child.stderr.on('data', chunk => (result.stderr += chunk))
  const ended = once(child, 'close').then(([exitCode]) => ({ ...result, exitCode }))
  return { process: child, ended }
}

/** Starts a rotation, and runs `action` while the rotation waits with the row of one key, in the middle of a step. */
async function heldAt(
  { apiKey }: Credentials,
  core: Program,
  action: (rotation: ReturnType<typeof admin>) => Promise<unknown>,
): Promise<Result> {
  const when = `old.id = '${uuidFromId('apiKey', apiKey)}'`
  const release = await holdWrites(system.database.ownerUrl, { table: 'api_key', event: 'update', when })
  const rotation = admin(core, 'rotate')
  try {
    await until('the rotation waits', async () => {
      const sql = `select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query ilike 'update%"api_key"%'`
      return (await query(system.database.ownerUrl, sql)).length > 0
    })
    await action(rotation)
  } finally {
    await release()
  }
  return rotation.ended
}

/** Clients that send requests until they are stopped. Returns the number of answers by code. */
function startTraffic(): { stop(): Promise<Map<string, number>> } {
  let isStopped = false
  const codes = new Map<string, number>()
  const clients = gateways.flatMap(({ url }) => [0, 120, 229].map(at => ({ ...keys[at]!, baseUrl: url })))
  const running = clients.map(async client => {
    while (!isStopped) {
      const { code } = (await call(client, 'GET', list)).body
      codes.set(code, (codes.get(code) ?? 0) + 1)
      await pauseAfter(code)
    }
  })
  return {
    async stop() {
      isStopped = true
      await Promise.all(running)
      return codes
    },
  }
}

async function countsNow(core = cores[1]!): Promise<Record<string, number>> {
  const client = createCoreClient({ url: core.url, token: system.adminToken })
  const { keks: counts } = await readKekStatus(client)
  await client.close()
  return Object.fromEntries(counts.map(({ kek, secrets: count }) => [kek, count]))
}

/** The dump contains no secret and no key-encryption key in any form. The first assertions show that the search works. */
async function expectNoSecretInDump(): Promise<void> {
  const dump = await dumpOf(system.database.ownerUrl)
  expect(dump).toContain('v1.k')
  expect(dump).toContain(uuidFromId('apiKey', keys[0]!.apiKey))
  const needles = [
    ...secrets.flatMap(secret => [Buffer.from(secret), Buffer.from(secret, 'base64')]),
    ...Object.values(keks),
    ...[system.adminToken, system.gatewayToken, system.serviceToken].map(token => Buffer.from(token)),
  ]
  for (const form of needles.flatMap(formsOf)) expect(dump.includes(form), form).toBe(false)
}

test('the search for secrets finds each of their forms', () => {
  const secret = randomBytes(32)
  for (const around of ['', 'x', 'xy', 'xyz']) {
    const text = Buffer.concat([Buffer.from(around), secret, Buffer.from(around)])
    for (const encoding of ['latin1', 'hex', 'base64', 'base64url'] as const)
      expect(formsOf(secret).some(form => text.toString(encoding).includes(form))).toBe(true)
  }
})

test('a dump contains no secret', expectNoSecretInDump)

describe('a rotation of the key-encryption key under traffic', () => {
  test('keeps what it has done when its core is killed in the middle of a step, and all clients are served', async () => {
    const clients = startTraffic()
    expect(await heldAt(keys[121]!, cores[0]!, () => cores[0]!.kill('SIGKILL'))).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'The connection to core was lost: run it again to continue.\n',
    })
    const counts = await countsNow()
    expect(counts.k2).toBeGreaterThan(0)
    expect(counts.k1).toBeGreaterThan(0)
    expect([...(await clients.stop()).keys()]).toEqual(['2000'])
  })

  test('continues after it was killed, while keys are issued, rotated and deleted', async () => {
    const [, core] = cores
    const clients = startTraffic()
    const before = await countsNow()
    const { exitCode: killed } = await heldAt(keys[201]!, core!, async rotation => {
      rotation.process.kill('SIGKILL')
      await rotation.ended
    })
    expect(killed).toBeNull()
    const client = createCoreClient({ url: core!.url, token: system.adminToken })
    const changes = Promise.all([
      ...[1, 2, 3].map(async at => {
        const rotated = await client.apiKeys.rotate.mutate({ apiKey: keys[at]!.apiKey, graceMs: 3600_000 })
        secrets.push(rotated.apiSecret)
        keys.push({ ...keys[at]!, ...rotated })
      }),
      ...[4, 5].map(at => client.apiKeys.rotate.mutate({ apiKey: keys[at]!.apiKey, graceMs: 0 })),
      ...[6, 7].map(at => client.apiKeys.delete.mutate({ apiKey: keys[at]!.apiKey })),
      newKey().then(key => keys.push(key)),
    ])
    const { exitCode, stdout, stderr } = await admin(core!, 'rotate').ended
    await changes
    await client.close()
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    const result = JSON.parse(stdout)
    expect(result).toMatchObject({ active: 'k2', remaining: 0, unreadable: [] })
    // The first core still encrypts under the old key, and may have issued its key after the rotation had finished.
    const counts = await countsNow()
    expect(counts.k1 ?? 0).toBeLessThanOrEqual(1)
    expect(result.rewrapped).toBeLessThanOrEqual(before.k1!)
    expect([...(await clients.stop()).keys()]).toEqual(['2000'])
    await admin(core!, 'rotate').ended
    expect(Object.keys(await countsNow())).toEqual(['k2'])
  })

  test('rewraps nothing when it is run again', async () => {
    const { stdout, exitCode } = await admin(cores[1]!, 'rotate').ended
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ rewrapped: 0, remaining: 0 })
  })

  test('writes audit entries without a secret, and a dump still contains none', async () => {
    const { entries } = await system.admin.audit.list.query({ action: 'kek.rotate' })
    expect(entries.length).toBeGreaterThan(1)
    expect(entries[0]).toMatchObject({ actor: 'admin:a', target: 'k2', after: { secrets: expect.any(Number) } })
    await expectNoSecretInDump()
  })

  test('leaves every secret readable with the new key alone, also both secrets of a key in its grace period', async () => {
    const environment = { KEY_ENCRYPTION_KEYS: ringOf('k2') }
    const core = await system.startCore(environment)
    const gateway = await system.startGateway({ ...environment, CORE_URL: core.url })
    const codes: string[] = []
    for (const key of keys) codes.push((await call({ ...key, baseUrl: gateway.url }, 'GET', list)).body.code)
    const expected = keys.map((_, at) => (at === 4 || at === 5 ? 'GA2012' : at === 6 || at === 7 ? 'GA2011' : '2000'))
    expect(codes).toEqual(expected)
  })
})

test('webhooks are signed under the same secrets after a rotation, also under both in a grace', async () => {
  const [first, second] = webhooks
  const rotated = await call(system, 'POST', '/api/v1/webhook/command/rotate', { webhookId: second!.webhookId })
  const { secret } = rotated.body.data
  secrets.push(secret.slice('whsec_'.length))
  second!.secrets.unshift(secret)
  const before = await countsNow()
  // This gateway calls a core that still encrypts under the old key.
  expect(before.k1).toBe(1)
  const { exitCode, stdout } = await admin(cores[1]!, 'rotate').ended
  expect([exitCode, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ rewrapped: before.k1, remaining: 0 })])
  await expectNoSecretInDump()

  const core = await system.startCore({ KEY_ENCRYPTION_KEYS: ringOf('k2') })
  const { workspaceId, wallets } = system
  await system.admin.wallets.deposit.mutate({
    workspaceId,
    walletId: wallets[0]!.walletId,
    amount: '1.00',
    bizId: randomUUID(),
  })
  const courier = createCoreClient({ url: core.url, token: system.courierToken })
  const leased: LeasedWebhook[] = []
  // A call does not lease webhooks whose events are not read in time.
  await until('all webhooks are leased', async () => {
    leased.push(...(await courier.courier.lease.mutate({ size: 10 })).webhooks)
    return leased.length >= webhooks.length
  })
  await courier.close()
  expect(leased).toHaveLength(webhooks.length)
  for (const { webhookId, secrets: ofWebhook } of [first!, second!]) {
    const [{ body, headers }] = leased.find(each => each.webhookId === webhookId)!.deliveries as [Delivery]
    for (const each of ofWebhook) new Verifier(each).verify(body, headers)
  }
  expect(await verifyLedger(system)).toMatchObject({ ok: true })
})

describe('a core with other key-encryption keys', () => {
  test('does not start without a key that encrypts secrets, or with another key under its ID', async () => {
    await expect(system.startCore({ KEY_ENCRYPTION_KEYS: ringOf('k1') })).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS lacks k2, which encrypts secrets such as that of \w+: append that key to the list of core and gateways/,
    )
    const other = `k2:${randomBytes(32).toString('base64')}`
    await expect(system.startCore({ KEY_ENCRYPTION_KEYS: other })).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS has another k2 than the one that encrypts/,
    )
  })

  test('rejects a rotation to a key that is not its first', async () => {
    // This core has the old key first: it would encrypt again under the old key what others have rewrapped.
    await expect(system.admin.keks.rewrap.mutate({ to: 'k2' })).rejects.toThrow(
      'The first key-encryption key of this core is k1, that of another core is k2',
    )
  })

  test('encrypts new secrets under its first key, and kek status shows them', async () => {
    await newKey()
    const { stdout } = await admin(cores[1]!, 'status').ended
    expect(JSON.parse(stdout)).toMatchObject({
      active: 'k2',
      keks: [
        { kek: 'k1', secrets: 1, onRing: true },
        { kek: 'k2', onRing: true },
      ],
    })
    const { exitCode } = await admin(cores[1]!, 'rotate').ended
    expect(exitCode).toBe(0)
  })
})

test('a damaged secret does not stop a rotation, which names its key and does not report success', async () => {
  const key = await newKey()
  const { ownerUrl } = system.database
  const isKey = `id = '${uuidFromId('apiKey', key.apiKey)}'`
  await query(ownerUrl, `update api_key set secret = secret || 'AAAA', revision = revision + 1 where ${isKey}`)
  await signRows(ownerUrl, system.chainKey, 'api_key', isKey)
  const intact = await newKey()
  const { exitCode, stdout, stderr } = await admin(cores[1]!, 'rotate').ended
  expect(exitCode).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ rewrapped: 1, remaining: 1, unreadable: [key.apiKey] })
  expect(stderr).toBe(
    `Cannot re-encrypt 1 secret, because core cannot decrypt those of ${key.apiKey}: rotate or delete them.\n`,
  )
  expect((await call({ ...intact, baseUrl: gateways[0]!.url }, 'GET', list)).body.code).toBe('2000')
  await system.admin.apiKeys.delete.mutate(key)
  expect((await admin(cores[1]!, 'rotate').ended).exitCode).toBe(0)
})

test('after the loss of a key-encryption key, its API keys can be disabled, and all others work', async () => {
  const lost = await newKey()
  const { webhookId } = await newWebhook()
  expect(await countsNow()).toMatchObject({ k1: 2 })
  const page = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
  const [, sql] = /```sql\n([^`]+)```/.exec(page)!
  await execute(system.database.ownerUrl, sql!.replaceAll("'lost'", "'k1'"))
  const core = await system.startCore({ KEY_ENCRYPTION_KEYS: ringOf('k2') })
  const gateway = await system.startGateway({ KEY_ENCRYPTION_KEYS: ringOf('k2'), CORE_URL: core.url })
  // A busy machine may have the new gateway wait too long for its first answer of core or of Redis.
  await until('the disabled key is rejected', async () => {
    const { code } = (await call({ ...lost, baseUrl: gateway.url }, 'GET', list)).body
    expect(['GA2011', 'S002']).toContain(code)
    return code === 'GA2011'
  })
  expect((await call({ ...keys[0]!, baseUrl: gateway.url }, 'GET', list)).body.code).toBe('2000')

  // The SQL of docs/operations.md leaves the row without a valid MAC. Deleting the key signs it again.
  const ids = expect.objectContaining({ apiKey: lost.apiKey })
  const hookIds = expect.objectContaining({ webhookId })
  const broken = [
    { rule: 'webhook-mac', ids: hookIds },
    { rule: 'key-mac', ids },
    { rule: 'key-audit', ids },
    { rule: 'webhook-audit', ids: hookIds },
  ].map(each => expect.objectContaining(each))
  expect((await verifyLedger(system)).violations).toEqual(broken)
  await system.admin.apiKeys.delete.mutate(lost)
  const { workspaceId } = system
  await system.admin.webhooks.delete.mutate({ workspaceId, webhookId, caller: { requestId: 'test' } })
  expect(await verifyLedger(system)).toMatchObject({ ok: true })
})
