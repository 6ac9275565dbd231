import { randomUUID } from 'node:crypto'
import { type Delivery, eventTypes, mintId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Credentials, call } from './setup/client.ts'
import { dumpOf } from './setup/dump.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/** Webhooks over HTTP: two gateways, each with a core of its own. Deliveries: services/core/src/webhooks/leases.test.ts. */

const url = 'https://receiver.example/events'

let system: System
let tenant: Credentials & { workspaceId: string }
let walletId: string
/** The same key at the other gateway. */
let elsewhere: Credentials
beforeAll(async () => {
  system = await startSystem({
    cores: 2,
    gateways: 2,
    oneCorePerGateway: true,
    coreEnvironment: { WEBHOOK_ALLOWED_NETWORKS: '192.168.7.0/24', LOG_LEVEL: 'debug' },
    gatewayEnvironment: { LOG_LEVEL: 'debug' },
  })
})
afterAll(() => system.stop())
beforeEach(async () => {
  tenant = await createTenant(system)
  elsewhere = { ...tenant, baseUrl: system.gateways[1]!.url }
  // Event 1.
  walletId = await createWallet({ ...system, ...tenant })
})

const send = (command: string, body: object, by: Credentials = tenant) =>
  call(by, 'POST', `/api/v1/webhook/command/${command}`, body, { headers: { 'X-Locale': 'en-US' } })
const read = (path = '', by: Credentials = tenant) => call(by, 'GET', `/api/v1/webhook/query/webhooks${path}`)
const create = (bizId: string, more: object = {}, by?: Credentials) => send('create', { url, bizId, ...more }, by)
const dataOf = ({ status, body }: Answer) => {
  expect([status, body.code]).toEqual([200, '2000'])
  return body.data
}
const codeOf = ({ body }: Answer) => body.code
const deposit = () =>
  system.admin.wallets.deposit.mutate({
    workspaceId: tenant.workspaceId,
    walletId,
    amount: '1.00',
    bizId: randomUUID(),
  })

const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const secretForm = expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)

describe('create', () => {
  test('returns the record and a secret, and begins at the end of the log', async () => {
    await deposit()
    const created = dataOf(await create('shop', { types: ['wallet.deposited'], concurrency: 4 }))
    expect(created).toEqual({
      webhookId: expect.stringMatching(/^whk_[0-9a-z]{26}$/),
      bizId: 'shop',
      url,
      types: ['wallet.deposited'],
      concurrency: 4,
      status: 'ACTIVE',
      position: 2,
      lastStatus: null,
      lastError: null,
      lastAttemptAt: null,
      failingSince: null,
      previousSecretUntil: null,
      createdAt: isoTime,
      updatedAt: created.createdAt,
      secret: secretForm,
    })
    const { secret: _, ...record } = created
    expect(dataOf(await read(`/${created.webhookId}`))).toEqual(record)
    expect(dataOf(await create('plain'))).toMatchObject({ types: [], concurrency: 1 })
  })

  test('repeated returns the record as it is now, without the secret, also at another gateway', async () => {
    const types = ['wallet.frozen', 'wallet.closed']
    const { secret: _, ...record } = dataOf(await create('shop', { types }))
    const again = { types: types.toReversed(), concurrency: 1 }
    expect(dataOf(await create('shop', again, elsewhere))).toEqual({ ...record, secret: null })
    dataOf(await send('update', { webhookId: record.webhookId, status: 'PAUSED' }))
    expect(dataOf(await create('shop', { types }))).toMatchObject({ status: 'PAUSED', secret: null })
    for (const other of [{ url: `${url}/` }, { types: [] }, { types, concurrency: 2 }]) {
      const refused = await create('shop', { types, ...other })
      expect(refused).toMatchObject({ status: 409, body: { code: 'T005', message: 'BIZ_ID_CONFLICT' } })
    }
  })

  test('of the same bizId at the same time makes one webhook, and one caller gets its secret', async () => {
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(at => create('racing', {}, at % 2 ? tenant : elsewhere)))
    const created = answers.map(dataOf)
    expect(new Set(created.map(({ webhookId }) => webhookId)).size).toBe(1)
    expect(created.filter(({ secret }) => secret !== null)).toHaveLength(1)
  })

  test('a workspace has at most 16 webhooks, also when two cores create them at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, at) =>
        // A busy machine may reject some with S002, which are certainly not made.
        until(`an outcome of hook-${at}`, async () => {
          const answer = await create(`hook-${at}`, {}, at % 2 ? tenant : elsewhere)
          return codeOf(answer) !== 'S002' && answer
        }),
      ),
    )
    const codes = answers.map(codeOf)
    expect(codes.filter(code => code === '2000')).toHaveLength(16)
    expect(codes.filter(code => code === 'E003')).toHaveLength(8)
    const refused = answers.find(answer => codeOf(answer) === 'E003')!
    expect(refused).toMatchObject({ status: 409, body: { message: 'TOO_MANY_WEBHOOKS', data: null } })
    expect(refused.body.detail).toContain('16')
    const { content, page } = dataOf(await read('?size=100'))
    expect([content.length, page.totalElements]).toEqual([16, 16])
    // A replay is found before the limit, and a deleted webhook leaves room.
    expect(codeOf(await create(content[0].bizId))).toBe('2000')
    dataOf(await send('delete', { webhookId: content[0].webhookId }))
    expect(codeOf(await create('one-more'))).toBe('2000')
  })

  test.each([
    ['http://receiver.example/', 'NOT_HTTPS'],
    ['ftp://receiver.example/', 'NOT_A_URL'],
    ['receiver.example', 'NOT_A_URL'],
    ['https://', 'NOT_A_URL'],
    ['https:///events', 'NOT_A_URL'],
    ['https://receiver.example\\@127.0.0.1/', 'NOT_A_URL'],
    ['https://receiver.example/a b', 'NOT_A_URL'],
    ['https://recéiver.example/', 'NOT_A_URL'],
    ['https://user@receiver.example/', 'HAS_CREDENTIALS'],
    ['https://user:password@receiver.example/', 'HAS_CREDENTIALS'],
    ['https://receiver.example/#', 'HAS_FRAGMENT'],
    ['https://receiver.example/#part', 'HAS_FRAGMENT'],
    ['https://1.1.1.1:80/', 'PORT_NOT_ALLOWED'],
    ['https://1.1.1.1:1023/', 'PORT_NOT_ALLOWED'],
    ['https://192.168.7.9:0/', 'PORT_NOT_ALLOWED'],
    ['https://receiver.example:0/', 'PORT_NOT_ALLOWED'],
    ['http://1.1.1.1/', 'NOT_HTTPS'],
    ['https://127.0.0.1/', 'ADDRESS_NOT_ALLOWED'],
    ['https://127.1/', 'ADDRESS_NOT_ALLOWED'],
    ['https://2130706433/', 'ADDRESS_NOT_ALLOWED'],
    ['https://017700000001/', 'ADDRESS_NOT_ALLOWED'],
    ['https://0x7f.1/', 'ADDRESS_NOT_ALLOWED'],
    ['https://%31%32%37.0.0.1/', 'ADDRESS_NOT_ALLOWED'],
    ['https://169.254.169.254/latest', 'ADDRESS_NOT_ALLOWED'],
    ['https://192.168.8.1/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[::1]/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[::ffff:127.0.0.1]/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[::ffff:808:808]/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[64:ff9b::7f00:1]/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[2002:7f00:1::]/', 'ADDRESS_NOT_ALLOWED'],
    ['https://[fe80::1%25eth0]/', 'NOT_A_URL'],
    ['', 'EMPTY'],
    [`https://receiver.example/${'x'.repeat(2048)}`, 'TOO_LONG'],
  ])('and update refuse the URL %s: %s', async (refused, reason) => {
    // Without allowed networks, also names cannot be reached by http.
    const by = reason === 'NOT_HTTPS' && refused.includes('receiver') ? await strict() : tenant
    const { webhookId } = dataOf(await create('shop', {}, by))
    const answers = [
      await create('refused', { url: refused }, by),
      await send('update', { webhookId, url: refused }, by),
      // Before a replay.
      await create('shop', { url: refused }, by),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 400, body: { code: 'S012' } })
    const sentences = answers.map(({ body }) => body.detail)
    expect(sentences[0]).toMatch(/^url /)
    expect(new Set(sentences).size).toBe(1)
    expect(dataOf(await read(`/${webhookId}`, by)).url).toBe(url)
  })

  /** The tenant at a core without allowed networks. */
  async function strict(): Promise<Credentials> {
    strictUrl ??= (
      await system.startGateway({ CORE_URL: (await system.startCore({ WEBHOOK_ALLOWED_NETWORKS: '' })).url })
    ).url
    return { ...tenant, baseUrl: strictUrl }
  }
  let strictUrl: string | undefined

  test.each([
    'https://receiver.example',
    'HTTPS://Receiver.example:8443/a?b=c',
    'https://receiver.example:443/',
    'https://1.1.1.1:1024/',
    'https://[2606:4700:4700::1111]/',
    'https://192.168.7.9:22/',
    'http://192.168.7.9/',
    'http://[::ffff:192.168.7.9]/',
    // A name may lead to an allowed network, which is checked at each attempt.
    'http://receiver.example:80/',
  ])('accepts the URL %s, and returns it as it was sent', async accepted => {
    expect(dataOf(await create('shop', { url: accepted }))).toMatchObject({ url: accepted })
  })

  test.each([
    ['url', { url: undefined }],
    ['url', { url: null }],
    ['url', { url: 7 }],
    ['bizId', { bizId: undefined }],
    ['bizId', { bizId: mintId('webhook') }],
    ['bizId', { bizId: 'WHK_x' }],
    ['types', { types: 'all' }],
    ['types[1]', { types: ['wallet.created', 'wallet.renamed'] }],
    ['types', { types: ['wallet.created', 'wallet.created'] }],
    ['types', { types: [...eventTypes, 'wallet.created'] }],
    ['types', { types: null }],
    ['concurrency', { concurrency: 0 }],
    ['concurrency', { concurrency: 17 }],
    ['concurrency', { concurrency: 1.5 }],
    ['concurrency', { concurrency: '1' }],
    ['secret', { secret: 'whsec_mine' }],
    ['status', { status: 'ACTIVE' }],
  ])('refuses a body with a wrong %s: %j', async (field, change) => {
    const refused = await create('shop', change)
    expect(refused).toMatchObject({ status: 400, body: { code: 'S012' } })
    expect(refused.body.detail).toContain(field)
    expect(refused.headers.get('x-batch-index')).toBeNull()
    expect(dataOf(await read()).content).toEqual([])
  })
})

describe('update', () => {
  test('changes what was sent, at once on every gateway', async () => {
    const { secret: _, ...record } = dataOf(await create('shop', { types: ['wallet.closed'] }))
    const { webhookId } = record
    const update = (body: object) => send('update', { webhookId, ...body }).then(dataOf)
    expect(await update({})).toEqual(record)
    expect(await update({ url, types: ['wallet.closed'], concurrency: 1, status: 'ACTIVE' })).toEqual(record)
    const changed = await update({ url: 'https://new.example/', types: [], concurrency: 16 })
    expect(changed).toEqual({
      ...record,
      url: 'https://new.example/',
      types: [],
      concurrency: 16,
      updatedAt: expect.any(String),
    })
    expect(dataOf(await read(`/${webhookId}`, elsewhere))).toEqual(changed)
    expect(await update({ status: 'PAUSED' })).toMatchObject({ status: 'PAUSED', concurrency: 16 })
    await deposit()
    expect(await update({ status: 'ACTIVE' })).toMatchObject({ status: 'ACTIVE', position: 1 })
    const { entries } = await system.admin.audit.list.query({ target: webhookId })
    expect(entries.map(({ actor, action }) => [actor, action])).toEqual([
      [`key:${tenant.apiKey}`, 'webhook.resume'],
      [`key:${tenant.apiKey}`, 'webhook.pause'],
      [`key:${tenant.apiKey}`, 'webhook.update'],
      [`key:${tenant.apiKey}`, 'webhook.create'],
    ])
  })

  test.each([{ status: 'DELETED' }, { status: null }, { bizId: 'other' }, { position: 0 }, { types: {} }])(
    'refuses %j',
    async change => {
      const { webhookId } = dataOf(await create('shop'))
      expect(await send('update', { webhookId, ...change })).toMatchObject({ status: 400, body: { code: 'S012' } })
    },
  )
})

describe('rotate', () => {
  test('returns a new secret, with a grace, without one, and again in the grace', async () => {
    const created = dataOf(await create('shop'))
    const { webhookId } = created
    const rotate = (body: object = {}) => send('rotate', { webhookId, ...body }).then(dataOf)
    const secondsLeft = ({ previousSecretUntil, updatedAt }: { previousSecretUntil: string; updatedAt: string }) =>
      (Date.parse(previousSecretUntil) - Date.parse(updatedAt)) / 1000
    const rotated = await rotate()
    expect(rotated).toMatchObject({ webhookId, secret: secretForm, previousSecretUntil: isoTime })
    expect(secondsLeft(rotated)).toBe(86_400)
    const { secret: _, ...record } = rotated
    expect(dataOf(await read(`/${webhookId}`))).toEqual(record)
    const again = await rotate({ graceSeconds: 604_800 })
    expect(secondsLeft(again)).toBe(604_800)
    const last = await rotate({ graceSeconds: 0 })
    expect(last.previousSecretUntil).toBeNull()
    expect(new Set([created, rotated, again, last].map(({ secret }) => secret)).size).toBe(4)
    for (const graceSeconds of [-1, 604_801, 0.5, '60', null])
      expect(codeOf(await send('rotate', { webhookId, graceSeconds }))).toBe('S012')
  })
})

describe('seek', () => {
  test('moves to any position up to the end of the log, and no further', async () => {
    const { webhookId } = dataOf(await create('shop'))
    for (let times = 0; times < 3; times++) await deposit()
    const seek = (after: unknown) => send('seek', { webhookId, after })
    for (const after of [0, 2, 4, 1]) expect(dataOf(await seek(after))).toMatchObject({ webhookId, position: after })
    for (const after of [5, Number.MAX_SAFE_INTEGER]) {
      const refused = await seek(after)
      expect(refused).toMatchObject({ status: 409, body: { code: 'E001' } })
      expect(refused.body.detail).toContain('position 4')
    }
    for (const after of [-1, 1.5, '1', 'head', null, 2 ** 53]) expect(codeOf(await seek(after))).toBe('S012')
    expect(dataOf(await read(`/${webhookId}`)).position).toBe(1)
  })
})

describe('delete', () => {
  test('can be repeated, hides the webhook, and keeps its bizId', async () => {
    const { webhookId } = dataOf(await create('shop'))
    const deleted = await send('delete', { webhookId })
    expect(dataOf(deleted)).toEqual({ webhookId })
    expect(dataOf(await send('delete', { webhookId }, elsewhere))).toEqual({ webhookId })
    expect(dataOf(await read())).toMatchObject({ content: [], page: { number: 0, totalElements: 0, totalPages: 0 } })
    for (const answer of [
      await read(`/${webhookId}`),
      await send('update', { webhookId, status: 'ACTIVE' }),
      await send('rotate', { webhookId }),
      await send('seek', { webhookId, after: 0 }),
    ])
      expect(answer).toMatchObject({ status: 404, body: { code: 'E002', message: 'WEBHOOK_NOT_FOUND' } })
    expect(codeOf(await create('shop'))).toBe('T005')
    const { entries } = await system.admin.audit.list.query({ target: webhookId, action: 'webhook.delete' })
    expect(entries).toHaveLength(1)
    expect(await verifyLedger(system)).toMatchObject({ ok: true })
  })
})

describe('lists', () => {
  test('are pages, newest first, with a filter and sorts', async () => {
    const created = []
    for (let at = 0; at < 5; at++) created.push(dataOf(await create(`hook-${at}`)))
    const [first, second] = created
    dataOf(await send('update', { webhookId: second.webhookId, status: 'PAUSED' }))
    const list = async (query: string) => {
      const { content, page } = dataOf(await read(query))
      return { names: content.map(({ bizId }: { bizId: string }) => bizId), page }
    }
    expect(await list('')).toEqual({
      names: ['hook-4', 'hook-3', 'hook-2', 'hook-1', 'hook-0'],
      page: { size: 20, number: 0, totalElements: 5, totalPages: 1 },
    })
    expect(await list('?size=2&page=2')).toEqual({
      names: ['hook-0'],
      page: { size: 2, number: 2, totalElements: 5, totalPages: 3 },
    })
    expect(await list('?size=2&page=9007199254740991')).toMatchObject({ names: [], page: { number: 2 ** 53 - 1 } })
    expect(await list('?status=PAUSED')).toMatchObject({ names: ['hook-1'], page: { totalElements: 1 } })
    expect((await list('?sort=status,desc&sort=createdAt,asc&size=2')).names).toEqual(['hook-1', 'hook-0'])
    expect((await list('?sort=updatedAt,desc&size=1')).names).toEqual(['hook-1'])
    expect((await list('?sort=createdAt,asc&size=1')).names).toEqual([first.bizId])
    for (const query of ['?sort=url,asc', '?status=DELETED', '?bizId=x', '?size=0', '?page=-1'])
      expect(codeOf(await read(query))).toBe('S012')
    // No secret of any of them.
    expect(JSON.stringify(dataOf(await read('?size=100')))).not.toContain('whsec_')
  })
})

test('absent, malformed and foreign webhooks get identical answers', async () => {
  const foreign = dataOf(await create('theirs', {}, await createTenant(system))).webhookId
  const own = dataOf(await create('ours')).webhookId
  const ids = [foreign, mintId('webhook'), 'nonsense', 'ours', walletId, `${own}0`, own.toUpperCase(), '']
  const commands: [string, object][] = [
    ['update', { status: 'PAUSED' }],
    ['rotate', {}],
    ['seek', { after: 0 }],
    ['delete', {}],
  ]
  for (const [command, body] of commands) {
    const answers = await Promise.all(ids.map(webhookId => send(command, { webhookId, ...body })))
    const distinct = answers.map(({ status, body: { timestamp: _, ...rest } }) => JSON.stringify({ status, ...rest }))
    expect(new Set(distinct).size, distinct.join('\n')).toBe(1)
    expect(answers[0]).toMatchObject({ status: 404, body: { code: 'E002', data: null } })
  }
  for (const id of ids.filter(Boolean)) expect(codeOf(await read(`/${id}`))).toBe('E002')
  // A service token cannot cross workspaces either.
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const call = { workspaceId: tenant.workspaceId, caller: { requestId: 'test' }, webhookId: foreign }
  await expect(service.webhooks.get.query(call)).rejects.toThrow('E002')
  await service.close()
})

test('webhook:manage is required, and enough to see all events', async () => {
  const { workspaceId } = tenant
  const others = await createKey(
    { ...system, workspaceId },
    { scopes: ['wallet:read', 'transfer:read', 'hold:read', 'event:read', 'wallet:manage'] },
  )
  expect(codeOf(await read('', others))).toBe('GA2024')
  expect(codeOf(await read('/nonsense', others))).toBe('GA2024')
  for (const command of ['create', 'update', 'rotate', 'seek', 'delete'])
    expect(codeOf(await send(command, {}, others))).toBe('GA2024')

  const manager = await createKey({ ...system, workspaceId }, { scopes: ['webhook:manage'] })
  expect(codeOf(await call(manager, 'GET', '/api/v1/event/query/events/0'))).toBe('GA2024')
  const { webhookId, secret } = dataOf(await create('shop', {}, manager))
  await deposit()
  const [delivery] = await leased(webhookId)
  expect(new Verifier(secret).verify(delivery!.body, delivery!.headers)).toMatchObject({ type: 'wallet.deposited' })
})

/** Leases with both cores until nothing is left, and returns the deliveries of one webhook. */
async function leased(webhookId: string): Promise<Delivery[]> {
  const couriers = system.cores.slice(0, 2).map(({ url }) => createCoreClient({ url, token: system.courierToken }))
  const found: Delivery[][] = []
  // A lease whose events a busy core does not read in time is given again.
  await until('the webhook is leased, and nothing is left', async () => {
    const answers = await Promise.all(couriers.map(courier => courier.courier.lease.mutate({ size: 4 })))
    const webhooks = answers.flatMap(answer => answer.webhooks)
    found.push(...webhooks.filter(each => each.webhookId === webhookId).map(({ deliveries }) => deliveries))
    return webhooks.length === 0 && found.length > 0
  })
  await Promise.all(couriers.map(courier => courier.close()))
  expect(found).toHaveLength(1)
  return found[0]!
}

test('two cores never lease the same webhook to two couriers', async () => {
  const webhooks = await Promise.all(Array.from({ length: 16 }, (_, at) => create(`hook-${at}`).then(dataOf)))
  await deposit()
  const couriers = system.cores.slice(0, 2).map(({ url }) => createCoreClient({ url, token: system.courierToken }))
  const own = new Set(webhooks.map(({ webhookId }) => webhookId))
  const ids: string[] = []
  let round = 0
  await until('all webhooks are leased', async () => {
    const size = 2 + (round++ % 40)
    const answers = await Promise.all([0, 1, 0, 1, 0, 1].map(at => couriers[at]!.courier.lease.mutate({ size })))
    ids.push(...answers.flatMap(answer => answer.webhooks.map(({ webhookId }) => webhookId)).filter(id => own.has(id)))
    return ids.length >= own.size
  })
  expect(ids.toSorted()).toEqual([...own].toSorted())
  await Promise.all(couriers.map(courier => courier.close()))
})

test('a delivery is what the API shows of the event', async () => {
  const { webhookId } = dataOf(await create('shop'))
  await deposit()
  const { content } = dataOf(await call(tenant, 'GET', '/api/v1/event/query/events/1'))
  const deliveries = await leased(webhookId)
  expect(deliveries.map(({ body }) => body)).toEqual(content.map((event: object) => JSON.stringify(event)))
})

test('secrets are in no log, audit entry or row, and in no answer but those of create and rotate', async () => {
  const created = dataOf(await create('shop'))
  const { webhookId } = created
  const rotated = dataOf(await send('rotate', { webhookId }))
  const secrets = [created.secret, rotated.secret].map(secret => secret.slice('whsec_'.length, -1))
  dataOf(await send('update', { webhookId, url: 'https://new.example/' }))
  const { entries } = await system.admin.audit.list.query({ workspaceId: tenant.workspaceId })
  const shown = [
    await read(),
    await read(`/${webhookId}`),
    await send('seek', { webhookId, after: 0 }),
    entries,
    await dumpOf(system.database.ownerUrl),
    ...[...system.cores, ...system.gateways].map(program => program.output()),
  ].map(each => (typeof each === 'string' ? each : JSON.stringify(each)))
  expect(shown.join()).toContain(webhookId)
  for (const text of shown) for (const secret of secrets) expect(text.includes(secret)).toBe(false)
})
