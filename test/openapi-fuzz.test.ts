import { readFile } from 'node:fs/promises'
import {
  currencyDecimals,
  maxStatementDays,
  maxWebhooks,
  scopes,
  settledAfterMs,
  uuidFromId,
} from '@workspace-wallet/contract'
import { webhookTargetFault } from '@workspace-wallet/runtime'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mutatedRequest, type Pools, validRequest } from './openapi/arbitraries.ts'
import { type Operation, operations, undocumented } from './openapi/document.ts'
import { type Answer, type Request, type SendOptions, send } from './openapi/send.ts'
import type { Credentials } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/** The service answers exactly what gateway/openapi.json says: nothing else, and all of it. */

/** Random requests for each operation: valid ones, and as many with a fault. Every run of the tests draws others. */
const requestsPerOperation = 12

let system: System
beforeAll(async () => {
  system = await startSystem({
    coreEnvironment: { WEBHOOK_ALLOWED_NETWORKS: '' },
    gatewayEnvironment: { DOCS: 'on' },
  })
  await prepareFaults()
  await prepareRecords()
})
afterAll(() => system.stop())

/** The codes that each operation has answered. */
const reached = new Map(operations.map(operation => [operation, new Set<string>()]))

/** Sends a request. Its answer must be documented. */
async function check(
  operation: Operation,
  credentials: Credentials,
  request: Request,
  options?: SendOptions,
): Promise<Answer> {
  const answer = await send(credentials, request, options)
  expect(undocumented(operation, answer), JSON.stringify([request, answer])).toEqual([])
  reached.get(operation)!.add(answer.body.code)
  return answer
}

type Fault = { credentials?: Credentials; options?: SendOptions }
/** Gateways: one without core and with DOCS=off, and one that limits failed authentications. */
let coreless: string
let limited: string
/** How any request gets a code of the pipeline. */
let faults: Record<string, (operation: Operation) => Fault>

async function prepareFaults(): Promise<void> {
  const { admin, chainKey, database } = system
  const [disabled, outsider, orphan, distant, broken, onlyOther] = await Promise.all([
    createTenant(system),
    createTenant(system),
    createTenant(system),
    createTenant(system, { ipAllowlist: ['203.0.113.0/24'] }),
    createTenant(system),
    Promise.all(
      scopes.map(async scope => [scope, await createKey(system, { scopes: scopes.filter(each => each !== scope) })]),
    ),
  ])
  await admin.apiKeys.disable.mutate(disabled)
  await admin.members.remove.mutate({ ...outsider, userId: 'owner' })
  await admin.workspaces.delete.mutate(orphan)
  const owner = await connect(database.ownerUrl)
  const isKey = `id = '${uuidFromId('apiKey', broken.apiKey)}'`
  await owner.query(`update api_key set secret = 'v1.k1.AAAA.AAAA.AAAA', revision = revision + 1 where ${isKey}`)
  await signRows(owner, chainKey, 'api_key', isKey)
  await owner.end()
  const [first, second] = await Promise.all([
    system.startGateway({ CORE_URL: 'http://127.0.0.1:1', DOCS: 'off' }),
    system.startGateway({ FAILED_AUTH_PER_MINUTE: '1' }),
  ])
  coreless = first.url
  limited = second.url
  const withoutScope = Object.fromEntries(onlyOther)
  faults = {
    S012: () => ({ options: { hostless: true } }),
    GA2001: () => ({ options: { headers: { 'X-Api-Key': null } } }),
    GA2011: () => ({ options: { headers: { 'X-Api-Key': 'ak_unknown' } } }),
    GA2012: () => ({ options: { secret: 'x' } }),
    GA2013: () => ({ options: { timestamp: '1' } }),
    GA2021: () => ({ credentials: disabled }),
    GA2022: () => ({ credentials: distant }),
    GA2024: ({ scope }) => ({ credentials: withoutScope[scope] }),
    GA2032: () => ({ credentials: orphan }),
    GA2034: () => ({ credentials: outsider }),
    S001: () => ({ credentials: broken }),
    S002: () => ({ credentials: { ...system, baseUrl: coreless } }),
    S013: () => ({ options: { announcedLength: 300_000 } }),
    S029: () => ({ credentials: { ...system, apiKey: '', baseUrl: limited } }),
  }
  for (const [code, fault] of Object.entries(faults)) {
    const { credentials = system, options } = fault(operations[0]!)
    await until(code, async () => (await send(credentials, minimal(operations[0]!), options)).body.code === code)
  }
}

/** The parameters of paths that are times. */
const times = ['at', 'from', 'to']

/** A request without a query, and with an empty body. */
function minimal({ method, path, parameters, body }: Operation): Request {
  const inPath = parameters.filter(parameter => parameter.in === 'path')
  const params = inPath.map(({ name }) => [name, times.includes(name) ? '2026-01-31' : 'head'])
  return { method, path, params: Object.fromEntries(params), query: [], ...(body && { body: {} }) }
}

/** What the tests of the codes use, made through the API. */
const known = { frozen: '', closed: '', empty: '', limited: '', webhook: '' }
const wallet = (at: number) => system.wallets[at]!.walletId

let count = 0
const money = () => ({ amount: '1.00', currency: 'USD', bizId: `corpus-${count++}` })
const order = (changes: object = {}) => ({
  sourceWalletId: wallet(0),
  targetWalletId: wallet(1),
  ...money(),
  ...changes,
})
const reversal = (reversesTransferId: string, changes: object = {}) => ({ reversesTransferId, ...money(), ...changes })
const holdOf = (changes: object = {}) => ({ walletId: wallet(0), ...money(), expiresInSeconds: 3600, ...changes })

const webhookOf = (bizId: string, url = 'https://example.com/events') => ({ url, bizId })

const operationOf = (operationId: string) => operations.find(each => each.operationId === operationId)!

async function execute(operationId: string, body?: object, credentials: Credentials = system): Promise<Answer> {
  const operation = operationOf(operationId)
  return check(operation, credentials, { ...minimal(operation), ...(body && { body }) })
}

async function prepareRecords(): Promise<void> {
  const { admin, workspaceId } = system
  known.frozen = await createWallet(system)
  known.empty = await createWallet(system)
  known.closed = await createWallet(system)
  known.limited = await createWallet(system)
  const commands: [operationId: string, body: object][] = [
    ['changeWalletStatus', { walletId: known.closed, status: 'CLOSED' }],
    ['createWallet', { name: 'Named', currency: 'USD', bizId: 'named' }],
    ['createTransfer', order({ bizId: 'paid' })],
    ['createTransfer', order({ bizId: 'reversed' })],
    ['reverseTransfer', reversal('reversed', { bizId: 'reversal' })],
    ['createTransfer', order({ targetWalletId: known.frozen, bizId: 'to-frozen' })],
    ['createTransfer', order({ targetWalletId: known.empty, bizId: 'to-empty' })],
    ['createTransfer', order({ sourceWalletId: known.empty })],
    ['createTransfer', order({ targetWalletId: known.limited, bizId: 'to-limited' })],
    ['createHold', holdOf({ bizId: 'held' })],
    ['createHold', holdOf({ bizId: 'captured' })],
    ['createTransfer', order({ holdId: 'captured' })],
    ['createHold', holdOf({ bizId: 'released' })],
    ['releaseHold', { holdId: 'released' }],
    ['createTransferBatch', { transfers: [order()] }],
    ...Array.from({ length: maxWebhooks }, (_, at): [string, object] => ['createWebhook', webhookOf(`hook-${at}`)]),
  ]
  for (const [operationId, body] of commands) expect((await execute(operationId, body)).body.code).toBe('2000')
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId: known.frozen, status: 'FROZEN' })
  const ids = (await execute('listWebhooks')).body.data.content.map(({ webhookId }: { webhookId: string }) => webhookId)
  known.webhook = ids[0]
  const changes: [operationId: string, body: object][] = [
    ['updateWebhook', { webhookId: known.webhook, concurrency: 2 }],
    ['rotateWebhookSecret', { webhookId: known.webhook }],
    ['seekWebhook', { webhookId: known.webhook, after: 0 }],
    ['deleteWebhook', { webhookId: ids[1] }],
    ['createWebhook', webhookOf('another')],
  ]
  for (const [operationId, body] of changes) expect((await execute(operationId, body)).body.code).toBe('2000')
  const limit = { subject: { walletId: known.limited }, currency: 'USD', perTransfer: '0.50' }
  await admin.limits.set.mutate({ workspaceId, ...limit })
}

/** Commands come first, so that there is something to read. */
const commandsFirst = operations.toSorted((a, b) => Number(!a.body) - Number(!b.body))

describe('random requests', () => {
  let tenant: Credentials
  const pools: Record<string, unknown[]> = {}

  beforeAll(async () => {
    const created = await createTenant(system)
    tenant = created
    const wallets: string[] = []
    for (const currency of ['USD', 'USD', 'USD', 'USD', 'JPY', 'BTC'])
      wallets.push(await createWallet({ ...system, ...created }, { currency, deposits: ['1000'] }))
    const [source, target] = wallets
    const money = { amount: '1', currency: 'USD', bizId: 'random-0' }
    const body = { sourceWalletId: source, targetWalletId: target, ...money }
    expect((await execute('createTransfer', body, tenant)).body.code).toBe('2000')
    const names = Array.from({ length: 10 }, (_, at) => `random-${at}`)
    Object.assign(pools, {
      walletId: wallets,
      sourceWalletId: wallets,
      targetWalletId: wallets,
      bizId: names,
      holdId: names,
      reversesTransferId: names,
      amount: ['1', '0.5', '2.00', '0.00000001'],
      currency: ['USD', 'USD', 'USD', 'JPY', 'BTC'],
      after: [0, 1, 5, 'head'],
      at: ['2026-01-31', '2026-01-31T12:00:00+01:00'],
      from: ['2026-01-01', '2026-01-31T12:00Z'],
      to: ['2026-01-31T12:00:00.123Z', '2026-02-28'],
      url: ['https://example.com/', 'https://example.com:8443/a?b=c', 'http://example.com/', 'https://10.0.0.1/'],
      webhookId: await newWebhooks(tenant),
    } satisfies Pools)
  })

  async function newWebhooks(credentials: Credentials): Promise<string[]> {
    const created = await Promise.all(
      ['first', 'second'].map(name => execute('createWebhook', webhookOf(name), credentials)),
    )
    return created.map(({ body }) => body.data.webhookId)
  }

  const headers = fc.option(
    fc.record(
      { 'X-LOCALE': fc.constantFrom('en', 'zh-CN', 'tlh', ''), 'Accept-Language': fc.constantFrom('zh', '*') },
      { requiredKeys: [] },
    ),
    { nil: {} },
  )

  test.each(commandsFirst)('$operationId: a valid request is never an invalid parameter', async operation => {
    const property = fc.asyncProperty(validRequest(operation, pools), headers, async (request, headers) => {
      const isFaulty = breaksProse(request)
      const { body } = await until(`another answer than S012 to ${JSON.stringify(request)}`, async () => {
        const answer = await check(operation, tenant, request, { headers })
        // A search that takes too long is S012 as well, so a machine that stalls gets another attempt.
        return (isFaulty || answer.body.code !== 'S012') && answer
      })
      expect(body.code === 'S012', JSON.stringify([request, body])).toBe(isFaulty)
      expect(body.code, JSON.stringify(request)).not.toBe('S001')
    })
    await fc.assert(property, { numRuns: requestsPerOperation, endOnFailure: true })
  })

  test.each(operations)('$operationId: a faulty request gets a documented answer', async operation => {
    const property = fc.asyncProperty(
      mutatedRequest(operation, pools),
      headers,
      fc.option(fc.constantFrom(...Object.values(faults)), { freq: 3 }),
      async (request, headers, fault) => {
        const { credentials = tenant, options } = fault?.(operation) ?? {}
        const merged = { ...options, headers: { ...headers, ...options?.headers } }
        const isRouted = Object.values(request.params).every(value => /^[^/\\]+$/.test(String(value)))
        if (isRouted) await check(operation, credentials, request, merged)
        // A parameter with a slash makes the path that of no operation.
        else if (!fault) expect((await send(credentials, request, merged)).body.code).toBe('50090201')
      },
    )
    await fc.assert(property, { numRuns: requestsPerOperation, endOnFailure: true })
  })
})

/** Whether a request that its schemas allow breaks a rule that only their descriptions state. */
function breaksProse({ params, query, body }: Request): boolean {
  if (breaksTimes(params)) return true
  const sorted = query.filter(([name]) => name === 'sort').map(([, value]) => value.split(',')[0])
  if (new Set(sorted).size < sorted.length) return true
  const { url } = (body ?? {}) as { url?: string }
  if (url !== undefined && webhookTargetFault(url, [])) return true
  type Command = { amount?: string; currency: string; bizId: string }
  const { transfers, ...command } = (body ?? {}) as { transfers?: Command[] } & Partial<Command>
  const commands = transfers ?? [command as Command]
  const names = commands.map(({ bizId }) => bizId)
  return new Set(names).size < names.length || commands.some(hasTooManyDecimals)
}

/** Whether the times of a balance or a statement are too late, in the wrong order or too far apart. */
function breaksTimes(params: Request['params']): boolean {
  const [at, from, to] = times.map(name => (name in params ? Date.parse(String(params[name])) : undefined))
  const end = at ?? to
  if (end === undefined) return false
  return end > Date.now() - settledAfterMs || (from ?? end) > end || end - (from ?? end) > maxStatementDays * 86_400_000
}

function hasTooManyDecimals({ amount, currency }: { amount?: string; currency: string }): boolean {
  const decimals = amount?.split('.')[1]?.length ?? 0
  return decimals > (currencyDecimals.get(currency) ?? 0)
}

describe('every documented code can occur', () => {
  test.each(operations)('$operationId: the codes of the pipeline', async operation => {
    for (const [code, fault] of Object.entries(faults)) {
      const { credentials = system, options } = fault(operation)
      const codeNow = async () => (await check(operation, credentials, minimal(operation), options)).body.code
      // One failed authentication a minute is within the limit.
      if (code === 'S029') await until(code, async () => (await codeNow()) === code)
      else expect(await codeNow()).toBe(code)
    }
    if (!operation.body) return
    const { body } = await check(operation, system, minimal(operation), { headers: { 'Content-Type': 'text/plain' } })
    expect(body.code).toBe('S015')
  })

  test.each(operations.filter(({ method }) => method === 'GET'))('$operationId: success', async operation => {
    const request = minimal(operation)
    const bizId = operation.operationId === 'getHold' ? 'held' : 'paid'
    const existing: Record<string, string> = { walletId: wallet(0), webhookId: known.webhook, bizId }
    const params = Object.entries(request.params).map(([name, value]) => [name, existing[name] ?? value])
    const { body } = await check(operation, system, { ...request, params: Object.fromEntries(params) })
    expect(body.code).toBe('2000')
  })

  const absent = 'absent'
  const transfers = {
    T005: () => order({ bizId: 'paid', amount: '2.00' }),
    T004: () => order({ targetWalletId: wallet(0) }),
    W001: () => order({ targetWalletId: absent }),
    H001: () => order({ holdId: absent }),
    H004: () => order({ sourceWalletId: wallet(1), targetWalletId: wallet(0), holdId: 'held' }),
    W002: () => order({ targetWalletId: known.frozen }),
    H002: () => order({ holdId: 'captured' }),
    T003: () => order({ currency: 'EUR' }),
    H003: () => order({ holdId: 'held', amount: '2.00' }),
    T008: () => order({ sourceWalletId: known.limited }),
    T002: () => order({ amount: '9999999.00' }),
  }
  const reversals = {
    T005: () => reversal('paid', { bizId: 'paid' }),
    T001: () => reversal(absent),
    T006: () => reversal('reversal'),
    W002: () => reversal('to-frozen'),
    T003: () => reversal('paid', { currency: 'EUR' }),
    T007: () => reversal('reversed'),
    T008: () => reversal('to-limited'),
    T002: () => reversal('to-empty'),
  }
  const inBatch = (items: Record<string, () => object>) =>
    Object.fromEntries(Object.entries(items).map(([code, item]) => [code, () => ({ transfers: [item()] })]))
  const bodies: Record<string, Record<string, () => object>> = {
    createTransfer: transfers,
    reverseTransfer: reversals,
    createTransferBatch: inBatch({ ...reversals, ...transfers }),
    createHold: {
      T005: () => holdOf({ bizId: 'held', amount: '2.00' }),
      W001: () => holdOf({ walletId: absent }),
      W002: () => holdOf({ walletId: known.frozen }),
      T003: () => holdOf({ currency: 'EUR' }),
      T008: () => holdOf({ walletId: known.limited }),
      T002: () => holdOf({ amount: '9999999.00' }),
    },
    releaseHold: { H001: () => ({ holdId: absent }), H002: () => ({ holdId: 'captured' }) },
    createWallet: { T005: () => ({ name: 'Named', currency: 'EUR', bizId: 'named' }) },
    changeWalletStatus: {
      W001: () => ({ walletId: absent, status: 'ACTIVE' }),
      W002: () => ({ walletId: known.closed, status: 'ACTIVE' }),
      W003: () => ({ walletId: wallet(0), status: 'CLOSED' }),
      W004: () => ({ walletId: known.frozen, status: 'ACTIVE' }),
    },
    createWebhook: { T005: () => webhookOf('hook-0', 'https://example.org/'), E003: () => webhookOf('one-more') },
    updateWebhook: { E002: () => ({ webhookId: absent }) },
    rotateWebhookSecret: { E002: () => ({ webhookId: absent }) },
    seekWebhook: {
      E002: () => ({ webhookId: absent, after: 0 }),
      E001: () => ({ webhookId: known.webhook, after: Number.MAX_SAFE_INTEGER }),
    },
    deleteWebhook: { E002: () => ({ webhookId: absent }) },
  }
  test.each(Object.keys(bodies))('%s: its own codes', async operationId => {
    for (const [code, body] of Object.entries(bodies[operationId]!))
      expect((await execute(operationId, body())).body.code).toBe(code)
  })

  test.each(operations.filter(({ method, path }) => method === 'GET' && path.includes('{')))(
    '$operationId: its own code',
    async operation => {
      const [name] = Object.keys(minimal(operation).params)
      const after = String(Number.MAX_SAFE_INTEGER)
      const request = minimal(operation)
      const params = { ...request.params, [name!]: name === 'after' ? after : absent }
      const { body } = await check(operation, system, { ...request, params })
      expect(body.code).toBe(operation.codes.find(code => /^[WTHE]\d/.test(code)))
    },
  )

  test('S003: a command whose answer is lost', async () => {
    const core = system.cores[0]!
    // A call that waits in a queue is not sent and gets S002, so each gateway gets two commands at most.
    const gateways = await Promise.all(
      Array.from({ length: 6 }, async () => ({ ...system, baseUrl: (await system.startGateway()).url })),
    )
    // A gateway opens a connection for commands, and one for webhooks, when it first needs them. What waits for one is not sent.
    const openConnections = (gateway: Credentials) =>
      Promise.all([
        execute('changeWalletStatus', { walletId: wallet(0), status: 'ACTIVE' }, gateway),
        execute('deleteWebhook', { webhookId: absent }, gateway),
      ])
    const commands = (): Record<string, object> => ({
      createTransfer: order(),
      createTransferBatch: { transfers: [order()] },
      reverseTransfer: reversal('paid', { amount: '0.01' }),
      createHold: holdOf(),
      releaseHold: { holdId: 'held' },
      createWallet: { name: 'Lost', currency: 'USD', bizId: 'lost' },
      changeWalletStatus: { walletId: known.empty, status: 'FROZEN' },
      createWebhook: webhookOf('lost'),
      updateWebhook: { webhookId: known.webhook, concurrency: 2 },
      rotateWebhookSecret: { webhookId: known.webhook },
      seekWebhook: { webhookId: known.webhook, after: 0 },
      deleteWebhook: { webhookId: absent },
    })
    const codes = await until(
      'all commands are sent before the gateways notice that core does not answer',
      async () => {
        await Promise.all(gateways.map(openConnections))
        await core.kill('SIGSTOP')
        try {
          const sent = Object.entries(commands()).map(([operationId, body], at) =>
            execute(operationId, body, gateways[at % gateways.length]),
          )
          const codes = (await Promise.all(sent)).map(({ body }) => body.code)
          return !codes.includes('S002') && codes
        } finally {
          await core.kill('SIGCONT')
          for (const gateway of gateways)
            await until('core is back', async () => (await send(gateway, minimal(operations[0]!))).body.success)
        }
      },
      // An attempt takes half a minute on a busy machine.
      150_000,
    )
    expect(codes).toEqual(Object.keys(commands()).map(() => 'S003'))
  })

  test('each operation has answered all of its codes, and succeeded', () => {
    const missing = operations.map(operation => {
      const { operationId, codes } = operation
      return [operationId, ['2000', ...codes].filter(code => !reached.get(operation)!.has(code))]
    })
    expect(missing.filter(([, codes]) => codes!.length > 0)).toEqual([])
  })
})

describe('the document', () => {
  test('is served unsigned, for GET and HEAD only', async () => {
    const url = `${system.baseUrl}/openapi.json`
    const response = await fetch(url)
    expect(await response.text()).toBe(await readFile('gateway/openapi.json', 'utf8'))
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'x-request-id': expect.stringMatching(/^req_/),
    })
    const head = await fetch(url, { method: 'HEAD', headers: { 'If-None-Match': response.headers.get('etag')! } })
    expect([head.status, head.headers.get('etag')]).toEqual([304, response.headers.get('etag')])
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect(await (await fetch(url, { method })).json()).toMatchObject({ code: 'S004' })
    for (const path of ['/openapi.json/', '/OpenAPI.json', '//openapi.json', '/toString'])
      expect(await (await fetch(system.baseUrl + path)).json()).toMatchObject({ code: 'S004' })
  })

  test('is not served if DOCS is off', async () => {
    const response = await fetch(`${coreless}/openapi.json`)
    expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ code: 'S004' })])
  })
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true })
})
