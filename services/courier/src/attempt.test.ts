import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http, { type RequestListener } from 'node:http'
import https from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import tls from 'node:tls'
import { parseAddressList } from '@workspace-wallet/runtime'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type Certificate, type KeyKind, makeCertificate, makeSlowChain } from '../../../test/setup/certificates.ts'
import { listen } from '../../../test/setup/listen.ts'
import { createTlsFlood, type FloodMessage } from '../../../test/setup/tls-flood.ts'
import { type AttemptOptions, attempt } from './attempt.ts'
import { resolveHost } from './resolve.ts'

let trusted: Certificate
let otherName: Certificate
let selfSigned: Certificate
let rsa: Certificate
beforeAll(async () => {
  trusted = await makeCertificate('localhost')
  otherName = await makeCertificate('other.example')
  selfSigned = await makeCertificate('localhost')
  rsa = await makeCertificate('localhost', 'rsa')
  tls.setDefaultCACertificates([...tls.getCACertificates(), trusted.cert, otherName.cert, rsa.cert])
})

const servers: Server[] = []
const sockets = new Set<Socket>()
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers.splice(0)) await new Promise(resolve => server.close(resolve))
  vi.unstubAllEnvs()
})

async function serve(server: Server): Promise<number> {
  servers.push(server)
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  return listen(server)
}
const serveHttp = (listener: RequestListener) => serve(http.createServer(listener))
const serveHttps = (options: tls.TlsOptions) =>
  serve(https.createServer(options, (_, response) => response.end()).on('tlsClientError', () => {}))
/** A server that sends these bytes when a request arrives, and nothing else. */
const serveBytes = (answer: (socket: Socket) => void) =>
  serve(createServer(socket => socket.once('data', () => answer(socket))))

const delivery = { position: 1, body: '{"é":1}', headers: { 'webhook-id': 'evt_1', 'webhook-signature': 'v1,a' } }
const loopback: AttemptOptions = {
  allowed: parseAddressList('127.0.0.0/8,::1/128'),
  resolve: resolveHost,
  timeoutMs: 15_000,
}
const to = (url: string, options: Partial<AttemptOptions> = {}, workspaceId = 'wsp_1') =>
  attempt({ url, workspaceId }, delivery, { ...loopback, ...options })

test('an event is posted with its headers, and 2xx is a success', async () => {
  const requests: { method?: string; url?: string; headers: http.IncomingHttpHeaders; body: string }[] = []
  const port = await serveHttp(async (request, response) => {
    const { method, url, headers } = request
    requests.push({ method, url, headers, body: Buffer.concat(await request.toArray()).toString() } as never)
    response.writeHead(204).end()
  })
  const outcome = await to(`http://localhost:${port}/hook?a=b`)
  expect(outcome).toEqual({ result: 'success', status: 204, retryAfterSeconds: null, code: null })
  expect(requests).toEqual([
    {
      method: 'POST',
      url: '/hook?a=b',
      headers: {
        ...delivery.headers,
        host: `localhost:${port}`,
        'content-type': 'application/json',
        'content-length': '8',
        'user-agent': 'workspace-wallet-courier',
        connection: 'close',
      },
      body: delivery.body,
    },
  ])
})

test.each([300, 301, 302, 307, 308, 400, 410, 500])('%d is a failure, and no redirect is followed', async status => {
  let requests = 0
  const port = await serveHttp((request, response) => {
    requests++
    response.writeHead(status, { location: `http://${request.headers.host}/other` }).end()
  })
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ result: 'status', status })
  expect(requests).toBe(1)
})

test('Retry-After of a failure is returned', async () => {
  const port = await serveHttp((_, response) => void response.writeHead(429, { 'retry-after': '90' }).end())
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 429, retryAfterSeconds: 90 })
})

test('an answer that never comes ends at the deadline', async () => {
  const port = await serveBytes(() => {})
  expect(await to(`http://127.0.0.1:${port}/`, { timeoutMs: 50 })).toMatchObject({ result: 'timeout', status: null })
})

test('headers that never end are cut off by their size, and at the deadline', async () => {
  const large = await serveBytes(socket => void socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}`))
  expect(await to(`http://127.0.0.1:${large}/`)).toMatchObject({ result: 'protocol', code: 'HPE_HEADER_OVERFLOW' })
  const slow = await serveBytes(socket => void socket.write('HTTP/1.1 200 OK\r\nx: y'))
  expect(await to(`http://127.0.0.1:${slow}/`, { timeoutMs: 50 })).toMatchObject({ result: 'timeout' })
})

test('blank lines that never end are cut off by their size', async () => {
  const port = await serveBytes(socket => {
    const write = () => {
      while (socket.write('\r\n'.repeat(1000)));
    }
    socket.on('drain', write)
    write()
  })
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ result: 'protocol', status: null })
})

test('a body without an end is not read: the connection is closed after the headers', async () => {
  const closed: Promise<unknown>[] = []
  const port = await serveBytes(socket => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    const timer = setInterval(() => socket.write(`1000\r\n${'x'.repeat(4096)}\r\n`), 1)
    closed.push(
      new Promise(resolve =>
        socket.on('close', () => {
          clearInterval(timer)
          resolve(undefined)
        }),
      ),
    )
  })
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ result: 'success', status: 200 })
  await Promise.all(closed)
  expect(closed).toHaveLength(1)
})

test('what is no HTTP answer is a failure', async () => {
  const noise = await serveBytes(socket => void socket.end('SSH-2.0-OpenSSH_9.9\r\n'))
  expect(await to(`http://127.0.0.1:${noise}/`)).toMatchObject({ result: 'protocol', status: null })
  const nothing = await serveBytes(socket => void socket.end())
  expect(await to(`http://127.0.0.1:${nothing}/`)).toMatchObject({ result: 'connection', code: 'ECONNRESET' })
  const switching = await serveBytes(
    socket => void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: a\r\nconnection: upgrade\r\n\r\n'),
  )
  expect(await to(`http://127.0.0.1:${switching}/`)).toMatchObject({ result: 'status', status: 101 })
  const hints = await serveBytes(socket => void socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)))
  expect(await to(`http://127.0.0.1:${hints}/`)).toMatchObject({ result: 'protocol', status: null })
})

test.each(['000', '099'])('the status %s, which core would not accept in a report, is no HTTP answer', async status => {
  const port = await serveBytes(socket => void socket.write(`HTTP/1.1 ${status} x\r\ncontent-length: 0\r\n\r\n`))
  expect(await to(`http://127.0.0.1:${port}/`)).toEqual({
    result: 'protocol',
    status: null,
    retryAfterSeconds: null,
    code: 'INVALID_STATUS',
  })
})

test('an informational answer before the final one does not count', async () => {
  const port = await serveBytes(
    socket => void socket.write('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  )
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ result: 'success', status: 200 })
})

test('a port without a listener is a failed connection', async () => {
  // The system gives this port to no program.
  expect(await to('http://127.0.0.1:2/')).toMatchObject({ result: 'connection', code: 'ECONNREFUSED' })
})

test('TLS is verified: authority, and name', async () => {
  const [good, wrongName, unknown] = await Promise.all([trusted, otherName, selfSigned].map(serveHttps))
  expect(await to(`https://localhost:${good}/`)).toMatchObject({ result: 'success', status: 200 })
  expect(await to(`https://localhost:${wrongName}/`)).toMatchObject({
    result: 'tls',
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  expect(await to(`https://localhost:${unknown}/`)).toMatchObject({
    result: 'tls',
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
  // The session of an earlier connection must not stand in for the check.
  expect(await to(`https://localhost:${wrongName}/`)).toMatchObject({ result: 'tls' })
  const plain = await serveBytes(socket => void socket.end('HTTP/1.1 200 OK\r\n\r\n'))
  expect(await to(`https://localhost:${plain}/`)).toMatchObject({ result: 'tls' })
})

test('a receiver cannot choose the size of the numbers that a handshake computes with', async () => {
  const finiteFields: tls.TlsOptions = { dhparam: 'auto', ciphers: 'DHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' }
  for (const options of [{}, finiteFields]) {
    const port = await serve(
      https.createServer({ ...rsa, ...options }, (_, response) => response.end()).on('tlsClientError', () => {}),
    )
    const isRefused = options === finiteFields
    expect(await to(`https://localhost:${port}/`)).toMatchObject({ result: isRefused ? 'tls' : 'success' })
  }
})

test('a receiver cannot make a courier check many certificates', async () => {
  const others = await Promise.all(Array.from({ length: 40 }, () => makeCertificate('other.example')))
  const chainOf = (count: number) => [trusted, ...others.slice(0, count)].map(({ cert }) => cert).join('\n')
  const [few, many] = await Promise.all([5, 40].map(count => serveHttps({ ...trusted, cert: chainOf(count) })))
  expect(await to(`https://localhost:${few}/`)).toMatchObject({ result: 'success' })
  const code = 'ERR_TLS_HANDSHAKE_TOO_LARGE'
  expect(await to(`https://localhost:${many}/`)).toMatchObject({ result: 'tls', code })
})

const serveChain = (options: tls.TlsOptions, ...chain: Certificate[]) =>
  serveHttps({ ...trusted, ...options, cert: chain.map(({ cert }) => cert).join('') })

test.each<[string, tls.TlsOptions]>([
  ['TLS 1.2', { maxVersion: 'TLSv1.2' }],
  ['TLS_AES_128_GCM_SHA256', { ciphers: 'TLS_AES_128_GCM_SHA256' }],
  ['TLS_AES_256_GCM_SHA384', { ciphers: 'TLS_AES_256_GCM_SHA384' }],
  ['TLS_CHACHA20_POLY1305_SHA256', { ciphers: 'TLS_CHACHA20_POLY1305_SHA256' }],
  ['a group of which the courier has sent no key', { ecdhCurve: 'secp521r1' }],
])('the certificates of a receiver are read before OpenSSL gets them: %s', async (_, options) => {
  const explicitCurve = await makeCertificate('other.example', 'explicitCurve')
  const usual = await serveChain(options, trusted, otherName)
  const hostile = await serveChain(options, trusted, explicitCurve)
  expect(await to(`https://localhost:${usual}/`)).toMatchObject({ result: 'success' })
  expect(await to(`https://localhost:${hostile}/`)).toMatchObject({ result: 'tls', code: 'ERR_TLS_UNSUPPORTED_KEY' })
})

test.each<[KeyKind, boolean]>([
  ['rsa', true],
  ['ec', true],
  ['P-384', true],
  ['P-521', true],
  ['ed25519', true],
  ['ed448', true],
  ['binaryCurve', false],
  ['explicitCurve', false],
  ['rsaPss', false],
])('which keys the certificates of a receiver may have: %s: %s', async (kind, isAllowed) => {
  const port = await serveChain({}, trusted, await makeCertificate('other.example', kind))
  expect(await to(`https://localhost:${port}/`)).toMatchObject(
    isAllowed ? { result: 'success' } : { result: 'tls', code: 'ERR_TLS_UNSUPPORTED_KEY' },
  )
})

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n'

test('certificates that take long to check delay only attempts of their workspace', async () => {
  const [slow, usual] = [await serveHttps(await makeSlowChain()), await serveHttps(trusted)]
  // The first handshake of a process also reads the certificates that it trusts.
  expect(await to(`https://localhost:${usual}/`)).toMatchObject({ result: 'success' })
  let ended = 0
  const attempts = Array.from({ length: 6 }, () => to(`https://localhost:${slow}/`, {}, 'slow').finally(() => ended++))
  expect(await Promise.race(attempts)).toMatchObject({ result: 'tls', code: 'SELF_SIGNED_CERT_IN_CHAIN' })
  expect(await to(`https://localhost:${usual}/`, {}, 'usual')).toMatchObject({ result: 'success' })
  expect(ended).toBeLessThan(3)
  expect(await Promise.all(attempts)).toMatchObject(attempts.map(() => ({ result: 'tls' })))
})

test('a receiver without TLS waits for the turn of its workspace, too', async () => {
  const [slow, plain] = [await serveHttps(await makeSlowChain()), await serveBytes(socket => socket.end(noContent))]
  expect(await to(`https://localhost:${slow}/`, {}, 'turns')).toMatchObject({ result: 'tls' })
  expect(await to(`http://127.0.0.1:${plain}/`, { timeoutMs: 200 }, 'turns')).toMatchObject({ result: 'timeout' })
  expect(await to(`http://127.0.0.1:${plain}/`, {}, 'usual')).toMatchObject({ result: 'success' })
})

test('a receiver cannot begin another handshake on a connection', async () => {
  const port = await serve(
    tls.createServer({ ...rsa, maxVersion: 'TLSv1.2' }, socket => {
      socket.on('error', () => {})
      socket.once('data', () => socket.renegotiate({}, () => socket.write('HTTP/1.1 200 OK\r\n\r\n')))
    }),
  )
  expect(await to(`https://localhost:${port}/`)).toMatchObject({ result: 'tls', status: null })
})

/** Counts what the connection of the next request to this port reports before it is destroyed. */
function countTlsEvents(port: number) {
  const events = { secureConnect: 0, session: 0 }
  const created = (message: unknown) => {
    const { request } = message as { request: http.ClientRequest }
    if (request.getHeader('host') !== `localhost:${port}`) return
    unsubscribe('http.client.request.created', created)
    request.on('socket', socket => {
      for (const name of ['secureConnect', 'session'] as const)
        socket.on(name, () => void (socket.destroyed || events[name]++))
    })
  }
  subscribe('http.client.request.created', created)
  return events
}

test.each<[FloodMessage, string, { secureConnect: number; session: number }]>([
  ['HelloRequest', 'ERR_TLS_RENEGOTIATION', { secureConnect: 2, session: 1 }],
  ['NewSessionTicket', 'ERR_TLS_TOO_MANY_TICKETS', { secureConnect: 1, session: 9 }],
])(
  'a receiver that sends thousands of messages %s is cut off after the first few, and other attempts succeed',
  async (message, code, read) => {
    const hostile = await serve(createTlsFlood(trusted, message, 10_000))
    const other = await serveHttps(trusted)
    const events = countTlsEvents(hostile)
    const outcomes = await Promise.all([to(`https://localhost:${hostile}/`), to(`https://localhost:${other}/`)])
    expect(outcomes).toMatchObject([
      { result: 'tls', status: null, code },
      { result: 'success', status: 200 },
    ])
    expect(events).toEqual(read)
  },
)

test('a receiver may send a few session tickets', async () => {
  const port = await serve(createTlsFlood(trusted, 'NewSessionTicket', 8))
  const events = countTlsEvents(port)
  expect(await to(`https://localhost:${port}/`)).toMatchObject({ result: 'success', status: 200 })
  expect(events).toEqual({ secureConnect: 1, session: 8 })
})

test('proxies of the environment are not used', async () => {
  let proxied = 0
  const proxy = await serveHttp((_, response) => {
    proxied++
    response.end()
  })
  for (const name of ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'])
    vi.stubEnv(name, `http://127.0.0.1:${proxy}`)
  vi.stubEnv('NODE_USE_ENV_PROXY', '1')
  const port = await serveHttp((_, response) => void response.writeHead(202).end())
  expect(await to(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 202 })
  expect(proxied).toBe(0)
})

test('the name of the URL is sent and verified, while the connection goes to the address', async () => {
  const port = await serve(
    https.createServer(
      otherName,
      (request, response) => void response.writeHead(200, { 'x-host': request.headers.host }).end(),
    ),
  )
  const resolve = async () => ['127.0.0.1']
  expect(await to(`https://other.example:${port}/`, { resolve })).toMatchObject({ result: 'success' })
})

test('if DNS changes after the check, the connection goes to the address that was checked', async () => {
  let requests = 0
  const port = await serveHttp((_, response) => {
    requests++
    response.end()
  })
  let asked = 0
  // 127.0.0.2 has no listener here; 127.0.0.1 would answer.
  const resolve = async () => (asked++ === 0 ? ['127.0.0.2'] : ['127.0.0.1'])
  const outcome = await to(`http://rebinding.example:${port}/`, { resolve })
  expect(outcome).toMatchObject({ result: 'connection', code: 'ECONNREFUSED' })
  expect([asked, requests]).toEqual([1, 0])
})

test.each([
  ['a private address', ['10.0.0.1']],
  ['a private address among public ones', ['8.8.8.8', '10.0.0.1']],
  ['loopback', ['127.0.0.1', '::1']],
  ['the metadata service', ['169.254.169.254']],
  ['a mapped private address', ['::ffff:127.0.0.1']],
  ['no address', []],
])('a name that resolves to %s is refused, and nothing is connected', async (_, addresses) => {
  let connections = 0
  const port = await serve(createServer(() => connections++))
  const outcome = await to(`https://inside.example:${port}/`, { resolve: async () => addresses, allowed: [] })
  expect(outcome).toEqual({ result: 'refused', status: null, retryAfterSeconds: null, code: 'ADDRESS_NOT_ALLOWED' })
  expect(connections).toBe(0)
})

test('a name with more addresses than any receiver needs is refused before they are checked', async () => {
  const addresses = (count: number) => Array.from({ length: count }, (_, at) => `127.0.${at >> 8}.${at & 255}`)
  const resolve = (count: number) => async () => addresses(count)
  const port = await serve(createServer(socket => socket.destroy()))
  const url = `https://many.example:${port}/`
  expect(await to(url, { resolve: resolve(64) })).toMatchObject({ result: 'connection' })
  expect(await to(url, { resolve: resolve(65) })).toMatchObject({ result: 'refused', code: 'TOO_MANY_ADDRESSES' })
})

test.each([
  ['https://127.0.0.1/', 'ADDRESS_NOT_ALLOWED'],
  ['https://[::1]/', 'ADDRESS_NOT_ALLOWED'],
  ['http://8.8.8.8/', 'NOT_HTTPS'],
  ['https://8.8.8.8:22/', 'PORT_NOT_ALLOWED'],
  ['https://user@8.8.8.8/', 'HAS_CREDENTIALS'],
  ['nonsense', 'NOT_A_URL'],
])('%s is refused', async (url, code) => {
  expect(await to(url, { allowed: [] })).toMatchObject({ result: 'refused', code })
})

test('DNS that fails or does not answer is a failure', async () => {
  const missing = async () => Promise.reject(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }))
  expect(await to('https://a.example/', { resolve: missing })).toMatchObject({ result: 'dns', code: 'ENOTFOUND' })
  const silent = () => new Promise<string[]>(() => {})
  expect(await to('https://a.example/', { resolve: silent, timeoutMs: 50 })).toMatchObject({ result: 'timeout' })
})

test('localhost and the names below it are loopback, without DNS', async () => {
  for (const name of ['localhost', 'localhost.', 'a.localhost'])
    expect(await resolveHost(name)).toEqual(['127.0.0.1', '::1'])
})
