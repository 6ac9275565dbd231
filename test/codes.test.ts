import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/client'
import { type ErrorCode, errorTable, maxWebhooks, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Redis, startRedis } from '../cli/processes/redis.ts'
import { locales } from '../gateway/src/locales/localize.ts'
import { type Answer, batchPath, call, createPath, type Envelope } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { transferOrder } from './setup/order.ts'
import { exchange, requestText } from './setup/raw-http.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey, createTenant } from './setup/workspaces.ts'

/** Every error code over HTTP, with its status, message and envelope. */

let system: System
let redis: Redis
beforeAll(async () => {
  redis = await startRedis()
  system = await startSystem({ gatewayEnvironment: { REDIS_URL: redis.url } })
})
afterAll(async () => {
  await system.stop()
  await redis.stop()
})
afterEach(() => redis.thaw())

const startedAtMs = Date.now()
const reached = new Set<ErrorCode>()

function expectCode({ status, headers, body }: Answer, code: ErrorCode): void {
  expect([body.code, status]).toEqual([code, errorTable[code].http])
  expect(body).toEqual({
    version: '1.3.0',
    timestamp: expect.any(Number),
    success: false,
    code,
    message: errorTable[code].message,
    data: null,
    // fetch sends Accept-Language.
    detail: expect.any(String),
  })
  expect(body.timestamp).toBeGreaterThanOrEqual(startedAtMs)
  expect(body.timestamp).toBeLessThanOrEqual(Date.now())
  expect(headers.get('content-language')).toBe('en-US')
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  reached.add(code)
}

const order = (changes: object = {}) => transferOrder(system, { amount: '1.00', ...changes })

/** A key of its own, for tests that change the key. */
const newKey = (options: { ipAllowlist?: string[] } = {}) =>
  createTenant(system, { scopes: ['wallet:read'], ...options })

const list = '/api/v1/wallets'

/** Waits until a change of a key is in force. */
async function untilCode(credentials: Awaited<ReturnType<typeof newKey>>, code: ErrorCode): Promise<Answer> {
  return until(code, async () => {
    const answer = await call(credentials, 'GET', list)
    return answer.body.code === code && answer
  })
}

describe('the pipeline', () => {
  test('GA2001 without a key, GA2011 with an unknown or malformed one, or with two', async () => {
    expectCode(await call(system, 'GET', list, undefined, { headers: { 'X-Api-Key': null } }), 'GA2001')
    expectCode(await call(system, 'GET', list, undefined, { headers: { 'X-Api-Key': '' } }), 'GA2001')
    for (const apiKey of [
      'ak_01h455vb4pex5vsknk084sn02q',
      'x',
      `${system.apiKey}, ${system.apiKey}`,
      `${system.apiKey}x`,
    ])
      expectCode(await call(system, 'GET', list, undefined, { headers: { 'X-Api-Key': apiKey } }), 'GA2011')
  })

  test('GA2021 while the key is disabled, and after it has expired', async () => {
    const key = await newKey()
    await system.admin.apiKeys.disable.mutate(key)
    expectCode(await untilCode(key, 'GA2021'), 'GA2021')
    await system.admin.apiKeys.enable.mutate(key)
    await until('enabled', async () => (await call(key, 'GET', list)).body.success)
    const expired = await newKey()
    await system.admin.apiKeys.setExpiry.mutate({ ...expired, expiresAt: new Date(0) })
    expectCode(await untilCode(expired, 'GA2021'), 'GA2021')
  })

  test('GA2034 without membership, GA2032 without workspace, GA2011 when the key is deleted', async () => {
    const key = await newKey()
    await system.admin.members.remove.mutate({ ...key, userId: 'owner' })
    expectCode(await untilCode(key, 'GA2034'), 'GA2034')
    await system.admin.workspaces.delete.mutate(key)
    expectCode(await untilCode(key, 'GA2032'), 'GA2032')
    await system.admin.apiKeys.delete.mutate(key)
    expectCode(await untilCode(key, 'GA2011'), 'GA2011')
  })

  test('GA2013 for every faulty timestamp and nonce', async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const timestamp of [
      '',
      'x',
      '1e9',
      ` ${now}x`,
      `${now}.0`,
      `-${now}`,
      `+${now}`,
      `${now}, ${now}`,
      '12345678901',
    ])
      expectCode(await call(system, 'GET', list, undefined, { timestamp }), 'GA2013')
    for (const offset of [-62, 62]) {
      const answer = await until('an answer while the timestamp is outside of the window', async () => {
        const timestamp = Math.floor(Date.now() / 1000) + offset
        const answer = await call(system, 'GET', list, undefined, { timestamp: String(timestamp) })
        return Math.abs(timestamp - Date.now() / 1000) > 60 && answer
      })
      expectCode(answer, 'GA2013')
    }
    for (const nonce of ['', 'a b', 'x'.repeat(129), 'ü'])
      expectCode(await call(system, 'GET', list, undefined, { nonce, headers: { 'X-Nonce': nonce } }), 'GA2013')
    const nonce = `once-${'x'.repeat(123)}`
    expect((await call(system, 'GET', list, undefined, { nonce })).status).toBe(200)
    expectCode(await call(system, 'POST', createPath, order(), { nonce }), 'GA2013')
  })

  test('GA2012 for a missing, malformed, repeated or different signature, which does not use up the nonce', async () => {
    const nonce = 'kept'
    const wrong = ['', 'x', `${'A'.repeat(43)}=`, 'A'.repeat(44), `${'A'.repeat(43)}=, ${'A'.repeat(43)}=`]
    for (const signature of wrong)
      expectCode(await call(system, 'GET', list, undefined, { nonce, headers: { 'X-Signature': signature } }), 'GA2012')
    const timestamp = String(Math.floor(Date.now() / 1000))
    const sent = { method: 'GET', path: list, timestamp, nonce, bodyHash: await bodyHash('') }
    for (const signed of [
      { method: 'POST' },
      { path: `${list}/` },
      { path: `${list}?page=0` },
      { timestamp: '1' },
      { nonce: 'other' },
      { bodyHash: '' },
      { bodyHash: 'E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855' },
    ]) {
      const headers = { 'X-Signature': await sign(system.apiSecret, canonicalMessage({ ...sent, ...signed })) }
      expectCode(await call(system, 'GET', list, undefined, { timestamp, nonce, headers }), 'GA2012')
    }
    expectCode(await call(system, 'GET', list, undefined, { nonce, secret: 'x' }), 'GA2012')
    expect((await call(system, 'GET', list, undefined, { nonce })).status).toBe(200)
  })

  test('GA2022 for an address outside the IP list', async () => {
    expectCode(await call(await newKey({ ipAllowlist: ['203.0.113.0/24', '::2'] }), 'GET', list), 'GA2022')
    expect((await call(await newKey({ ipAllowlist: ['203.0.113.0/24', '127.0.0.1'] }), 'GET', list)).status).toBe(200)
  })

  test('GA2024 without the scope', async () => {
    const key = await newKey()
    expectCode(await call(key, 'POST', createPath, order()), 'GA2024')
    expectCode(await call(key, 'GET', '/api/v1/transfer/query/orders'), 'GA2024')
  })

  test('GA2024 for a batch that reverses a transfer, without transfer:reverse, after S012', async () => {
    const key = await createTenant(system, { scopes: ['transfer:create'] })
    const reversal = { reversesTransferId: 'absent', amount: '1.00', currency: 'USD', bizId: 'reversal' }
    const send = (transfers: object[]) => call(key, 'POST', batchPath, { transfers })
    const answer = await send([order({ bizId: 'payment' }), reversal])
    expectCode(answer, 'GA2024')
    expect(answer.headers.get('x-batch-index')).toBe('1')
    expect(answer.body.detail).toMatch(/^transfers\[1\]: .* transfer:reverse/)
    expectCode(await send([reversal, { ...reversal, bizId: 'other', amount: '0' }]), 'S012')
  })

  test('50090201 for every path and method under /api/ that is not an endpoint', async () => {
    const { walletId } = system.wallets[0]!
    const undeclared: [string, string][] = [
      ['GET', '/api/'],
      ['GET', '/api/v1'],
      ['GET', '/api/v2/wallets'],
      ['GET', '/api/v1/wallets/'],
      ['GET', '/api/v1/Wallets'],
      ['GET', '/api/V1/wallets'],
      ['GET', '/api//v1/wallets'],
      ['GET', '/api/v1//wallets'],
      ['GET', '/api/v1/w%61llets'],
      ['GET', `/api/v1/wallets%2F${walletId}`],
      ['GET', `/api/v1/wallets/${walletId}/`],
      ['GET', `/api/v1/wallets/${walletId}%2Fbalance`],
      ['GET', '/api/v1/wallets/%zz'],
      ['GET', '/api/v1/wallets/%ff'],
      ['GET', `/api/v1/wallets/${walletId}/nothing`],
      ['GET', createPath],
      ['POST', list],
      ['PUT', list],
      ['PATCH', list],
      ['DELETE', list],
      ['OPTIONS', list],
    ]
    for (const [method, path] of undeclared)
      expectCode(await call(system, method, path, method === 'POST' ? '{}' : undefined), '50090201')
  })

  test('S004 for every path outside /api/', async () => {
    for (const path of ['/', '/api', '/API/v1/wallets', '//api/v1/wallets', '/%61pi/v1/wallets', '/metrics'])
      expectCode(await call(system, 'GET', path), 'S004')
  })
})

describe('creating a transfer', () => {
  test('W001, W002, T002, T003, T004, T005', async () => {
    const { admin, workspaceId } = system
    const { walletId: frozen } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Frozen' })
    await admin.wallets.changeStatus.mutate({ workspaceId, walletId: frozen, status: 'FROZEN' })
    const send = (changes: object) => call(system, 'POST', createPath, order(changes))
    expectCode(await send({ targetWalletId: 'wal_01h455vb4pex5vsknk084sn02q' }), 'W001')
    expectCode(await send({ targetWalletId: frozen }), 'W002')
    expectCode(await send({ amount: '999999999.00' }), 'T002')
    expectCode(await send({ targetWalletId: system.wallets[2]!.walletId }), 'T003')
    expectCode(await send({ targetWalletId: order().sourceWalletId }), 'T004')
    expect((await send({ bizId: 'codes' })).status).toBe(200)
    expectCode(await send({ bizId: 'codes', amount: '2.00' }), 'T005')
    expectCode(await call(system, 'GET', '/api/v1/transfer/query/orders/none'), 'T001')
    expectCode(await call(system, 'GET', '/api/v1/wallets/none'), 'W001')
  })

  test('S013 for a body over 64 KiB; S015 for another media type or a content encoding', async () => {
    expectCode(await call(system, 'POST', createPath, `"${'x'.repeat(65_535)}"`), 'S013')
    const send = (headers: Record<string, string | null>) => call(system, 'POST', createPath, order(), { headers })
    for (const type of ['text/plain', 'application/xml', 'application/json; charset=latin1', 'application/jsonp', ''])
      expectCode(await send({ 'Content-Type': type }), 'S015')
    expectCode(await send({ 'Content-Encoding': 'gzip' }), 'S015')
    expect((await send({ 'Content-Type': 'application/json; charset=UTF-8' })).status).toBe(200)
  })

  test('a batch may have 256 KiB; the place of a faulty item is in X-Batch-Index', async () => {
    const send = (change: object) =>
      call(system, 'POST', batchPath, {
        transfers: Array.from({ length: 100 }, (_, at) => order({ bizId: `item-${at}`, ...(at === 99 && change) })),
      })
    const answer = await send({ remark: 'x'.repeat(200_000) })
    expectCode(answer, 'S012')
    expect(answer.headers.get('x-batch-index')).toBe('99')
    expectCode(await send({ remark: 'x'.repeat(256 * 1024) }), 'S013')
    const localized = await call(system, 'POST', batchPath, { transfers: [order()] }, { headers: { 'X-LOCALE': 'en' } })
    expect(localized.body.detail).toBe('transfers[0].bizId is required.')
    expectCode(await call(system, 'POST', createPath, order({ remark: 'x'.repeat(65_536) })), 'S013')
  })

  test('S012 for every faulty field, with a detail that names the field', async () => {
    const faults: [string | object, string][] = [
      ['', 'body'],
      ['{', 'body'],
      ['[]', 'body'],
      ['null', 'body'],
      ['"text"', 'body'],
      ['\ufeff{}', 'body'],
      [{}, 'sourceWalletId'],
      [order({ sourceWalletId: 1 }), 'sourceWalletId'],
      [order({ targetWalletId: null }), 'targetWalletId'],
      [order({ amount: 1 }), 'amount'],
      [order({ amount: '' }), 'amount'],
      [order({ amount: '0' }), 'amount'],
      [order({ amount: '0.00' }), 'amount'],
      [order({ amount: '-1' }), 'amount'],
      [order({ amount: '+1' }), 'amount'],
      [order({ amount: '01' }), 'amount'],
      [order({ amount: '1.' }), 'amount'],
      [order({ amount: '.5' }), 'amount'],
      [order({ amount: '1e3' }), 'amount'],
      [order({ amount: '1,5' }), 'amount'],
      [order({ amount: ' 1' }), 'amount'],
      [order({ amount: '1\n' }), 'amount'],
      [order({ amount: '١' }), 'amount'],
      [order({ amount: '1.001' }), 'amount'],
      [order({ amount: '1'.repeat(39) }), 'amount'],
      [order({ amount: 'NaN' }), 'amount'],
      [order({ amount: 'Infinity' }), 'amount'],
      [order({ currency: 'usd' }), 'currency'],
      [order({ currency: 'XXX' }), 'currency'],
      [order({ currency: '' }), 'currency'],
      [order({ bizId: '' }), 'bizId'],
      [order({ bizId: 'wallet' }), 'bizId'],
      [order({ bizId: 'trf_01h455vb4pex5vsknk084sn02q' }), 'bizId'],
      [order({ bizId: '-a' }), 'bizId'],
      [order({ bizId: 'a/b' }), 'bizId'],
      [order({ bizId: 'a'.repeat(65) }), 'bizId'],
      [order({ remark: 'x'.repeat(257) }), 'remark'],
      [order({ remark: '\u0000' }), 'remark'],
      [order({ remark: '\ud800' }), 'remark'],
      [order({ remark: null }), 'remark'],
      [order({ fee: '1' }), 'fee'],
      [order({ reference: '' }), 'reference'],
      [order({ reference: 'two words' }), 'reference'],
      [order({ reference: 'x'.repeat(65) }), 'reference'],
      [order({ reference: null }), 'reference'],
      [order({ holdId: null }), 'holdId'],
      [order({ holdId: 'x', holdRemainder: 'DROP' }), 'holdRemainder'],
      [order({ holdRemainder: 'KEEP' }), 'holdId'],
      [JSON.stringify(order()).replace('{', '{"__proto__":{},'), '__proto__'],
      [JSON.stringify(order()).replace('{', '{"amount":"2.00",'), 'amount'],
      [JSON.stringify(order()).replace('{', '{"\\u0061mount":"2.00",'), 'amount'],
    ]
    for (const [body, field] of faults) {
      const answer = await call(system, 'POST', createPath, body, { headers: { 'X-LOCALE': 'en-US' } })
      expect(answer.body.detail, JSON.stringify(body)).toContain(field === 'body' ? '' : field)
      expectCode(answer, 'S012')
    }
    const details: [object, string][] = [
      [{ bizId: 'a'.repeat(65) }, 'bizId must have at most 64 characters.'],
      [{ bizId: 'a b' }, 'bizId may contain only the letters A-Z and a-z, digits and . _ : -'],
      [{ remark: 'x'.repeat(257) }, 'remark must have at most 256 characters.'],
      [{ reference: 'a b' }, 'reference may contain only visible ASCII characters, at most 64:'],
      [{ Amount: '1.00' }, 'Amount is unknown. Did you mean amount?'],
      [{ fee: '1.00' }, 'fee is unknown. Known names: sourceWalletId, targetWalletId, amount, currency,'],
    ]
    for (const [change, detail] of details) {
      const answer = await call(system, 'POST', createPath, order(change), { headers: { 'X-LOCALE': 'en-US' } })
      expect(answer.body.detail).toContain(detail)
    }
    const queries: [string, string][] = [
      ['created_from=2026-01-31', 'created_from is unknown. Did you mean createdFrom?'],
      ['createdFrom=2026-01-31T12:00:00+02:00', 'Encode the plus as %2B.'],
      ['createdTo=2026-01-31T12:00:00+02:00', 'Encode the plus as %2B.'],
      ['currency=usd', 'currency must be the upper-case code of a supported currency, such as USD.'],
      ['size=0', 'size must be at least 1.'],
    ]
    for (const [query, detail] of queries)
      expect((await call(system, 'GET', `/api/v1/wallets?${query}`)).body.detail).toContain(detail)
    const paths: [string, string, string][] = [
      ['GET', createPath, `Did you mean POST ${createPath}?`],
      ['GET', '/api/v1/wallets/', 'Did you mean GET /api/v1/wallets?'],
      ['GET', '/api/v1/Wallets/%zz/balance', 'Did you mean GET /api/v1/wallets/%zz/balance?'],
    ]
    for (const [method, path, detail] of paths) expect((await call(system, method, path)).body.detail).toContain(detail)
    const emoji = '😀'.repeat(256)
    expect((await call(system, 'POST', createPath, order({ remark: emoji }))).body.data.remark).toBe(emoji)
  })
})

describe('other commands', () => {
  const reversePath = '/api/v1/transfer/command/reverse'
  const holdPath = '/api/v1/hold/command/create'
  const releasePath = '/api/v1/hold/command/release'
  const statusPath = '/api/v1/wallet/command/change-status'
  const money = { amount: '1.00', currency: 'USD' }
  const newHold = (bizId: string) => ({
    walletId: system.wallets[0]!.walletId,
    ...money,
    expiresInSeconds: 3600,
    bizId,
  })

  test('T008 for a transfer above a limit, with what is left', async () => {
    const { workspaceId, wallets } = system
    const limit = { workspaceId, subject: { walletId: wallets[2]!.walletId }, currency: 'EUR' }
    await system.admin.limits.set.mutate({ ...limit, perTransfer: '5.00', perDay: '100.00' })
    const body = order({ sourceWalletId: wallets[2]!.walletId, currency: 'EUR', amount: '5.01' })
    const { walletId: targetWalletId } = await system.admin.wallets.create.mutate({
      workspaceId,
      currency: 'EUR',
      name: 'T',
    })
    const answer = await call(system, 'POST', createPath, { ...body, targetWalletId })
    expectCode(answer, 'T008')
    expect(answer.body.detail).toContain('5.00')
    await system.admin.limits.clear.mutate(limit)
  })

  test('T001, T006, T007 for a reversal', async () => {
    const reverse = (reversesTransferId: string, bizId: string) =>
      call(system, 'POST', reversePath, { reversesTransferId, ...money, bizId })
    await call(system, 'POST', createPath, order({ bizId: 'to-reverse' }))
    expectCode(await reverse('absent', 'reversal-0'), 'T001')
    expect((await reverse('to-reverse', 'reversal-1')).status).toBe(200)
    expectCode(await reverse('to-reverse', 'reversal-2'), 'T007')
    expectCode(await reverse('reversal-1', 'reversal-3'), 'T006')
  })

  test('T003, which names the field and both currencies', async () => {
    const [main, savings, euro] = system.wallets.map(({ walletId }) => walletId)
    await call(system, 'POST', createPath, order({ bizId: 'in-dollars' }))
    const requests: [path: string, body: object, detail: RegExp][] = [
      [createPath, order({ targetWalletId: euro }), /USD, but the wallet in targetWalletId is in EUR/],
      [
        createPath,
        order({ sourceWalletId: euro, targetWalletId: main }),
        /USD, but the wallet in sourceWalletId is in EUR/,
      ],
      [
        createPath,
        order({ targetWalletId: savings, currency: 'EUR' }),
        /EUR, but the wallet in sourceWalletId is in USD/,
      ],
      [holdPath, { ...newHold('in-euros'), currency: 'EUR' }, /EUR, but the wallet in walletId is in USD/],
      [
        reversePath,
        { reversesTransferId: 'in-dollars', amount: '1.00', currency: 'EUR', bizId: 'reversed-in-euros' },
        /EUR, but the transfer in reversesTransferId is in USD/,
      ],
    ]
    for (const [path, body, detail] of requests) {
      const answer = await call(system, 'POST', path, body)
      expectCode(answer, 'T003')
      expect(answer.body.detail).toMatch(detail)
    }
  })

  test('H001, H002, H003, H004', async () => {
    expect((await call(system, 'POST', holdPath, newHold('hold-1'))).status).toBe(200)
    const draw = (changes: object) => call(system, 'POST', createPath, order({ holdId: 'hold-1', ...changes }))
    expectCode(await draw({ holdId: 'absent' }), 'H001')
    expectCode(await draw({ amount: '1.01' }), 'H003')
    expectCode(await draw({ sourceWalletId: order().targetWalletId, targetWalletId: order().sourceWalletId }), 'H004')
    expect((await call(system, 'POST', releasePath, { holdId: 'hold-1' })).body.data.status).toBe('RELEASED')
    expectCode(await draw({}), 'H002')
    expectCode(await call(system, 'GET', '/api/v1/hold/query/holds/absent'), 'H001')
  })

  test('GA2024 for a draw on a hold, without hold:create, after S012 and before all that depends on the hold', async () => {
    const key = await createKey(system, { scopes: ['transfer:create'] })
    expect((await call(system, 'POST', holdPath, newHold('not-yours'))).status).toBe(200)
    expect((await call(system, 'POST', holdPath, newHold('drawn'))).status).toBe(200)
    expect((await call(system, 'POST', createPath, order({ holdId: 'drawn', bizId: 'draw' }))).status).toBe(200)
    const draw = (changes: object) => call(key, 'POST', createPath, order({ holdId: 'not-yours', ...changes }))
    const refused = [
      await draw({}),
      await draw({ holdRemainder: 'KEEP' }),
      await draw({ holdId: 'drawn' }), // H002
      await draw({ holdId: 'absent' }), // H001
      await draw({ amount: '9.00' }), // H003
      await draw({ targetWalletId: order().sourceWalletId }), // T004
      await draw({ holdId: 'drawn', bizId: 'draw' }), // a replay
      await draw({ bizId: 'draw' }), // T005
    ]
    for (const answer of refused) {
      expectCode(answer, 'GA2024')
      expect(answer.body.detail).toBe(refused[0]!.body.detail)
    }
    expect(refused[0]!.body.detail).toContain('hold:create')
    expectCode(await draw({ amount: '0' }), 'S012')
    const batch = (...transfers: object[]) => call(key, 'POST', batchPath, { transfers })
    const payment = order({ bizId: 'payment' })
    const inBatch = await batch(payment, order({ bizId: 'draw', holdId: 'drawn' }))
    expectCode(inBatch, 'GA2024')
    expect(inBatch.headers.get('x-batch-index')).toBe('1')
    expect(inBatch.body.detail).toMatch(/^transfers\[1\]: .* hold:create/)
    expectCode(await batch(order({ bizId: 'a', holdId: 'drawn' }), order({ bizId: 'b', amount: '0' })), 'S012')
    expect((await batch(payment)).status).toBe(200)
    expect((await call(system, 'GET', '/api/v1/hold/query/holds/not-yours')).body.data.status).toBe('OPEN')
  })

  test('W003 and W004 for a change of status', async () => {
    const { admin, workspaceId } = system
    const change = (walletId: string, status: string) => call(system, 'POST', statusPath, { walletId, status })
    expectCode(await change(system.wallets[0]!.walletId, 'CLOSED'), 'W003')
    const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Frozen' })
    await admin.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })
    expectCode(await change(walletId, 'ACTIVE'), 'W004')
  })

  test('E001 for events after the end of the log', async () => {
    expectCode(await call(system, 'GET', `/api/v1/event/query/events/${Number.MAX_SAFE_INTEGER}`), 'E001')
  })

  test('E002 for an unknown webhook, E003 for one too many', async () => {
    const tenant = await createTenant(system)
    const create = (bizId: string) =>
      call(tenant, 'POST', '/api/v1/webhook/command/create', { url: 'https://example.com/', bizId })
    for (let at = 0; at < maxWebhooks; at++) expect((await create(`hook-${at}`)).status).toBe(200)
    expectCode(await create('hook-one-more'), 'E003')
    expectCode(await call(tenant, 'GET', '/api/v1/webhook/query/webhooks/absent'), 'E002')
  })

  test('the place of a refused item of a batch is in X-Batch-Index', async () => {
    const items = [order({ bizId: 'item-1' }), order({ bizId: 'item-2', amount: '999999999.00' })]
    const answer = await call(system, 'POST', batchPath, { transfers: items }, { headers: { 'X-LOCALE': 'en-US' } })
    expect([answer.body.code, answer.headers.get('x-batch-index')]).toEqual(['T002', '1'])
    expect(answer.body.detail).toMatch(/^transfers\[1\]: /)
    expectCode(await call(system, 'GET', '/api/v1/transfer/query/orders/item-1'), 'T001')
  })
})

describe('failures', () => {
  test('S001 for a stored secret that cannot be decrypted; other keys work', async () => {
    const key = await newKey()
    const owner = await connect(system.database.ownerUrl)
    const isKey = `id = '${uuidFromId('apiKey', key.apiKey)}'`
    await owner.query(`update api_key set secret = 'v1.k1.AAAA.AAAA.AAAA', revision = revision + 1 where ${isKey}`)
    await signRows(owner, system.chainKey, 'api_key', isKey)
    await owner.end()
    expectCode(await call(key, 'GET', list), 'S001')
    expect((await call(system, 'GET', list)).status).toBe(200)
  })

  test('S002 without Redis, also for a wrong signature, after steps 1 to 4 with their own codes', async () => {
    redis.freeze()
    const answer = await call(system, 'GET', list)
    expectCode(answer, 'S002')
    expect(answer.headers.get('retry-after')).toBe('1')
    expectCode(await call(system, 'GET', list, undefined, { secret: 'x' }), 'S002')
    expectCode(await call(system, 'GET', list, undefined, { timestamp: '1' }), 'GA2013')
    expectCode(await call(system, 'GET', list, undefined, { headers: { 'X-Api-Key': null } }), 'GA2001')
    redis.thaw()
    await until('Redis is back', async () => (await call(system, 'GET', list)).body.success)
  })

  test('S002 without core, for a transfer that certainly was not made', async () => {
    const core = system.cores.at(-1)!
    await core.kill('SIGKILL')
    try {
      expectCode(await call(system, 'POST', createPath, order({ bizId: 'no-core' })), 'S002')
    } finally {
      await system.startCore({ CORE_PORT: String(core.port) })
    }
    await until('core is back', async () => (await call(system, 'GET', list)).body.success)
    expectCode(await call(system, 'GET', '/api/v1/transfer/query/orders/no-core'), 'T001')
  })

  test('S003 when core freezes during a create; X-Transfer-Id names the order, and a retry with its bizId returns it', async () => {
    const core = system.cores.at(-1)!
    const body = order({ bizId: 'frozen-core' })
    const create = () => call(system, 'POST', createPath, body)
    const answer = await until('a create is sent before the gateway finds that core does not respond', async () => {
      // This opens the connection for commands: what waits for one is not sent.
      await until('core serves', async () => (await call(system, 'POST', createPath, order())).body.success)
      await core.kill('SIGSTOP')
      const answer = await create().finally(() => core.kill('SIGCONT'))
      return answer.body.code !== 'S002' && answer
    })
    expectCode(answer, 'S003')
    expect(answer.headers.get('x-transfer-id')).toMatch(/^trf_/)
    const again: Envelope = await until('core is back', async () => {
      const { body: envelope } = await create()
      return envelope.success && envelope
    })
    const orders = await call(system, 'GET', '/api/v1/transfer/query/orders?bizIdPrefix=frozen-core')
    expect(orders.body.data.content).toEqual([again.data])
  })
})

test('S029 over the rate limit of a key', async () => {
  const { url } = await system.startGateway({ KEY_REQUESTS_PER_SECOND: '1' })
  const key = { ...(await newKey()), baseUrl: url }
  const answer = await until('over the limit', async () => {
    const answer = await call(key, 'GET', list)
    return answer.status === 429 && answer
  })
  expectCode(answer, 'S029')
  expect(answer.headers.get('retry-after')).toBe('1')
})

test.each([
  ['X-LOCALE', ['X-LOCALE: zh-CN', 'Accept-Language: en'], 'zh-CN'],
  ['an X-LOCALE that no language matches', ['X-LOCALE: tlh', 'Accept-Language: zh'], 'en-US'],
  ['Accept-Language', ['Accept-Language: de, zh;q=0.5, en;q=0.1'], 'zh-CN'],
  ['two Accept-Language', ['Accept-Language: de', 'Accept-Language: zh'], 'zh-CN'],
  ['any language', ['Accept-Language: *'], 'en-US'],
  ['no language', [], undefined],
  ['an empty X-LOCALE', ['X-LOCALE:'], undefined],
  ['an empty X-LOCALE and Accept-Language', ['X-LOCALE:', 'Accept-Language: zh'], 'zh-CN'],
])('the language of detail for a request with %s', async (_name, lines, language) => {
  const text = requestText('GET', list, { Connection: 'close' }, lines)
  const [head = '', json = ''] = (await exchange(system.baseUrl, text)).split('\r\n\r\n')
  const locale = locales.find(({ tag }) => tag === language)
  expect(JSON.parse(json).detail).toBe(locale?.sentences.GA2001(undefined, locale))
  expect(/^content-language: (.*)$/im.exec(head)?.[1]).toBe(language)
})

test.each([
  ['a line that is not a header', 'GET /api/v1/wallets HTTP/1.1\r\nBad Header\r\n\r\n', 'S012'],
  ['an unknown method', 'BREW /api/v1/wallets HTTP/1.1\r\nHost: x\r\n\r\n', 'S012'],
  ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n', 'S012'],
  ['no Host', 'GET /api/v1/wallets HTTP/1.1\r\nConnection: close\r\n\r\n', 'S012'],
  ['headers that are too long', `GET /api/v1/wallets HTTP/1.1\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 'S012'],
])('malformed HTTP is answered with the envelope: %s', async (_name, text, code) => {
  const answer = await exchange(system.baseUrl, text)
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({
    success: false,
    code,
    data: null,
  })
})

test('these tests cover every code', () => {
  expect(Object.keys(errorTable).filter(code => !reached.has(code as ErrorCode))).toEqual([])
})
