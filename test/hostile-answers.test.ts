import { Decimal, packBatch } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { type Answer, call } from './setup/client.ts'
import { type CoreProxy, startCoreProxy } from './setup/core-proxy.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** An attacker controls a core, and answers calls of gateways with whatever could harm them. */

let system: System
let hostileCore: CoreProxy
let gateway: Program
/** What the core answers to a batch that calls a procedure. */
let forged: { path: string; body: Buffer } | undefined
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  hostileCore = await startCoreProxy(
    { url: system.coreUrl, token: system.gatewayToken },
    {
      changeAnswer: (body, calls) => (forged && calls.some(({ path }) => path === forged!.path) ? forged.body : body),
    },
  )
  gateway = await system.startGateway({
    CORE_URL: hostileCore.url,
    NODE_OPTIONS: '--max-old-space-size=256',
  })
})
afterAll(async () => {
  await system.stop()
  hostileCore.close()
})

const request = (path: string, headers = {}) =>
  call({ ...system, baseUrl: gateway.url }, 'GET', path, undefined, { headers })
const balancePath = () => `/api/v1/wallets/${system.wallets[0]!.walletId}/balance`

/** Makes requests while the core answers a procedure with `body`, and then one that gets its answer. */
async function attack(path: string, body: Buffer, requests: () => Promise<Answer>[]) {
  forged = { path, body }
  const answers = await Promise.allSettled(requests())
  forged = undefined
  const { status, body: after } = await request(balancePath())
  expect([status, after.data]).toMatchObject([200, { balance: '1000.00' }])
  expect([gateway.process.exitCode, gateway.process.signalCode]).toEqual([null, null])
  return answers
}

describe('answers that are made to be expensive', () => {
  const pack = (value: unknown) => packBatch(value as never)
  /** An object of packed values, in the form of packBatch: a record with its keys, and then the values. */
  const object = (fields: Record<string, Uint8Array>) => {
    const [keys, values] = [Object.keys(fields), Object.values(fields)]
    return Buffer.concat([Buffer.of(0xd4, 0x72, 0x40, 0x90 + keys.length), ...keys.map(pack), ...values])
  }
  const answer = (data: Uint8Array) => Buffer.concat([Buffer.of(0x91), object({ data })])
  /** A balance as core answers it, with another field. */
  const balanceWith = (other: Uint8Array) => {
    const { walletId, currency } = system.wallets[0]!
    const [amount, text] = [pack(new Decimal(1)), pack(walletId)]
    const amounts = { balance: amount, held: amount, available: amount }
    return answer(object({ walletId: text, currency: pack(currency), ...amounts, updatedAt: pack(new Date()), other }))
  }
  const array = (length: number, items: Uint8Array) => {
    const head = Buffer.of(0xdd, 0, 0, 0, 0)
    head.writeUInt32BE(length, 1)
    return Buffer.concat([head, items])
  }
  const emptyMaps = (count: number) => array(count, Buffer.alloc(count, 0x80))
  /** An array of ten times the same array, which is named and then referred to, and so on: a text of 10^levels numbers. */
  const references = (levels: number): Buffer => {
    if (levels === 0) return Buffer.of(1)
    const named = Buffer.concat([Buffer.of(0xd6, 0x69, 0, 0, 0, levels), references(levels - 1)])
    return Buffer.concat([Buffer.of(0x9a), named, ...Array<Buffer>(9).fill(Buffer.of(0xd6, 0x70, 0, 0, 0, levels))])
  }

  const mostBytes = 4 * 2 ** 20 - 1_000
  test.each<[string, () => Buffer]>([
    ['millions of empty maps', () => answer(emptyMaps(5_000_000))],
    ['millions of empty maps in a field that is not used', () => balanceWith(emptyMaps(5_000_000))],
    ['a few bytes that are a text of gigabytes', () => balanceWith(references(9))],
    ['values too deep in others', () => answer(Buffer.alloc(5_000_000, 0x91))],
    ['more bytes than core sends', () => answer(pack('x'.repeat(16 * 2 ** 20)))],
    ['characters instead of a record', () => answer(pack('x'.repeat(mostBytes)))],
    ['bytes instead of a record', () => answer(pack(Buffer.alloc(mostBytes)))],
    [
      'characters instead of a record in a list',
      () => answer(object({ content: array(1, pack('x'.repeat(mostBytes))) })),
    ],
    [
      'many texts instead of records in a list',
      () => answer(object({ content: array(1_000, Buffer.concat(Array(1_000).fill(pack('x'.repeat(4_000))))) })),
    ],
  ])('are not used, and others are served: %s', async (_, body) => {
    const answers = await attack('wallets.balance', body(), () => [request(balancePath())])
    expect(answers).toMatchObject([{ value: { status: 503, body: { code: 'S002' } } }])
  })

  test.each<[string, () => Buffer]>([
    ['values', () => answer(emptyMaps(65_000))],
    ['values in a field that is not used', () => balanceWith(emptyMaps(65_000))],
    ['characters that are six times as long in JSON', () => balanceWith(pack('\u0001'.repeat(mostBytes)))],
  ])('as much as core may send does not end a gateway: %s', async (_, body) => {
    for (let round = 0; round < 3; round++)
      await attack('wallets.balance', body(), () => Array.from({ length: 16 }, () => request(balancePath())))
  })
})

describe('pages of events that are none', () => {
  const page = { content: '[]', after: 0, afterEventId: null, types: [], last: 0, lastEventId: null, more: false }
  const read = async (data: unknown) => {
    const body = packBatch([{ data }])
    return (await attack('events.read', body, () => [request('/api/v1/event/query/events/0')]))[0]
  }

  test.each<[string, unknown]>([
    ['without content', { ...page, content: undefined }],
    ['whose content is no text', { ...page, content: [] }],
    ['with nothing but content', { content: '[]' }],
    ['with a position that is no number', { ...page, last: '0' }],
    ['a text', 'text'],
    ['nothing', null],
  ])('get S001 in the envelope: %s', async (_, data) => {
    expect(await read(page)).toMatchObject({ value: { status: 200, body: { data: { ...page, content: [] } } } })
    expect(await read(data)).toMatchObject({
      value: { status: 500, body: { success: false, code: 'S001', data: null } },
    })
  })
})

describe('errors with malformed details', () => {
  const fail = async (code: unknown, details: unknown, headers = {}) => {
    const data = { code: 'CONFLICT', httpStatus: 409, appError: { kind: 'domain', code, details } }
    const body = packBatch([{ error: { message: 'failed', code: -32_000, data } }])
    return (await attack('wallets.balance', body, () => [request(balancePath(), headers)]))[0]
  }
  const long = 'x'.repeat(100_000)

  test('errors of core are passed on with their headers', async () => {
    const transferId = 'trf_01h455vb4pex5vsknk084sn02q'
    const unknown = await fail('S003', { transferId, index: 3 })
    expect(unknown).toMatchObject({ value: { status: 504, body: { code: 'S003' } } })
    const { headers } = (unknown as PromiseFulfilledResult<Answer>).value
    expect([headers.get('x-transfer-id'), headers.get('x-batch-index')]).toEqual([transferId, '3'])
  })

  test.each<[string, unknown, unknown]>([
    ['a long transferId', 'S003', { transferId: long }],
    ['a transferId that would end the header', 'S003', { transferId: 'trf_1\r\nX-Other: 1' }],
    ['a transferId of another alphabet', 'S003', { transferId: '转' }],
    ['a long time', 'S002', { retryAfterSeconds: long }],
    ['a time that is no number', 'S002', { retryAfterSeconds: Number.NaN }],
    ['a long place in a batch', 'T002', { index: long }],
    ['a long field', 'W001', { field: long }],
    ['an unknown reason', 'S012', { field: 'amount', reason: 'constructor' }],
    ['no details', 'W001', undefined],
    ['a code that is no text', ['T002'], undefined],
  ])('get S001, without headers of them: %s', async (_, code, details) => {
    const answer = await fail(code, details, { 'X-LOCALE': 'en-US' })
    expect(answer).toMatchObject({ value: { status: 500, body: { code: 'S001', message: 'INTERNAL_ERROR' } } })
    const { headers, body } = (answer as PromiseFulfilledResult<Answer>).value
    for (const name of ['x-transfer-id', 'retry-after', 'x-batch-index', 'x-other'])
      expect(headers.get(name)).toBe(null)
    expect(body.detail!.length).toBeLessThan(1_000)
    const requestId = headers.get('x-request-id')!
    const logged = await until('the log has the request', () =>
      gateway
        .output()
        .split('\n')
        .find(line => line.includes(requestId)),
    )
    expect(logged).toContain('"msg":"a request failed"')
  })
})
