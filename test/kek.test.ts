import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { type Credentials, call } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { dumpOf, formsOf } from './setup/dump.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/**
 * API secrets at rest: what a dump shows, and how the key-encryption key over them is changed while clients call. The
 * tests follow the steps of docs/operations.md, in their order.
 */

const keks = { k1: randomBytes(32), k2: randomBytes(32) }
const ringOf = (...ids: ('k1' | 'k2')[]) => ids.map(id => `${id}:${keks[id].toString('base64')}`).join(',')
const list = '/api/v1/wallets'
const keyCount = 230

let system: System
/** The key of each, and the secrets that have been its. */
let keys: Credentials[]
const secrets: string[] = []
/** Cores and gateways as they are after the second step: both have both keys, cores have the new one first. */
let cores: Program[]
let gateways: Program[]

beforeAll(async () => {
  // Step 1: every program has the new key, behind the old one.
  const environment = { KEY_ENCRYPTION_KEYS: ringOf('k1', 'k2') }
  system = await startSystem({ coreEnvironment: environment, gatewayEnvironment: environment })
  const { ownerUrl } = system.database
  // A rotation may be held at a row for as long as a test needs.
  const database = new URL(ownerUrl).pathname.slice(1)
  await execute(ownerUrl, `alter role wallet_service in database ${database} set lock_timeout = 0`)
  await execute(ownerUrl, `alter role wallet_service in database ${database} set statement_timeout = 0`)
  keys = await Promise.all(Array.from({ length: keyCount }, newKey))
  // Step 2: cores encrypt under the new one from now on.
  const reordered = { KEY_ENCRYPTION_KEYS: ringOf('k2', 'k1') }
  cores = [await system.startCore(reordered), await system.startCore(reordered)]
  const through = { CORE_URL: cores.map(({ url }) => url).join(',') }
  gateways = [await system.startGateway(through), await system.startGateway(through)]
})
afterAll(() => system.stop())

async function newKey(): Promise<Credentials> {
  const { admin, workspaceId, baseUrl } = system
  const issued = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:read'] })
  secrets.push(issued.apiSecret)
  return { baseUrl, ...issued }
}

type Ran = { exitCode: number | null; stdout: string; stderr: string }

/** `npm run admin -- kek …` against one core. */
function admin(core: Program, verb: string): { process: ChildProcess; ended: Promise<Ran> } {
  const script = fileURLToPath(new URL('../cli/admin.ts', import.meta.url))
  const process_ = spawn(process.execPath, [script, 'kek', verb, '--json'], {
    env: { PATH: process.env.PATH, CORE_URL: core.url, CORE_TOKEN: system.adminToken },
  })
  const ran: Ran = { exitCode: null, stdout: '', stderr: '' }
  process_.stdout.on('data', chunk => (ran.stdout += chunk))
  process_.stderr.on('data', chunk => (ran.stderr += chunk))
  const ended = once(process_, 'close').then(([exitCode]) => ({ ...ran, exitCode }))
  return { process: process_, ended }
}

/** Starts a rotation, and runs `action` once it stands at the secret of one key, in the middle of a step. */
async function heldAt(
  { apiKey }: Credentials,
  core: Program,
  action: (rotation: ReturnType<typeof admin>) => Promise<unknown>,
): Promise<Ran> {
  const holder = new pg.Client({ connectionString: system.database.ownerUrl })
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from api_key where id = $1 for update', [uuidFromId('apiKey', apiKey)])
  const rotation = admin(core, 'rotate')
  try {
    await until('the rotation waits', async () => {
      const sql = `select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query ilike 'update%"api_key"%'`
      return (await query(system.database.ownerUrl, sql)).length > 0
    })
    await action(rotation)
  } finally {
    await holder.end()
  }
  return rotation.ended
}

/** Clients that never stop: what they are answered. */
function traffic(): { stop(): Promise<Map<string, number>> } {
  let stopped = false
  const codes = new Map<string, number>()
  const clients = gateways.flatMap(({ url }) => [0, 120, 229].map(at => ({ ...keys[at]!, baseUrl: url })))
  const running = clients.map(async client => {
    while (!stopped) {
      const { code } = (await call(client, 'GET', list)).body
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
  })
  return {
    async stop() {
      stopped = true
      await Promise.all(running)
      return codes
    },
  }
}

async function countsNow(core = cores[1]!): Promise<Record<string, number>> {
  const client = createCoreClient({ url: core.url, token: system.adminToken })
  const { keks: counts } = await client.keks.status.query()
  await client.close()
  return Object.fromEntries(counts.map(({ kek, secrets: count }) => [kek, count]))
}

/** Neither a secret nor a key over them, in any form; and the search itself finds what is there. */
async function expectNoSecretInDump(): Promise<void> {
  const dump = await dumpOf(system.database.ownerUrl)
  expect(dump).toContain('v1.k')
  expect(dump).toContain(uuidFromId('apiKey', keys[0]!.apiKey))
  const needles = [
    ...secrets.flatMap(secret => [Buffer.from(secret), Buffer.from(secret, 'base64url')]),
    ...Object.values(keks),
    ...[system.adminToken, system.gatewayToken, system.serviceToken].map(token => Buffer.from(token)),
  ]
  for (const form of needles.flatMap(formsOf)) expect(dump.includes(form), form).toBe(false)
}

test('a search for a secret in a dump finds it in every form', () => {
  const secret = randomBytes(32)
  for (const around of ['', 'x', 'xy', 'xyz']) {
    const text = Buffer.concat([Buffer.from(around), secret, Buffer.from(around)])
    for (const encoding of ['latin1', 'hex', 'base64', 'base64url'] as const)
      expect(formsOf(secret).some(form => text.toString(encoding).includes(form))).toBe(true)
  }
})

test('a dump reveals no secret', expectNoSecretInDump)

describe('a rotation of the key-encryption key, under traffic', () => {
  test('is killed with its core in the middle of a step: what was done stays, nobody is refused', async () => {
    const clients = traffic()
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

  test('is killed itself, and goes on where it stopped, while keys are issued, rotated and deleted', async () => {
    const [, core] = cores
    const clients = traffic()
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
    // The other core has the old key first still: the one key that it issued may have come after the end.
    const counts = await countsNow()
    expect(counts.k1 ?? 0).toBeLessThanOrEqual(1)
    expect(result.rewrapped).toBeLessThanOrEqual(before.k1!)
    expect([...(await clients.stop()).keys()]).toEqual(['2000'])
    await admin(core!, 'rotate').ended
    expect(Object.keys(await countsNow())).toEqual(['k2'])
  })

  test('run once more it finds nothing to do', async () => {
    const { stdout, exitCode } = await admin(cores[1]!, 'rotate').ended
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ rewrapped: 0, remaining: 0 })
  })

  test('leaves actions in the audit, without a secret; a dump still reveals none', async () => {
    const { entries } = await system.admin.audit.list.query({ action: 'kek.rotate' })
    expect(entries.length).toBeGreaterThan(1)
    expect(entries[0]).toMatchObject({ actor: 'admin:a', target: 'k2', after: { secrets: expect.any(Number) } })
    await expectNoSecretInDump()
  })

  test('afterwards the new key alone opens every secret: both of a key in its grace, too', async () => {
    const environment = { KEY_ENCRYPTION_KEYS: ringOf('k2') }
    const core = await system.startCore(environment)
    const gateway = await system.startGateway({ ...environment, CORE_URL: core.url })
    const codes: string[] = []
    for (const key of keys) codes.push((await call({ ...key, baseUrl: gateway.url }, 'GET', list)).body.code)
    const expected = keys.map((_, at) => (at === 4 || at === 5 ? 'GA2012' : at === 6 || at === 7 ? 'GA2011' : '2000'))
    expect(codes).toEqual(expected)
  })
})

describe('a core with another ring', () => {
  test('does not start without a key that secrets are kept under, or with another one of its name', async () => {
    await expect(system.startCore({ KEY_ENCRYPTION_KEYS: ringOf('k1') })).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS lacks k2, which encrypts \d+ secret\(s\) of API keys: append that key to the list of core and gateways/,
    )
    const other = `k2:${randomBytes(32).toString('base64')}`
    await expect(system.startCore({ KEY_ENCRYPTION_KEYS: other })).rejects.toThrow(
      /KEY_ENCRYPTION_KEYS has another k2 than the one that encrypts/,
    )
  })

  test('refuses a step of a rotation to a key that it does not have first', async () => {
    // The core of the first step: it would encrypt under the old key again what another one has just encrypted under the new.
    await expect(system.admin.keks.rewrap.mutate({ to: 'k2' })).rejects.toThrow(
      'The first key-encryption key of this core is k1, that of another core is k2',
    )
  })

  test('issues under the old key: a rotation says that it is not over', async () => {
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

test('a secret that was damaged stops no rotation; it is named, and the rotation is not over', async () => {
  const key = await newKey()
  const { ownerUrl } = system.database
  const isKey = `id = '${uuidFromId('apiKey', key.apiKey)}'`
  await query(ownerUrl, `update api_key set secret = secret || 'AAAA', revision = revision + 1 where ${isKey}`)
  await signRows(ownerUrl, system.chainKey, 'api_key', isKey)
  const sound = await newKey()
  const { exitCode, stdout, stderr } = await admin(cores[1]!, 'rotate').ended
  expect(exitCode).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ rewrapped: 1, remaining: 1, unreadable: [key.apiKey] })
  expect(stderr).toBe(
    `Cannot re-encrypt 1 secret, because core cannot decrypt those of ${key.apiKey}: rotate or delete these keys.\n`,
  )
  expect((await call({ ...sound, baseUrl: gateways[0]!.url }, 'GET', list)).body.code).toBe('2000')
  await system.admin.apiKeys.delete.mutate(key)
  expect((await admin(cores[1]!, 'rotate').ended).exitCode).toBe(0)
})

test('when a key-encryption key is lost, its API keys can be given up, and the rest goes on', async () => {
  const lost = await newKey()
  expect(await countsNow()).toMatchObject({ k1: 1 })
  const page = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
  const [, sql] = /```sql\n([^`]+)```/.exec(page)!
  await query(system.database.ownerUrl, sql!.replace("'lost'", "'k1'"))
  const core = await system.startCore({ KEY_ENCRYPTION_KEYS: ringOf('k2') })
  const gateway = await system.startGateway({ KEY_ENCRYPTION_KEYS: ringOf('k2'), CORE_URL: core.url })
  expect((await call({ ...lost, baseUrl: gateway.url }, 'GET', list)).body.code).toBe('GA2011')
  expect((await call({ ...keys[0]!, baseUrl: gateway.url }, 'GET', list)).body.code).toBe('2000')

  // Its row was written without core, and is signed again by deleting the key.
  const ids = expect.objectContaining({ apiKey: lost.apiKey })
  const broken = ['key-mac', 'key-audit'].map(rule => expect.objectContaining({ rule, ids }))
  expect((await verifyLedger(system)).violations).toEqual(broken)
  await system.admin.apiKeys.delete.mutate(lost)
  expect(await verifyLedger(system)).toMatchObject({ ok: true })
})
