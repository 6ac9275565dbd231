import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { acceptUpgrade } from '@workspace-wallet/runtime'
import { afterAll, describe, expect, test } from 'vitest'
import { serveBatches } from '../../../test/setup/batches.ts'
import { makeCertificate } from '../../../test/setup/certificates.ts'
import { listen } from '../../../test/setup/listen.ts'
import { noAnswerErrorOf } from './call-errors.ts'
import { type CoreClient, createCoreClient } from './core-client.ts'
import type { NoAnswerError } from './errors.ts'
import { requestFailure } from './request-failures.ts'

/** What a caller with a wrong URL or token reads: one sentence that says what is wrong and how to fix it. */

const token = 'a-secret-token'
const ends: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ends) await end()
})

async function urlOf(server: Server, scheme = 'http'): Promise<string> {
  ends.push(() => server.close())
  return `${scheme}://127.0.0.1:${await listen(server)}`
}

const http = (listener: RequestListener) => urlOf(createHttpServer(listener))
const tcp = (onSocket: (socket: Socket) => void) =>
  urlOf(createServer(socket => onSocket(socket.on('error', () => socket.destroy()))))

async function https(): Promise<string> {
  return urlOf(createHttpsServer(await makeCertificate('core')), 'https')
}

const attempt = { sent: false, sentAtMs: 0 }
const envelope = (code: string) => JSON.stringify({ version: '1.3.0', success: false, code, data: null })
const useUrl = "use the URL of core, or of a gateway's internal listener"

const calls: Record<string, (core: CoreClient) => Promise<unknown>> = {
  'a call': core => core.wallets.get.query({ workspaceId: 'w', walletId: 'w', caller: { requestId: 'r' } }),
  'a streamed call': core => core.ledger.verify.query({}),
}

async function failureOf(url: string, call: (core: CoreClient) => Promise<unknown>): Promise<NoAnswerError> {
  const core = createCoreClient({ url, token })
  const error: unknown = await call(core).then(
    () => expect.fail('the call succeeded'),
    error => error,
  )
  await core.close()
  const failure = noAnswerErrorOf(error)
  if (!failure) throw error
  expect((error as Error).message).toBe(failure.message)
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(token)
  return failure
}

type Wrong = { what: string; start: () => Promise<string>; sentence: (url: string) => string; mayBeSent?: true }

const wrongUrls: Wrong[] = [
  {
    what: 'a port on which nothing listens',
    // The system gives this port to no program.
    start: async () => 'http://127.0.0.1:2',
    sentence: url => `nothing listens at ${url}: start core there, or correct the host and port`,
  },
  {
    what: 'a host that does not exist',
    // No server is asked for a label of more than 63 characters, so that the result does not depend on DNS.
    start: async () => `http://${'core'.repeat(16)}.invalid:8081`,
    sentence: url =>
      `the host name of ${url} cannot be resolved (ENOTFOUND): correct it, or check the DNS of this machine`,
  },
  {
    what: 'the public URL of a gateway',
    start: () => http((_, response) => response.writeHead(404).end(envelope('S004'))),
    sentence: url => `${url} returned HTTP 404: this is the public API of a gateway; ${useUrl}`,
  },
  {
    what: 'another HTTP server',
    start: () => http((_, response) => response.writeHead(404).end('<h1>Not Found</h1>')),
    sentence: url => `${url} returned HTTP 404: this is not a core of this version; ${useUrl}`,
  },
  {
    what: 'a server that redirects',
    start: () => http((_, response) => response.writeHead(301, { location: '/login' }).end()),
    sentence: url => `${url} returned HTTP 301: this is not a core of this version; ${useUrl}`,
  },
  {
    what: 'a server that answers every path with a page',
    start: () => http((_, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end('<html>')),
    sentence: url => `${url} returned a response of the type text/html, so it is not core: ${useUrl}`,
    mayBeSent: true,
  },
  {
    what: 'a proxy that refuses the call',
    start: () => http((_, response) => response.writeHead(403).end('Forbidden')),
    sentence: url =>
      `${url} returned HTTP 403: a proxy rejected the call before core received it; allow it there, or ${useUrl}`,
  },
  {
    what: 'an http URL for a TLS port',
    start: async () => (await https()).replace('https:', 'http:'),
    sentence: url =>
      `${url} closed the connection before it answered: check that core runs, and whether the URL must begin with https://`,
    mayBeSent: true,
  },
  {
    what: 'an https URL for a port without TLS',
    start: async () => (await http(() => {})).replace('http:', 'https:'),
    sentence: url => `${url} does not use TLS: begin the URL with http:// instead`,
  },
  {
    what: 'a certificate of an unknown authority',
    start: https,
    sentence: url =>
      `the certificate of ${url} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT): use the host name in it, and set NODE_EXTRA_CA_CERTS to its authority`,
  },
  {
    what: 'a server of another protocol, which repeats what it receives',
    start: () => tcp(socket => socket.pipe(socket)),
    sentence: url => `${url} does not answer in HTTP: if it uses TLS, begin the URL with https://, else ${useUrl}`,
    mayBeSent: true,
  },
  {
    what: 'a wrong token',
    start: () => http((request, response) => response.writeHead(401).end(request.headers.authorization)),
    sentence: url => `${url} returned HTTP 401: core does not know this service token; use one of its SERVICE_TOKENS`,
  },
]

describe.each(wrongUrls)('$what', ({ start, sentence, mayBeSent = false }) => {
  // Other calls are sent only on connections that core has accepted.
  test.each(Object.entries(calls))('%s', async (name, call) => {
    const url = await start()
    const sent = mayBeSent && name === 'a streamed call'
    expect(await failureOf(url, call)).toMatchObject({ message: expect.stringContaining(sentence(url)), sent })
  })
})

test('the handbook quotes these sentences', async () => {
  const page = await readFile(new URL('../../../docs/internal-client.md', import.meta.url), 'utf8')
  const quoted = [...page.matchAll(/`([^`]*(https?:\/\/core:\d+)[^`]*)`/g)].filter(([, text, url]) => text !== url)
  const known = wrongUrls.map(({ sentence }) => sentence)
  const timeout = Object.assign(new Error(), { code: 'UND_ERR_CONNECT_TIMEOUT' })
  known.push(url => requestFailure(url, timeout, attempt).message)
  expect(quoted).toHaveLength(7)
  for (const [, text, url] of quoted) expect(known.map(sentence => sentence(url!))).toContain(text)
})

test('a core that accepts connections and does not answer', async () => {
  const url = await tcp(() => {})
  const failure = await failureOf(url, calls['a call']!)
  expect(failure.message).toMatch(new RegExp(`^(${url} did not answer in time|no core responds at ${url}): check`))
})

test('a server that never stops sending', async () => {
  const url = await http((_, response) => {
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(2 ** 22)));
    }
    response.on('drain', write)
    write()
  })
  expect(await failureOf(url, calls['a call']!)).toMatchObject({
    message: `${url} returned something else, so it is not core: ${useUrl}`,
    sent: false,
  })
})

test.each([
  [
    'announces an answer that is larger than any of core',
    Buffer.from([2, 0, 0, 0, 1, 255, 255, 255, 255]),
    'sent more',
  ],
  ['sends frames that core does not send', Buffer.alloc(64, 'x'), 'returned something else'],
])('a server that accepts the connection and %s', async (_, bytes, does) => {
  const server = createHttpServer()
  serveBatches(server, ({ socket }) => socket.write(bytes))
  const url = await urlOf(server)
  const { message, sent } = await failureOf(url, core => core.wallets.create.mutate({ workspaceId: 'w' } as never))
  expect(message).toContain(`${url} ${does}`)
  expect(sent).toBe(true)
})

test('a server that upgrades the connection to another protocol', async () => {
  const server = createHttpServer()
  server.on('upgrade', (_request, socket) => acceptUpgrade(socket as Socket, 'websocket'))
  const url = await urlOf(server)
  expect(await failureOf(url, calls['a call']!)).toMatchObject({
    message: `${url} returned something else, so it is not core: ${useUrl}`,
    sent: false,
  })
})

test.each(['UND_ERR_CONNECT_TIMEOUT', 'EHOSTUNREACH'])('a host that cannot be reached: %s', code => {
  const error = Object.assign(new Error(), { code, syscall: 'connect' })
  expect(requestFailure('http://core:8081', error, attempt)).toMatchObject({
    message: `http://core:8081 cannot be reached (${code}): check the host and port, and that no firewall blocks them`,
    sent: false,
  })
})

test.each(['', 'localhost:8081', 'core', 'ftp://core', 'http://core/api', 'http://core:8081/?a'])(
  'the URL "%s" is refused',
  url => {
    const sentence = `url must be a URL without a path, such as http://core:8081, not "${url}"`
    expect(() => createCoreClient({ url, token })).toThrow(new TypeError(sentence))
  },
)

test('an empty list of URLs is refused', () => {
  expect(() => createCoreClient({ url: [], token })).toThrow('give the URL of at least one core')
})

test.each(['', `${token}\n`, `Bearer ${token}`])('a token that cannot be one is refused, and not shown', token => {
  const refused = (() => createCoreClient({ url: 'http://core', token })) as () => void
  expect(refused).toThrow(
    new TypeError('token must be one of the SERVICE_TOKENS of core: visible ASCII characters, without spaces'),
  )
})
