import { connect } from 'node:net'
import { signedHeaders } from '@workspace-wallet/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { batchPath, type Credentials, call, createPath } from './setup/client.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createKey } from './setup/workspaces.ts'

/**
 * Random requests that no client library sends, others in every run. Every answer is the envelope, none is a 5xx, only valid
 * requests move money, and no key exceeds its scopes.
 */

/** Of paths, of bodies and of headers. */
const cases = 500
const seed = chooseSeed()

let system: System
let reader: Credentials
beforeAll(async () => {
  console.log(`hostile input: SEED=${seed}`)
  system = await startSystem()
  reader = await createKey(system, { scopes: ['wallet:read'] })
})
afterAll(() => system.stop())

type Sent = { method: string; target: string; headers: [string, string][]; body: Buffer; isChunked?: boolean }
type Received = { status: number; body: string; raw: string }

/** A request with a valid signature: only its content is hostile. */
async function signed(credentials: Credentials, method: string, target: string, body: Buffer): Promise<Sent> {
  const headers: [string, string][] = Object.entries(await signedHeaders(credentials, { method, target, body }))
  if (body.length > 0) headers.push(['Content-Type', 'application/json'])
  return { method, target, headers, body }
}

function bytesOf({ method, target, headers, body, isChunked }: Sent): Buffer {
  const framing: [string, string][] = isChunked
    ? [['Transfer-Encoding', 'chunked']]
    : body.length > 0 || method === 'POST'
      ? [['Content-Length', String(body.length)]]
      : []
  const lines = [['Host', 'x'], ['Connection', 'close'], ...framing, ...headers].map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  if (!isChunked) return Buffer.concat([head, body])
  const middle = body.length >> 1
  const chunks = [body.subarray(0, middle), body.subarray(middle)].filter(chunk => chunk.length > 0)
  const framed = chunks.flatMap(chunk => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])
  return Buffer.concat([head, ...framed, Buffer.from('0\r\n\r\n')])
}

function exchange(bytes: Buffer): Promise<Received> {
  const { hostname, port } = new URL(system.baseUrl)
  return new Promise((resolve, reject) => {
    const received: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    const finish = () => {
      const raw = Buffer.concat(received).toString('utf8')
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(raw)?.[1])
      resolve({ status, body: raw.slice(raw.indexOf('\r\n\r\n') + 4), raw })
    }
    socket.on('data', chunk => received.push(chunk))
    socket.on('close', finish)
    socket.on('error', error => (received.length > 0 ? finish() : reject(error)))
    // It only ends what hangs.
    socket.setTimeout(100_000, () => socket.destroy(new Error('no answer')))
  })
}

/** The answer to a request, which is sent again while a part of the service is too slow on a busy machine. */
function answerTo(bytes: Buffer): Promise<Received> {
  return until('another answer than S002', async () => {
    const received = await exchange(bytes)
    return received.status !== 503 && received
  })
}

/** Sends random requests, eight at a time. A failure shows the seed and the bytes. */
async function sendAll(
  make: (random: Random) => Promise<Sent>,
  check: (received: Received, sent: Sent) => void,
): Promise<void> {
  const random = new Random(seed)
  const requests: Sent[] = []
  // One after the other, so that a seed gives the same requests again.
  while (requests.length < cases) requests.push(await make(random))
  await inParallel(8, requests, async request => {
    const bytes = bytesOf(request)
    const sent = `SEED=${seed} ${JSON.stringify(bytes.toString('latin1').slice(0, 2000))}`
    const received = await answerTo(bytes).catch(error => {
      throw new Error(`${sent}: ${error.message}`)
    })
    const about = `${sent} → ${received.raw.slice(0, 500)}`
    expect(received.status, about).toBeGreaterThanOrEqual(200)
    expect(received.status, about).toBeLessThan(500)
    const envelope = JSON.parse(received.body)
    const fields = ['version', 'timestamp', 'success', 'code', 'message', 'data']
    expect(Object.keys(envelope).slice(0, 6), about).toEqual(fields)
    expect(envelope.success, about).toBe(received.status === 200)
    check(received, request)
  })
}

const odd = [
  '',
  ' ',
  '\t',
  '\u0000',
  '%00',
  '%2e%2e',
  '..',
  '.',
  '%',
  '%zz',
  '%ff',
  '%c0%af',
  '%2F',
  '\\',
  ';',
  '?',
  '#',
  '*',
  "'",
  '"',
  '<',
  '😀',
  'é',
  '--',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  'NaN',
  '-1',
  '1e309',
  '9'.repeat(400),
  'x'.repeat(3000),
]

const words = [...new Set(endpoints.flatMap(({ path }) => path.split('/').filter(word => /^[a-z-]+$/.test(word))))]
const queryNames = [
  ...new Set(endpoints.flatMap(({ query }) => Object.keys(query?.parameters ?? {}))),
  '__proto__',
  'toString',
]

function hostileSegment(random: Random): string {
  const segment = random.pick([
    () => random.pick(odd),
    () => system.wallets[0]!.walletId,
    () => random.pick(words),
    () => random.text('abcXYZ019._~%-+:@!$&=', 30),
    () => system.wallets[0]!.walletId.slice(0, random.int(30)),
  ])()
  // Characters that are invalid in a request line would only test Node's HTTP parser.
  return Buffer.from([...segment].filter(char => char > ' ' && char !== '#').join('')).toString('latin1')
}

test('random paths and queries get the envelope, and only resources of the key', async () => {
  const own = new Set(system.wallets.map(({ walletId }) => walletId))
  await sendAll(
    random => {
      const known = random.pick([
        '/api/v1/wallets',
        '/api/v1/transfer/query/orders',
        '/api/v1/hold/query/holds',
        '/api/v1/event/query/events',
        '/api/v1/webhook/query/webhooks',
        '/api/v1',
        `/api/v1/wallets/${system.wallets[0]!.walletId}/flows`,
      ])
      const tail = Array.from({ length: random.int(4) }, () => `/${hostileSegment(random)}`).join('')
      const values = [
        '0',
        '1',
        '-1',
        '1e3',
        '9007199254740991',
        '9007199254740992',
        'createdAt,desc',
        'amount,asc',
        'balance,asc',
        'USD',
        'usd',
        'ACTIVE',
        '2026-01-01',
        '2026-02-30',
        '2026-01-01T00:00:00Z',
        '0000-01-01',
        '9999-12-31T23:59:59.999999999%2B14:00',
        'wal_',
        'trf_0',
        'IN',
        'DEPOSIT',
      ]
      const query = Array.from(
        { length: random.int(4) },
        () =>
          `${random.chance(0.9) ? random.pick(queryNames) : hostileSegment(random)}=${random.chance(0.7) ? random.pick(values) : hostileSegment(random)}`,
      )
      return signed(reader, 'GET', known + tail + (query.length > 0 ? `?${query.join('&')}` : ''), Buffer.alloc(0))
    },
    ({ body, status }, { target }) => {
      const envelope = JSON.parse(body)
      if (status !== 200) return
      expect(target, 'a key of wallet:read').not.toMatch(/\/(transfer|hold|event)\//)
      for (const { walletId } of envelope.data.content ?? []) expect(own.has(walletId)).toBe(true)
    },
  )
})

function hostileJson(random: Random, depth = 0): unknown {
  return random.pick<() => unknown>([
    () => random.pick([null, true, 0, -0, 1e308, 1.5, '', 'text', '1.00', '\u0000', '\ud800', '😀'.repeat(100)]),
    () => random.text('0123456789.eE+-', 50),
    () => (depth > 3 ? [] : [hostileJson(random, depth + 1)]),
    () =>
      depth > 3
        ? {}
        : { [random.pick(['amount', '__proto__', 'constructor', 'toString', 'x'])]: hostileJson(random, depth + 1) },
    () => random.pick(odd),
  ])()
}

/** A valid body of each command. */
function validBody(path: string, bizId: string): Record<string, unknown> {
  const order = transferOrder(system, { bizId })
  const { sourceWalletId: walletId, amount, currency } = order
  const [, , , , , command] = path.split('/')
  if (path === batchPath) return { ...order, bizId }
  if (command === 'reverse') return { reversesTransferId: 'original', amount, currency, bizId }
  if (command === 'release') return { holdId: 'hold' }
  if (command === 'change-status') return { walletId, status: 'ACTIVE' }
  if (path === createPath) return order
  if (path.includes('/webhook/'))
    return command === 'create' ? { url: 'https://receiver.example/', bizId } : { webhookId: 'hostile' }
  return path.includes('/hold/')
    ? { walletId, amount, currency, expiresInSeconds: 60, bizId }
    : { name: 'Hostile', currency, bizId }
}

/** A hostile variant of a valid body. */
function hostileBody(random: Random, body: Record<string, unknown>, fields: readonly string[]): Buffer {
  const text = JSON.stringify(body)
  const makeBody = random.pick<() => Buffer>([
    () =>
      Buffer.from(
        JSON.stringify({ ...body, [random.pick([...fields, 'extra', 'hasOwnProperty'])]: hostileJson(random) }),
      ),
    () => Buffer.from(JSON.stringify(hostileJson(random)) ?? ''),
    () => Buffer.from(text.slice(0, random.int(120))),
    () =>
      Buffer.from(
        text.replace('{', `{"${random.pick([...fields, '__proto__'])}":${JSON.stringify(hostileJson(random))},`),
      ),
    () => Buffer.from(`${'['.repeat(random.int(30_000))}${text}`),
    () => {
      const bytes = Buffer.from(text)
      for (let flips = random.int(5); flips >= 0; flips--) bytes[random.int(bytes.length)] = random.int(256)
      return bytes
    },
    () => Buffer.from(Array.from({ length: random.int(200) }, () => random.int(256))),
    () => Buffer.from(JSON.stringify({ ...body, amount: random.text('0123456789.', 45) })),
  ])
  return makeBody()
}

const createWalletPath = '/api/v1/wallet/command/create'
const commands = endpoints.filter(({ method }) => method === 'POST')
const optionalFields = ['bizId', 'remark', 'reference', 'holdId', 'holdRemainder', 'reversesTransferId']
let bodies = 0

/** A command with a hostile body. That of a batch is an item. */
function hostileCommand(random: Random): Promise<Sent> {
  const { path } = random.pick(commands)
  const valid = validBody(path, `hostile-${++bodies}`)
  const body = hostileBody(random, valid, [...Object.keys(valid), ...optionalFields])
  const isItem = path === batchPath && random.chance(0.8)
  const bytes = isItem ? Buffer.concat([Buffer.from('{"transfers":['), body, Buffer.from(']}')]) : body
  return signed(system, 'POST', path, bytes)
}

test('random bodies get the envelope, and create or lose no money', async () => {
  await sendAll(
    async random => ({ ...(await hostileCommand(random)), isChunked: random.chance(0.3) }),
    ({ status, body }, sent) => {
      if (status !== 200) return
      const { data } = JSON.parse(body)
      // A changed byte can make another currency of USD. A wallet in it is valid.
      const expected = sent.target === createWalletPath ? JSON.parse(sent.body.toString()).currency : 'USD'
      for (const { webhookId, currency } of data.transfers ?? [data]) if (!webhookId) expect(currency).toBe(expected)
    },
  )
  const { workspaceId, admin } = system
  const dollars = system.wallets.filter(({ currency }) => currency === 'USD')
  let cents = 0n
  for (const { walletId } of dollars) {
    const caller = { requestId: 'sum' }
    const { balance } = await admin.wallets.balance.query({ workspaceId, caller, walletId })
    cents += BigInt(balance.times(100).toFixed())
  }
  expect(cents, 'sum of all balances').toBe(125_000n)
})

test('random headers and methods get the envelope', async () => {
  await sendAll(
    async random => {
      const request = await signed(system, 'GET', '/api/v1/wallets', Buffer.alloc(0))
      const names = [
        'X-Api-Key',
        'X-Timestamp',
        'X-Nonce',
        'X-Signature',
        'X-LOCALE',
        'X-Forwarded-For',
        'Content-Type',
        'Accept',
        'Cookie',
        'Expect',
        'X-HTTP-Method-Override',
        'Content-Encoding',
      ]
      for (let changes = 1 + random.int(3); changes > 0; changes--) {
        const value = random.pick([
          () => random.text('\u0021\u007e\u00e9\u00ff abcXYZ0129=+/,;:', 200),
          () => Buffer.from(random.pick(odd.filter(text => text !== '\u0000'))).toString('latin1'),
          () => request.headers.find(([name]) => name === 'X-Nonce')?.[1] ?? '',
          () => 'zh-Hans-CN-x-private'.repeat(random.int(20)),
        ])()
        const name = random.pick(names)
        if (random.chance(0.5)) request.headers.push([name, value])
        else request.headers = request.headers.map(([each, old]) => [each, each === name ? value : old])
        if (random.chance(0.2)) request.headers.splice(random.int(request.headers.length), 1)
      }
      if (random.chance(0.2))
        request.method = random.pick(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE'])
      return request
    },
    ({ status }, { method }) => {
      if (status === 200) expect(method).toBe('GET')
    },
  )
})

test('the programs have logged no error, and the ledger is sound', async () => {
  expect((await call(system, 'GET', '/api/v1/wallets')).status).toBe(200)
  for (const program of [...system.cores, ...system.gateways]) {
    expect(program.process.exitCode).toBe(null)
    expect(program.output()).not.toMatch(/"level":(50|60)/)
  }
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
