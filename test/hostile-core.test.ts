import { connect } from 'node:net'
import { type BatchAnswer, type BatchCall, packBatch, serialization, unpackBatch } from '@workspace-wallet/contract'
import { type CoreClient, type CoreErrorData, createCoreClient } from '@workspace-wallet/core-client'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { retryUnavailable } from '../cli/processes/retry.ts'
import { type Outcomes, sendElementBombs } from '../tools/chaos/attacks.ts'
import { openBatches, sendBatch, upgradeText } from './setup/batches.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** Hostile calls by the holder of a service token. Core rejects them, and serves everybody else. */

const seed = chooseSeed()

let system: System
beforeAll(async () => {
  console.log(`hostile batches: SEED=${seed}`)
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

function post(path: string, body: Uint8Array | string, type: string, token = system.gatewayToken): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type }
  return fetch(system.coreUrl + path, { method: 'POST', headers, body: body as Uint8Array<ArrayBuffer> })
}

/** The answers to a batch, which is sent again while core is too slow on a busy machine. None if it is rejected as a whole. */
function answersTo(body: Uint8Array, token = system.gatewayToken): Promise<{ status: number; results: BatchAnswer[] }> {
  const isUnavailable = (result: BatchAnswer) =>
    'error' in result && (result.error.data as CoreErrorData).appError?.code === 'S002'
  return until('answers other than S002', async () => {
    const answer = await sendBatch(system.coreUrl, token, body)
    const results = answer.status === 200 ? (unpackBatch(answer.body) as BatchAnswer[]) : []
    return !results.some(isUnavailable) && { status: answer.status, results }
  })
}

const order = () => transferOrder(system)

function callInput() {
  const { workspaceId, apiKey } = system
  return { workspaceId, caller: { apiKey, requestId: 'hostile' } }
}

/** A string in MessagePack. */
function packed(text: string): Buffer {
  const length = Buffer.alloc(5, 0xdb)
  length.writeUInt32BE(Buffer.byteLength(text), 1)
  return Buffer.concat([length, Buffer.from(text)])
}

test('a decimal that would take minutes to parse is rejected', async () => {
  // A Decimal in a batch is an extension of type 1 that contains a string.
  const hexadecimal = packed(`0x${'f'.repeat(1_000_000)}`)
  const body = Buffer.concat([Buffer.from([0x91, 0xd4, 0x01, 0x00]), hexadecimal])
  const rejected = await sendBatch(system.coreUrl, system.gatewayToken, body)
  expect(rejected.status).toBe(400)

  const superjson = { json: `0x${'f'.repeat(1_000_000)}`, meta: { values: [['custom', 'Decimal']] } }
  const answer = await post('/trpc/transfers.create', JSON.stringify(superjson), 'application/json')
  expect(answer.status).toBe(400)
})

test('calls that are too large for one batch are sent in several, so small calls do not fail with large ones', async () => {
  const create = (changes: object = {}) =>
    retryUnavailable(() =>
      system.gatewayClient.transfers.create.mutate({ ...callInput(), order: { ...order(), ...changes } }),
    )
  const large = Array.from({ length: 300 }, (_, at) => create({ sourceWalletId: `${at}${'w'.repeat(65_000)}` }))
  const small = create()
  expect((await Promise.allSettled(large)).every(({ status }) => status === 'rejected')).toBe(true)
  for (const call of large) await expect(call).rejects.toThrow('W001')
  expect(await small).toMatchObject({ status: 'COMPLETED', amount: '0.01' })
})

test.each([new Date(8.64e15), new Date(-8.64e15), new Date('-000001-12-31T00:00:00Z')])(
  'a time that PostgreSQL cannot store (%s) is a bad request',
  async time => {
    const { admin, apiKey } = system
    for (const call of [
      () => system.gatewayClient.access.markUsed.mutate({ uses: [{ apiKey, usedAt: time }] }),
      () => admin.apiKeys.setExpiry.mutate({ apiKey, expiresAt: time }),
    ])
      await expect(call()).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
    for (const filter of [{ createdFrom: time }, { createdTo: time }]) {
      await system.gatewayClient.transfers.list.query({ ...callInput(), filter })
      await system.gatewayClient.wallets.list.query({ ...callInput(), filter })
      await system.gatewayClient.wallets.flows.query({ ...callInput(), walletId: system.wallets[0]!.walletId, filter })
    }
  },
)

test('a text that PostgreSQL cannot store is rejected before it is posted', async () => {
  const { workspaceId, apiKey } = system
  for (const caller of [
    { apiKey, requestId: 'a\u0000' },
    { apiKey, requestId: 'a', address: '\u0000' },
  ]) {
    const call = system.gatewayClient.transfers.create.mutate({ workspaceId, caller, order: order() })
    await expect(call).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
  }
})

test('a filter that PostgreSQL cannot store is a bad request, or finds nothing', async () => {
  const { admin } = system
  const text = 'a\u0000'
  for (const call of [
    () => admin.audit.list.query({ actor: text }),
    () => admin.audit.list.query({ action: text }),
    () => admin.audit.list.query({ target: text }),
    () => admin.operators.list.query({ after: text }),
  ])
    await expect(call()).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
  for (const time of [new Date(8.64e15), new Date(-8.64e15), new Date('-000001-12-31T00:00:00Z')])
    await admin.audit.list.query({ from: time, to: time })
})

test('core survives a caller that disconnects while it sends a batch', async () => {
  const { socket } = await openBatches(system.coreUrl, system.gatewayToken)
  socket.write(packFrame(frameKinds.batch, 1, Buffer.alloc(2_000_000)).subarray(0, 1_000_000))
  await until('core reads the body', async () => (await readMetric(system.coreUrl, 'core_body_bytes')) > 0)
  socket.resetAndDestroy()
  await until('its memory is free', async () => (await readMetric(system.coreUrl, 'core_body_bytes')) === 0)
})

test('corrupted batches are rejected or answered, and the next batch works', async () => {
  const random = new Random(seed)
  const { apiKey } = system
  const good = packBatch([
    { path: 'transfers.create', type: 'mutation', input: { ...callInput(), order: order() } },
    { path: 'wallets.list', type: 'query', input: { ...callInput(), filter: { createdFrom: new Date() } } },
    { path: 'access.lookup', type: 'query', input: { apiKeys: [apiKey] } },
  ])
  const typeBytes = [0x40, 0x72, 0x90, 0xc1, 0xc7, 0xc9, 0xd4, 0xd6, 0xdb, 0xdd, 0xdf, 0xff, 0x81, 0x69, 0x70, 0x62]
  const intact = packBatch([
    { path: 'wallets.get', type: 'query', input: { ...callInput(), walletId: system.wallets[2]!.walletId } },
  ])
  for (let round = 0; round < 150; round++) {
    const body = Buffer.from(good)
    for (let changes = 1 + random.int(6); changes > 0; changes--)
      body[random.int(body.length)] = random.chance(0.5) ? random.pick(typeBytes) : random.int(256)
    const sent = random.chance(0.2) ? body.subarray(0, random.int(body.length)) : body
    const input = `SEED=${seed} ${sent.toString('hex')}`
    const { status, results } = await answersTo(sent, random.pick([system.gatewayToken, system.serviceToken]))
    expect([200, 400, 413], input).toContain(status)
    for (const result of results)
      if ('error' in result) expect((result.error.data as { httpStatus: number }).httpStatus, input).toBeLessThan(500)
    const [result] = (await answersTo(intact)).results as { data: { balance: object } }[]
    expect(String(result?.data.balance), input).toBe('500')
  }
})

describe('bodies that are made to be expensive', () => {
  /** A core with the heap of a small container, and a gateway in front of it. */
  let core: Program
  let internalUrl: string
  let service: CoreClient
  beforeAll(async () => {
    core = await system.startCore({ NODE_OPTIONS: '--max-old-space-size=256' })
    const gateway = await system.startGateway({ CORE_URL: core.url })
    internalUrl = gateway.internalUrl
    service = createCoreClient({ url: core.url, token: system.serviceToken })
  })
  afterAll(() => service.close())

  const send = (url: string, path: string, body: Uint8Array | string, type: string, token: string) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': type },
      body: body as Uint8Array<ArrayBuffer>,
    })
  const readBalance = () =>
    service.wallets.balance.query({
      workspaceId: system.workspaceId,
      caller: { requestId: 'victim' },
      walletId: system.wallets[2]!.walletId,
    })

  /** Repeats an attack until another caller has been served four times. */
  async function serveDuring(attack: () => Promise<unknown>): Promise<void> {
    let isOver = false
    const attacks = async () => {
      do await attack()
      while (!isOver)
    }
    const serve = async () => {
      for (let served = 0; served < 4; served++)
        expect(String((await retryUnavailable(readBalance)).balance)).toBe('500')
    }
    await Promise.all([attacks(), serve().finally(() => (isOver = true))])
    expect(core.process.signalCode).toBe(null)
    await until(
      'the memory for bodies is free again',
      async () => (await readMetric(core.url, 'core_body_bytes')) === 0,
    )
  }

  test.each(['core', 'the internal listener of a gateway'])(
    'millions of empty maps under the token of a courier are not decoded, and others are served: sent to %s',
    async target => {
      const outcomes: Outcomes = {}
      await serveDuring(async () => {
        const attack = { connections: 4, bytes: 16 * 2 ** 20 }
        const url = target === 'core' ? core.url : internalUrl
        for (const [outcome, count] of Object.entries(await sendElementBombs(url, system.courierToken, attack)))
          outcomes[outcome] = (outcomes[outcome] ?? 0) + count
      })
      // Core answers before it has read the body, and the reset of the connection may overtake that answer.
      expect(['413', '504', 'closed']).toEqual(expect.arrayContaining(Object.keys(outcomes)))
    },
  )

  test('as many values as a courier may send do not delay the calls of others, on however many connections', async () => {
    const held = Array.from({ length: 50 }, () => ({}))
    const calls: BatchCall[] = Array.from({ length: 130 }, () => ({
      path: 'courier.lease',
      type: 'mutation',
      input: { size: 'x', held },
    }))
    const body = packBatch(calls)
    const statuses = new Set<number>()
    await serveDuring(async () => {
      const answers = await Promise.all(
        Array.from({ length: 32 }, () => sendBatch(core.url, system.courierToken, body)),
      )
      for (const { status } of answers) statuses.add(status)
    })
    // Those that were not answered had to give way to others.
    expect([200, 503]).toEqual(expect.arrayContaining([...statuses]))
    expect(statuses).toContain(200)
  })

  test.each([
    ['courier', 131_072, 8_192],
    ['funding', 262_144, 16_384],
    ['admin', 1_048_576, 32_768],
    ['service', 2_097_152, 32_768],
    ['gateway', 2_097_152, 32_768],
  ] as const)('a body of a token of the role %s has at most %i bytes and %i values', async (role, bytes, values) => {
    const token = system[`${role}Token`]
    const array = (count: number) => {
      const body = Buffer.alloc(5 + count, 0xc0)
      body[0] = 0xdd
      body.writeUInt32BE(count, 1)
      return body
    }
    const json = (count: number) => `[${'1,'.repeat(count - 2)}1]`
    const path = '/trpc/courier.report'
    for (const [body, isWithin] of [
      [array(values - 1), true],
      [array(values), false],
    ] as const)
      expect((await sendBatch(core.url, token, body)).status).toBe(isWithin ? 400 : 413)
    expect((await send(core.url, path, json(values + 1), 'application/json', token)).status).toBe(413)
    expect((await send(core.url, path, json(values), 'application/json', token)).status).not.toBe(413)
    const long = Buffer.concat([Buffer.from([0xdb, 0, 0, 0, 0]), Buffer.alloc(bytes - 4, 'x')])
    long.writeUInt32BE(long.length - 5, 1)
    expect((await sendBatch(core.url, token, long.subarray(0, bytes))).status).toBe(400)
    expect((await sendBatch(core.url, token, long)).status).toBe(413)
  })

  test.each([
    ['a typed array of eight gigabytes', { json: 1e9, meta: { values: [['typed-array', 'Float64Array']] } }],
    ['an integer of a million digits', { json: '9'.repeat(100_000), meta: { values: ['bigint'] } }],
    ['a regular expression', { json: '/(a+)+$/', meta: { values: ['regexp'] } }],
    ['a class', { json: {}, meta: { values: [['class', 'x']] } }],
    ['a prototype', { json: { a: 1 }, meta: { values: { '__proto__.polluted': ['Date'] } } }],
    ['a constructor', { json: { a: 1 }, meta: { values: { 'constructor.prototype.polluted': ['Date'] } } }],
    ['types that are nested for ever', { json: 1, meta: { values: 'aa' } }],
    ['no type', { json: 1, meta: { values: [null] } }],
    ['no types of its values', { json: {}, meta: { values: ['undefined', null] } }],
    [
      'a long path that many others share',
      {
        json: {},
        meta: {
          v: 1,
          values: {
            [`a${'.a'.repeat(50_000)}`]: Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [at, ['Date']])),
          },
        },
      },
    ],
    ['values that are deep in others', { json: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }],
    ['nothing', null],
  ])('superjson is rejected without being decoded: %s', async (_, body) => {
    for (const [path, text] of [
      ['courier.report', JSON.stringify(body)],
      ['courier.report?batch=1', JSON.stringify({ 0: body })],
    ] as const) {
      const answer = await send(core.url, `/trpc/${path}`, text, 'application/json', system.courierToken)
      expect([400, 413]).toContain(answer.status)
      // Not the message of a TypeError of V8.
      expect(await answer.text()).not.toContain('Cannot ')
    }
    expect(Object.prototype).not.toHaveProperty('polluted')
    expect(String((await readBalance()).balance)).toBe('500')
  })

  test('objects that occur twice in an input are accepted, as tRPC clients send them', async () => {
    const createdFrom = new Date(0)
    const caller = { requestId: 'twice' }
    const { workspaceId } = system
    const input = { workspaceId, caller, filter: { createdFrom, createdTo: createdFrom } }
    const text = JSON.stringify(serialization.serialize(input))
    expect(text).toContain('referentialEqualities')
    const query = `input=${encodeURIComponent(text)}`
    const headers = { authorization: `Bearer ${system.serviceToken}` }
    const answer = await fetch(`${core.url}/trpc/wallets.list?${query}`, { headers })
    expect(answer.status).toBe(200)
  })

  test.each(['multipart/form-data; boundary=x', 'application/octet-stream', 'text/plain', ''])(
    'a body of another type is not read: %s',
    async type => {
      const answer = await send(core.url, '/trpc/courier.report', '--x--', type, system.courierToken)
      expect(answer.status).toBe(415)
    },
  )

  test('slow bodies of one token do not keep the bodies of others out', async () => {
    const { hostname, port } = new URL(core.url)
    const slow = packFrame(frameKinds.batch, 1, Buffer.alloc(131_072, 'x')).subarray(0, -1)
    const sent = Buffer.concat([Buffer.from(upgradeText(system.courierToken)), slow])
    const sockets = await Promise.all(
      Array.from({ length: 400 }, async () => {
        const socket = connect(Number(port), hostname)
        socket.on('error', () => {})
        await new Promise(resolve => socket.write(sent, resolve))
        return socket
      }),
    )
    const used = await until('bodies have arrived', () => readMetric(core.url, 'core_body_bytes'))
    expect(used).toBeLessThan(32 * 2 ** 20)
    expect(String((await retryUnavailable(readBalance)).balance)).toBe('500')
    for (const socket of sockets) socket.destroy()
    await until(
      'the memory for bodies is free again',
      async () => (await readMetric(core.url, 'core_body_bytes')) === 0,
    )
  })
})

test('core has logged no error, and the ledger is sound', async () => {
  for (const core of system.cores) {
    expect(core.process.exitCode).toBe(null)
    expect(core.output()).not.toMatch(/"level":(50|60)/)
  }
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
