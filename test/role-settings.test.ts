import { connect as connectSocket, createServer } from 'node:net'
import { createCoreClient, verifyLedger as verify } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../services/core/src/database/migrate.ts'
import { type Answer, batchPath, call, createPath } from './setup/client.ts'
import { connect, execute, query, queryPersistently } from './setup/database.ts'
import { listen } from './setup/listen.ts'
import { type Receiver, startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { type Webhooks, webhooksOf } from './setup/webhooks.ts'
import { createKey } from './setup/workspaces.ts'

/**
 * An attacker has DATABASE_URL. Every role may set the defaults of its own sessions (ALTER ROLE … SET), and core's sessions have
 * the same role. Nothing that core reads, writes or answers may depend on them.
 */

let system: System
let receiver: Receiver
let webhooks: Webhooks
let webhookId: string
beforeAll(async () => {
  system = await startSystem()
  await system.startCourier()
  receiver = await startReceiver()
  webhooks = webhooksOf(system)
  webhookId = await webhooks.create(receiver)
})
afterAll(async () => {
  await webhooks.close()
  await receiver.stop()
  await system.stop()
})

type Setting = {
  name: string
  vartype: 'bool' | 'enum' | 'integer' | 'real' | 'string'
  boot_val: string | null
  min_val: string
  max_val: string
  enumvals: string[]
}

/** Values of settings that are texts: each is one that the setting accepts, and that differs from ours. */
const texts: Record<string, string[]> = {
  application_name: ['core ledger', ''],
  DateStyle: ['SQL, DMY', 'German', 'Postgres, MDY'],
  TimeZone: ['Asia/Kathmandu', 'America/St_Johns', '<x>-23:59'],
  client_encoding: ['LATIN1', 'SJIS', 'SQL_ASCII'],
  createrole_self_grant: ['set'],
  default_table_access_method: ['nowhere'],
  default_tablespace: ['pg_global'],
  default_text_search_config: ['pg_catalog.german'],
  lc_monetary: ['POSIX'],
  lc_numeric: ['POSIX'],
  lc_time: ['POSIX'],
  local_preload_libraries: ['nowhere'],
  restrict_nonsystem_relation_kind: ['view', 'foreign-table', 'view, foreign-table'],
  search_path: ['elsewhere', 'pg_temp', ''],
  temp_tablespaces: ['pg_global'],
  timezone_abbreviations: ['India', 'Australia'],
}

/** Settings that pg_settings does not list, or lists only after the language is loaded. */
const unlisted: Record<string, string[]> = {
  role: ['wallet_service', 'none'],
  session_authorization: ['wallet_service'],
  'plpgsql.check_asserts': ['off'],
  'plpgsql.extra_errors': ['all'],
  'plpgsql.extra_warnings': ['all'],
  'plpgsql.print_strict_params': ['on'],
}

function hostileValues({ name, vartype, boot_val, min_val, max_val, enumvals }: Setting): string[] {
  switch (vartype) {
    case 'bool':
      return [boot_val === 'on' ? 'off' : 'on']
    case 'enum':
      return enumvals.filter(value => value !== boot_val)
    // Of times, the second value is a millisecond.
    case 'integer':
      return [min_val, String(Number(min_val) + 1), max_val].filter(value => value !== boot_val)
    case 'real':
      return [min_val, max_val].filter(value => value !== boot_val)
    case 'string':
      return texts[name] ?? expect.unreachable(`give hostile values for ${name}`)
  }
}

/** Every setting that the role may change, with the values to try. */
async function hostileSettings(): Promise<[string, string[]][]> {
  const settings = (await query(
    system.database.serviceUrl,
    `select name, vartype, boot_val, min_val, max_val, enumvals from pg_settings
     where context = 'user' order by name`,
  )) as Setting[]
  const all = [
    ...settings.map(setting => [setting.name, hostileValues(setting)] as [string, string[]]),
    ...Object.entries(unlisted),
  ]
  return all.filter(([, values]) => values.length > 0)
}

const here = () => new URL(system.database.serviceUrl).pathname.slice(1)

/** Changes the defaults of new sessions, as the role itself. Returns the settings that PostgreSQL lets it change. */
async function setDefaults(settings: readonly (readonly [string, string])[]): Promise<string[]> {
  const accepted: string[] = []
  // One session: the settings may keep the role from opening another.
  const client = await connect(system.database.serviceUrl)
  try {
    // Using a language defines its settings.
    await client.query('do $$ begin end $$')
    for (const [name, value] of settings) {
      const quotedName = name.split('.').map(pg.escapeIdentifier).join('.')
      // Unlike a list, which is written item by item, a date style is one text.
      const items = name === 'DateStyle' ? [value] : value.split(',').map(item => item.trim())
      const sql = `alter role wallet_service in database ${here()} set ${quotedName} = ${items.map(pg.escapeLiteral)}`
      await client.query(sql).then(
        () => accepted.push(name),
        () => {},
      )
    }
  } finally {
    await client.end()
  }
  return accepted
}

const resetDefaults = () =>
  execute(system.database.ownerUrl, `alter role wallet_service in database ${here()} reset all`)

const endCoreSessions = `
  select pg_terminate_backend(pid, 10000) from pg_stat_activity
  where usename = 'wallet_service' and datname = current_database()`

/** Ends all sessions of core, so that all further ones begin with the new defaults. */
async function endSessions(): Promise<void> {
  await execute(system.database.ownerUrl, endCoreSessions)
  await until('core has opened new ones', async () => (await get('/api/v1/wallets')).body.code === '2000')
}

const get = (target: string) => call(system, 'GET', target)
async function data(answer: Promise<Answer>): Promise<unknown> {
  const { body } = await answer
  expect(body).toMatchObject({ code: '2000' })
  return body.data
}

let payments = 0
/** What the service does for its clients. Returns how much was paid. */
async function useService(): Promise<void> {
  const [from, to] = [system.wallets[0]!.walletId, system.wallets[1]!.walletId]
  const order = () => ({
    sourceWalletId: from,
    targetWalletId: to,
    amount: '0.01',
    currency: 'USD',
    bizId: `payment-${payments++}`,
    remark: 'it\'s a "\\remark\\", naïve €',
  })
  // The first one reads its ledger. The others come from memory.
  for (let count = 0; count < 3; count++) await data(call(system, 'POST', createPath, order()))
  const repeated = order()
  const [first, second] = [
    await data(call(system, 'POST', createPath, repeated)),
    await data(call(system, 'POST', createPath, repeated)),
  ]
  expect(second).toEqual(first)
  await data(call(system, 'POST', batchPath, { transfers: [order(), order()] }))
  const { bizId: reversal } = order()
  const back = { reversesTransferId: repeated.bizId, amount: '0.01', currency: 'USD', bizId: reversal }
  await data(call(system, 'POST', '/api/v1/transfer/command/reverse', back))
  const { bizId: holdId } = order()
  const hold = { walletId: from, amount: '0.02', currency: 'USD', expiresInSeconds: 60, bizId: holdId }
  await data(call(system, 'POST', '/api/v1/hold/command/create', hold))
  await data(call(system, 'POST', createPath, { ...order(), holdId }))
  const { workspaceId } = system
  await system.admin.wallets.deposit.mutate({ workspaceId, walletId: from, amount: '0.01', bizId: order().bizId })
  const { walletId } = await system.admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Other' })
  await system.admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })

  // The gateways have not cached a new key.
  const key = await createKey(system)
  expect((await call(key, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
  await system.admin.apiKeys.disable.mutate(key)
  expect((await call(key, 'GET', '/api/v1/wallets')).body.code).toBe('GA2021')

  const head = await webhooks.head()
  await until('every event is delivered', async () => (await webhooks.get(webhookId)).position === head)
  expect(receiver.forged).toEqual([])
}

/** What clients and operators read, of everything that exists now. */
async function readAll(): Promise<unknown[]> {
  const { workspaceId, wallets } = system
  const walletId = wallets[0]!.walletId
  const targets = [
    '/api/v1/wallets?size=100',
    '/api/v1/wallets?sort=amount,desc&status=FROZEN&size=100',
    `/api/v1/wallets/${walletId}/balance`,
    `/api/v1/wallets/${walletId}/flows?size=100`,
    '/api/v1/transfer/query/orders?size=100&sort=amount,asc&createdFrom=2020-01-01',
    `/api/v1/transfer/query/orders/wallet/${walletId}?size=50&page=1&bizIdPrefix=payment`,
    '/api/v1/transfer/query/orders/payment-0',
    '/api/v1/transfer/query/orders/payment-0/receipt',
    '/api/v1/hold/query/holds?size=100',
    '/api/v1/event/query/events/0?size=500',
  ]
  const answers = []
  for (const target of targets) answers.push({ target, ...(await get(target)).body, timestamp: 0 })
  const { keys } = await system.admin.apiKeys.list.query({ workspaceId, limit: 100 })
  answers.push(keys.map(key => ({ ...key, lastUsedAt: null })))
  answers.push(await system.admin.audit.list.query({ workspaceId, limit: 100 }))
  return answers
}

async function expectNoHarm(): Promise<void> {
  expect(await system.admin.ledger.halted.query()).toEqual({ ledgers: [], total: 0 })
  const { violations } = await verify(system.admin, {})
  expect(violations.filter(({ rule }) => rule !== 'database-setting')).toEqual([])
}

/**
 * A connection pooler that drops the options of the startup message, as PgBouncer does when it is told to ignore them, but sends the
 * process ID of PostgreSQL. `drops: false`: it changes nothing.
 */
async function startPooler(serviceUrl: string) {
  const target = new URL(serviceUrl)
  const state = { drops: true }
  const server = createServer(client => {
    const upstream = connectSocket(Number(target.port), target.hostname)
    client.once('data', startup => {
      // Length and version of the protocol, then names and values that end with a zero byte, and a last zero byte.
      const texts = startup.subarray(8, -2).toString('latin1').split('\0')
      const kept = texts.filter((_, at) => !state.drops || texts[at - (at % 2)] !== 'options')
      const body = Buffer.from(`${kept.join('\0')}\0\0`, 'latin1')
      const head = Buffer.from(startup.subarray(0, 8))
      head.writeInt32BE(head.length + body.length)
      upstream.write(Buffer.concat([head, body]))
      client.pipe(upstream)
    })
    upstream.pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => client.destroy().resume())
  })
  const port = await listen(server)
  const url = Object.assign(new URL(serviceUrl), { port: String(port) }).href
  return Object.assign(state, { url, stop: () => server.close() })
}

test('a core behind a pooler that drops its settings does not start; if it does so later, it answers S002', async () => {
  await setDefaults([['DateStyle', 'German']])
  const pooler = await startPooler(system.database.serviceUrl)
  const start = () => system.startCore({ DATABASE_URL: pooler.url })
  await expect(start()).rejects.toThrow(/core cannot start: .*DateStyle is "German, DMY"/)
  pooler.drops = false
  const core = await start()
  const admin = createCoreClient({ url: core.url, token: system.adminToken })
  try {
    pooler.drops = true
    await execute(system.database.ownerUrl, endCoreSessions)
    await until('the log names the setting', () => core.output().includes('DateStyle is \\"German, DMY\\"'))
    await expect(admin.workspaces.create.mutate({ name: 'Test' })).rejects.toMatchObject({
      data: { appError: { code: 'S002' } },
    })
  } finally {
    await admin.close()
    await core.stop()
    pooler.stop()
    await resetDefaults()
  }
})

test('the migration step resets what the role has set', async () => {
  await setDefaults([
    ['DateStyle', 'German'],
    ['plpgsql.extra_errors', 'all'],
  ])
  const rules = async () => (await verify(system.admin, {})).violations.map(({ ids }) => ids.object)
  expect(await rules()).toEqual(['service here: DateStyle', 'service here: plpgsql.extra_errors'])
  await migrate(system.database.ownerUrl, system.database.serviceUrl)
  expect(await rules()).toEqual([])
})

test('whatever the role sets as the defaults of its sessions, core reads, writes and answers the same', async () => {
  await useService()
  const settings = await hostileSettings()
  const rounds = Math.max(...settings.map(([, values]) => values.length))
  const accepted = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const before = await readAll()
    const chosen = settings.map(([name, values]) => [name, values[round % values.length]!] as const)
    for (const name of await setDefaults(chosen)) accepted.add(name)
    await endSessions()
    expect(await readAll()).toEqual(before)
    await useService()
    await expectNoHarm()
    await resetDefaults()
  }
  // So that the test does not succeed because nothing was set.
  expect([...accepted]).toEqual(expect.arrayContaining(['DateStyle', 'TimeZone', 'bytea_output', 'array_nulls', 'jit']))
  expect(accepted.size).toBeGreaterThan(130)
})

describe('a setting so long that sessions begin late', () => {
  /** A text of this length, as an SQL expression. */
  const longText = (part: string, length: number) =>
    `rtrim(repeat('${part}', ${Math.floor(length / part.length)}), ',')`

  const setTo = (name: string, text: string) => `
    do $$ begin
      execute format('alter role wallet_service in database ${here()} set ${name} = %L', ${text});
    end $$`

  /** As the role itself. Returns whether PostgreSQL accepts the text. */
  async function setLong(name: string, part = 'x'): Promise<boolean> {
    const url = new URL(system.database.serviceUrl)
    // Otherwise a library that does not exist would keep the attacker out too.
    url.searchParams.set('options', '-c local_preload_libraries=')
    try {
      await queryPersistently(url.href, setTo(name, longText(part, 10_000_000)))
      return true
    } catch (error) {
      // Core has reset the settings meanwhile.
      if (/concurrently updated/.test((error as Error).message)) return setLong(name, part)
      return false
    }
  }

  const areReset = async () =>
    (
      await query(
        system.database.ownerUrl,
        `select from pg_db_role_setting where setrole = 'wallet_service'::regrole
           and setdatabase = (select oid from pg_database where datname = current_database())`,
      )
    ).length === 0

  test.each([
    ['application_name', 'x'],
    ['search_path', 'x'],
    ['DateStyle', 'ISO,'],
    ['plpgsql.extra_errors', 'shadowed_variables,'],
  ])('%s is reset by core, and the service works', async (name, part) => {
    expect(await setLong(name, part)).toBe(true)
    await until('core has reset it', areReset)
    await useService()
    expect(system.cores[0]!.output()).toContain('were reset: change the password of the role')
    await expectNoHarm()
  })

  test('is reset although a transaction that changes it again holds its lock', async () => {
    await setLong('application_name')
    const client = await connect(system.database.serviceUrl)
    try {
      await client.query(`begin; ${setTo('application_name', `'x'`)}`).catch(() => {})
      await until('core has reset it', areReset)
    } finally {
      await client.end().catch(() => {})
    }
    await useService()
  })
})
