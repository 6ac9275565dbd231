import { connect } from 'node:net'
import { type BatchAnswer, batchPath, packBatch, unpackBatch } from '@workspace-wallet/contract'
import { type CoreClient, type CoreErrorData, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../tools/services/random.ts'
import { retryUnavailable } from '../tools/services/retry.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** Hostile calls by the holder of a service token. Core rejects them, and serves everybody else. */

const seed = chooseSeed()

let system: System
let gateway: CoreClient
beforeAll(async () => {
  console.log(`hostile batches: SEED=${seed}`)
  system = await startSystem({ gateways: 0 })
  gateway = createCoreClient({ url: system.coreUrl, token: system.gatewayToken })
})
afterAll(async () => {
  await gateway.close()
  await system.stop()
})

function post(path: string, body: Uint8Array | string, type: string, token = system.gatewayToken): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type }
  return fetch(system.coreUrl + path, { method: 'POST', headers, body: body as Uint8Array<ArrayBuffer> })
}

const sendBatch = (body: Uint8Array, token?: string) => post(batchPath, body, 'application/vnd.msgpack', token)

/** The answers to a batch, which is sent again while core is too slow on a busy machine. None if it is rejected as a whole. */
function answersTo(body: Uint8Array, token?: string): Promise<{ status: number; results: BatchAnswer[] }> {
  const isUnavailable = (result: BatchAnswer) =>
    'error' in result && (result.error.data as CoreErrorData).appError?.code === 'S002'
  return until('answers other than S002', async () => {
    const answer = await sendBatch(body, token)
    const bytes = await answer.bytes()
    const results = answer.status === 200 ? (unpackBatch(bytes) as BatchAnswer[]) : []
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
  const rejected = await sendBatch(Buffer.concat([Buffer.from([0x91, 0xd4, 0x01, 0x00]), hexadecimal]))
  expect(rejected.status).toBe(400)

  const superjson = { json: `0x${'f'.repeat(1_000_000)}`, meta: { values: [['custom', 'Decimal']] } }
  const answer = await post('/trpc/transfers.create', JSON.stringify(superjson), 'application/json')
  expect(answer.status).toBe(400)
})

test('calls that are too large for one batch are sent in several, so small calls do not fail with large ones', async () => {
  const create = (changes: object = {}) =>
    retryUnavailable(() => gateway.transfers.create.mutate({ ...callInput(), order: { ...order(), ...changes } }))
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
      gateway.access.markUsed.mutate({ uses: [{ apiKey, usedAt: time }] }),
      admin.apiKeys.setExpiry.mutate({ apiKey, expiresAt: time }),
    ])
      await expect(call).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
    for (const filter of [{ createdFrom: time }, { createdTo: time }]) {
      await gateway.transfers.list.query({ ...callInput(), filter })
      await gateway.wallets.list.query({ ...callInput(), filter })
      await gateway.wallets.flows.query({ ...callInput(), walletId: system.wallets[0]!.walletId, filter })
    }
  },
)

test('a text that PostgreSQL cannot store is rejected before it is posted', async () => {
  const { workspaceId, apiKey } = system
  for (const caller of [
    { apiKey, requestId: 'a\u0000' },
    { apiKey, requestId: 'a', address: '\u0000' },
  ]) {
    const call = gateway.transfers.create.mutate({ workspaceId, caller, order: order() })
    await expect(call).rejects.toMatchObject({ data: { code: 'BAD_REQUEST' } })
  }
})

test('core survives a caller that disconnects while it sends a batch', async () => {
  const { hostname, port } = new URL(system.coreUrl)
  const head = `POST ${batchPath} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${system.gatewayToken}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`
  await new Promise<void>((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(head))
    // Core has started to read the body.
    socket.once('data', () => socket.resetAndDestroy())
    socket.once('close', () => resolve())
    socket.once('error', reject)
  })
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
  for (let round = 0; round < 500; round++) {
    const body = Buffer.from(good)
    for (let changes = 1 + random.int(6); changes > 0; changes--)
      body[random.int(body.length)] = random.chance(0.5) ? random.pick(typeBytes) : random.int(256)
    const sent = random.chance(0.2) ? body.subarray(0, random.int(body.length)) : body
    const input = `SEED=${seed} ${sent.toString('hex')}`
    const { status, results } = await answersTo(sent, random.pick([system.gatewayToken, system.serviceToken]))
    expect([200, 400], input).toContain(status)
    for (const result of results)
      if ('error' in result) expect((result.error.data as { httpStatus: number }).httpStatus, input).toBeLessThan(500)
    const [result] = (await answersTo(intact)).results as { data: { balance: object } }[]
    expect(String(result?.data.balance), input).toBe('500')
  }
})

test('core has logged no error, and the ledger is sound', async () => {
  expect(system.cores[0]!.process.exitCode).toBe(null)
  expect(system.cores[0]!.output()).not.toMatch(/"level":(50|60)/)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
