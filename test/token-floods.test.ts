import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import {
  type AccessPosition,
  type BatchCall,
  batchCallLimit,
  mintId,
  packBatch,
  unpackBatch,
  uuidFromId,
} from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendBatch } from './setup/batches.ts'
import { call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { logLines } from './setup/log-lines.ts'
import { findProcedures } from './setup/procedures.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Whoever has a service token cannot keep core from serving the public API, with however many calls. */

let system: System
/** Where the changes of keys end. */
let position: AccessPosition
beforeAll(async () => {
  system = await startSystem()
  const [place] = (await system.gatewayClient.access.changes.query({ since: [] })).places
  position = { revision: place!.revision, epoch: place!.epoch }
})
afterAll(() => system.stop())

const caller = { requestId: 'flood' }
const connections = 4

/** Sends full batches of a call on some connections until the API has been served, and returns the codes of the answers. */
async function flood(token: string, makeCall: () => BatchCall, served: Promise<unknown>): Promise<Set<string>> {
  const codes = new Set<string>()
  let isOver = false
  const over = served.finally(() => {
    isOver = true
  })
  const sendBatches = async () => {
    do {
      const body = packBatch(Array.from({ length: batchCallLimit }, makeCall))
      const answered = await sendBatch(system.coreUrl, token, body)
      expect(answered.status).toBe(200)
      for (const answer of unpackBatch(answered.body) as Record<string, never>[])
        codes.add('error' in answer ? ((answer.error as { message: string }).message ?? '') : 'ok')
    } while (!isOver)
  }
  await Promise.all([over, ...Array.from({ length: connections }, sendBatches)])
  return codes
}

/** Calls of a client of the public API, one after the other, until each of them is served. */
async function useApi(): Promise<void> {
  const [source, target] = system.wallets
  for (let count = 0; count < 3; count++) {
    await serve('GET', `/api/v1/wallets/${source!.walletId}/balance`)
    const order = { bizId: randomUUID(), amount: '0.01', currency: 'USD' }
    await serve('POST', createPath, { ...order, sourceWalletId: source!.walletId, targetWalletId: target!.walletId })
  }
}

/** Repeats a call that is answered with S002, as clients do: how long a call takes depends on the machine. */
function serve(method: string, target: string, body?: unknown): Promise<boolean> {
  return until(`${method} ${target} is served`, async () => {
    const { status } = await call(system, method, target, body)
    expect([200, 503]).toContain(status)
    return status === 200
  })
}

const floods: [string, () => string, () => BatchCall][] = [
  [
    'lists of webhooks, with the token of a service',
    () => system.serviceToken,
    () => ({
      path: 'webhooks.list',
      type: 'query',
      input: { workspaceId: system.workspaceId, caller, page: 0, size: 10, sort: [] },
    }),
  ],
  [
    'deposits, with the token of the funding service',
    () => system.fundingToken,
    () => ({
      path: 'wallets.deposit',
      type: 'mutation',
      input: { workspaceId: system.workspaceId, walletId: system.wallets[0]!.walletId, amount: '1.00', bizId: 'again' },
    }),
  ],
  [
    'questions for the generations of nonces, with the token of a gateway',
    () => system.gatewayToken,
    () => ({ path: 'access.latestNonceGenerations', type: 'query', input: undefined }),
  ],
  [
    'waits for changes of keys, with the token of a gateway',
    () => system.gatewayToken,
    () => ({ path: 'access.changes', type: 'query', input: { since: [position] } }),
  ],
  [
    'questions for all changes of keys, with the token of a gateway',
    () => system.gatewayToken,
    () => ({ path: 'access.changes', type: 'query', input: { since: [] } }),
  ],
  [
    'uses of keys, with the token of a gateway',
    () => system.gatewayToken,
    () => ({ path: 'access.markUsed', type: 'mutation', input: { uses: [] } }),
  ],
  [
    'leases, with the token of a courier',
    () => system.courierToken,
    () => ({ path: 'courier.lease', type: 'mutation', input: { size: 10, held: [] } }),
  ],
]

test.each(floods)('a flood of %s does not stop the API', async (_, token, makeCall) => {
  await flood(token(), makeCall, useApi())
})

const unknown = () => ({ workspaceId: mintId('workspace'), caller })
const page = { page: 0, size: 10, sort: [] }
test.each<[string, () => BatchCall]>([
  ['pages of events', () => ({ path: 'events.read', type: 'query', input: { ...unknown(), after: 0, size: 500 } })],
  ['lists', () => ({ path: 'wallets.list', type: 'query', input: { ...unknown(), ...page } })],
  [
    'searches',
    () => ({ path: 'transfers.list', type: 'query', input: { ...unknown(), ...page, filter: { reference: 'x' } } }),
  ],
  [
    'changes of wallets',
    () => ({ path: 'wallets.create', type: 'mutation', input: { ...unknown(), name: 'x', currency: 'USD' } }),
  ],
])(
  'a flood of %s of ever new workspaces that do not exist keeps none of another workspace waiting',
  async (_, makeCall) => {
    const useApi = async () => {
      for (let count = 0; count < 10; count++)
        for (const target of ['event/query/events/0', 'wallets', 'transfer/query/orders?reference=x', ''])
          expect((await (target === '' ? createWallet() : call(system, 'GET', `/api/v1/${target}`))).body.code).toBe(
            '2000',
          )
    }
    const codes = await flood(system.serviceToken, makeCall, useApi())
    expect([...codes].filter(code => !code.startsWith('S002'))).toEqual(['GA2032 WORKSPACE_NOT_FOUND'])
  },
)

const createWallet = () =>
  call(system, 'POST', '/api/v1/wallet/command/create', { name: 'Wallet', currency: 'USD', bizId: randomUUID() })

test('requests without a body, each with many calls that are rejected, do not stop the API', async () => {
  const calls = Array.from({ length: 100 }, () => 'session.whoami').join()
  const get = `GET /trpc/${calls}?batch=1 HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer ${system.courierToken}\r\n\r\n`
  const { port } = new URL(system.coreUrl)
  const statuses = new Set<string>()
  const sockets = Array.from({ length: 100 }, () => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    // One more for each answer, so that some are always waiting.
    socket.on('data', piece => {
      for (const [, status] of String(piece).matchAll(/^HTTP\/1\.1 (\d+)/gm)) {
        statuses.add(status!)
        socket.write(get)
      }
    })
    socket.write(get.repeat(4))
    return socket
  })
  try {
    await until('core has rejected calls', async () => {
      const metrics = await (await fetch(`${system.coreUrl}/metrics`)).text()
      return /path="session\.whoami",code="FORBIDDEN"\} \d{4}/.test(metrics)
    })
    await useApi()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  // Few may wait, so that the calls of others with this token are not behind all of them.
  expect([...statuses].sort()).toEqual(['403', '503'])
})

test('calls that a token must not make, that are invalid or that do not exist, are sampled in the log, and all counted', async () => {
  const core = await system.startCore()
  const forbidden = (await findProcedures()).filter(({ roles }) => roles && !roles.includes('courier'))
  const whoami = { path: 'session.whoami', type: 'query', input: undefined } as const
  const refused: BatchCall[] = Array(batchCallLimit).fill(whoami)
  for (const [index, { path, type }] of forbidden.entries()) refused[index] = { path, type, input: undefined }
  const invalid: BatchCall[] = Array(batchCallLimit).fill({ path: 'courier.report', type: 'mutation', input: 7 })
  const unknown = Array.from(refused, (_, index): BatchCall => ({ path: `wallets.x${index}`, type: 'query', input: 7 }))
  for (const calls of [refused, invalid, unknown])
    expect((await sendBatch(core.url, system.courierToken, packBatch(calls))).status).toBe(200)
  const counted = await countedCalls(core)
  const { length } = refused.filter(({ path }) => path === whoami.path)
  expect(counted('session.whoami', 'FORBIDDEN')).toBe(length)
  expect(counted('courier.report', 'BAD_REQUEST')).toBe(batchCallLimit)
  expect(counted('unknown', 'NOT_FOUND')).toBe(batchCallLimit)
  await core.stop()
  // They would take the place of lines about others if each procedure were sampled for itself.
  expect(forbidden.length).toBeGreaterThan(50)
  const expected = [
    ['FORBIDDEN', forbidden[0]!.path, batchCallLimit],
    ['BAD_REQUEST', 'courier.report', batchCallLimit],
    ['NOT_FOUND', 'wallets.x0', batchCallLimit],
  ] as const
  for (const [code, path, calls] of expected) {
    const lines = logLines(core).filter(line => line.code === code)
    expect(lines.length).toBeLessThan(5)
    expect(lines[0]).toMatchObject({ caller: 'courier:c', path })
    expect(lines.reduce((sum, { count = 1 }) => sum + Number(count), 0)).toBe(calls)
  }
})

/** How many calls of a procedure core has answered with a code. */
async function countedCalls({ url }: { url: string }) {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return (path: string, code: string) =>
    Number(metrics.match(`core_call_duration_seconds_count{path="${path}",code="${code}"} (\\d+)`)?.[1])
}

test('requests and batches that no procedure can answer, and input that cannot be decoded, are logged, and counted once each', async () => {
  const core = await system.startCore()
  const request = async (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) => {
    const headers = { authorization: `Bearer ${system.courierToken}`, ...init.headers }
    return (await fetch(`${core.url}${path}`, { ...init, headers })).status
  }
  const post = (body: string, type = 'application/json') =>
    request('/trpc/courier.lease', { method: 'POST', headers: { 'content-type': type }, body })
  expect(await request('/trpc/wallets.other')).toBe(404)
  expect(await request('/trpc/courier.report')).toBe(405)
  expect(await request('/trpc/session.whoami', { method: 'PUT' })).toBe(405)
  expect(await post('{}', 'text/plain')).toBe(415)
  expect(await post(`"${'x'.repeat(200_000)}"`)).toBe(413)
  // Streams of several calls.
  const streamHeaders = [
    { 'trpc-accept': 'application/jsonl' },
    { accept: 'application/jsonl' },
    { accept: 'text/html, application/jsonl' },
  ]
  for (const headers of streamHeaders)
    expect(await request('/trpc/session.whoami,session.whoami?batch=1', { headers })).toBe(400)
  expect(await request('/batch')).toBe(400)
  for (const body of [Buffer.of(0xc1), packBatch([])])
    expect((await sendBatch(core.url, system.courierToken, body)).status).toBe(400)
  expect(await post('{"json":"1","meta":{"values":["bigint"]}}')).toBe(400)
  expect(await post('{')).toBe(400)
  const counted = await countedCalls(core)
  expect(counted('unknown', 'NOT_FOUND')).toBe(1)
  expect(counted('unknown', 'METHOD_NOT_SUPPORTED')).toBe(2)
  expect(counted('unknown', 'UNSUPPORTED_MEDIA_TYPE')).toBe(1)
  expect(counted('unknown', 'PAYLOAD_TOO_LARGE')).toBe(1)
  expect(counted('unknown', 'BAD_REQUEST')).toBe(streamHeaders.length + 3)
  expect(counted('courier.lease', 'BAD_REQUEST')).toBe(2)
  await core.stop()
  const lines = logLines(core).map(({ caller, code, path }) => ({ caller, code, path }))
  for (const [code, path] of [
    ['METHOD_NOT_SUPPORTED', 'courier.report'],
    ['UNSUPPORTED_MEDIA_TYPE', '/trpc/courier.lease'],
    ['BAD_REQUEST', '/trpc/session.whoami,session.whoami'],
    ['BAD_REQUEST', 'courier.lease'],
  ])
    expect(lines).toContainEqual({ caller: 'courier:c', code, path })
})

test.each(['TRACE', 'PUT', 'DELETE', 'OPTIONS'])('%s is no method of a call: 405', async method => {
  const { port } = new URL(system.coreUrl)
  const head = `${method} /trpc/session.whoami HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer ${system.courierToken}\r\n\r\n`
  const answer = await readAnswer(Number(port), head)
  expect(answer).toMatch(/^HTTP\/1\.1 405 /)
  expect(answer).toMatch(/^allow: GET, HEAD, POST\r$/im)
})

/** What core answers to a request on a connection of its own. */
async function readAnswer(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  const [piece] = await once(socket, 'data')
  socket.destroy()
  return String(piece)
}

test.each([
  ['transfers.trace', { name: 'a\u0000' }],
  ['fundings.get', { name: 'a\u0000' }],
  ['refusals.list', { apiKey: 'a\u0000' }],
  ['refusals.list', { requestId: 'a\u0000' }],
  ['refusals.list', { code: 'a\u0000' }],
  ['refusals.list', { address: 'a\u0000' }],
  ['members.list', { workspaceId: 'wsp_01h455vb4pex5vsknk084sn02q', after: 'a\u0000' }],
])('a null character, which PostgreSQL cannot store, is invalid input: %s %j', async (path, input) => {
  const { body } = await sendBatch(system.coreUrl, system.adminToken, packBatch([{ path, type: 'query', input }]))
  const [answer] = unpackBatch(body) as { error: { data: { code: string } } }[]
  expect(answer!.error.data.code).toBe('BAD_REQUEST')
})

test('a gateway cannot write when a key was used more often than once a minute, with a time in the future either', async () => {
  const { apiKey, database, gatewayClient } = system
  const versionOf = async () =>
    (await query(database.ownerUrl, 'select xmin from api_key where id = $1', [uuidFromId('apiKey', apiKey)]))[0]!.xmin
  const usedAt = new Date('9999-01-01')
  await gatewayClient.access.markUsed.mutate({ uses: [{ apiKey, usedAt }] })
  const version = await versionOf()
  await gatewayClient.access.markUsed.mutate({ uses: [{ apiKey, usedAt }] })
  expect(await versionOf()).toBe(version)
})

test('a gateway cannot write for each minute of the past that a key was used in it', async () => {
  const { apiKey, database, gatewayClient } = system
  await execute(database.ownerUrl, 'update api_key set last_used_at = null')
  const hourMs = 3_600_000
  for (let minute = 1; minute <= 3; minute++) {
    const usedAt = new Date(Date.now() - 2 * hourMs + minute * 60_000)
    await gatewayClient.access.markUsed.mutate({ uses: [{ apiKey, usedAt }] })
  }
  // The gateway writes later uses, of the tests before.
  const past = `select from api_key where last_used_at < now() - interval '1 hour'`
  expect(await query(database.ownerUrl, past)).toEqual([])
})
