import { createHash, createHmac, randomUUID } from 'node:crypto'
import { type SigningMistake, signingMistakes } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enUS } from '../gateway/src/locales/en-US.ts'
import { zhCN } from '../gateway/src/locales/zh-CN.ts'
import { createPath, type Envelope } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'

/** Clients that sign with one mistake each, over real HTTP. They share no code with the search for mistakes. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gatewayEnvironment: { TRUSTED_PROXIES: '127.0.0.1' } })
})
afterAll(() => system.stop())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, message: string) => createHmac('sha256', key).update(message).digest()
const base64 = (key: string | Buffer, message: string) => hmac(key, message).toString('base64')

/** What a client has at hand when it signs. */
type Parts = {
  apiKey: string
  secret: string
  method: string
  path: string
  target: string
  url: string
  time: string
  nonce: string
  body: string
}
type Client = {
  mistake: SigningMistake
  method?: string
  target?: string
  body?: string
  sign: (parts: Parts) => string
  /** Signatures without it do not show the mistake. */
  shownBy?: RegExp
}

const message = ({ method, path, time, nonce, body }: Parts) => [method, path, time, nonce, sha256(body)].join('\n')
/** A client that is right except for some of the parts. */
const withParts = (change: (parts: Parts) => Partial<Parts>) => (parts: Parts) =>
  base64(parts.secret, message({ ...parts, ...change(parts) }))
const withMessage = (change: (parts: Parts) => string) => (parts: Parts) => base64(parts.secret, change(parts))
const withHash = (change: (parts: Parts) => string) =>
  withMessage(parts => message(parts).replace(/[^\n]*$/, () => change(parts)))
const withKey = (change: (secret: string) => string | Buffer) => (parts: Parts) =>
  base64(change(parts.secret), message(parts))
const encoded = (encode: (bytes: Buffer) => string) => (parts: Parts) => encode(hmac(parts.secret, message(parts)))

const order = '/api/v1/transfer/query/orders/rent%3A2026%2f11'
const plainOrder = '/api/v1/transfer/query/orders/rent:2026'
const compact =
  '{"sourceWalletId":"wal_1","targetWalletId":"wal_2","amount":"1.00","currency":"USD","remark":"Müller & Söhne a/b"}'
const value = JSON.parse(compact) as Record<string, string>
const python = (text: string) => text.replaceAll(/":"/g, '": "').replaceAll(/","/g, '", "')
const ascii = (text: string) => text.replaceAll('ü', '\\u00fc').replaceAll('ö', '\\u00f6')
const sortedText = JSON.stringify(Object.fromEntries(Object.entries(value).sort()))
const post = { method: 'POST', target: createPath, body: compact }
/** A client that sends one body and hashes another one. */
const hashes = (text: string, sent = compact) => ({ ...post, body: sent, sign: withParts(() => ({ body: text })) })

const clients: Client[] = [
  { mistake: 'QUERY_SIGNED', sign: withParts(({ target }) => ({ path: target })) },
  { mistake: 'URL_SIGNED', sign: withParts(({ url, target }) => ({ path: url + target })) },
  { mistake: 'URL_SIGNED', sign: withParts(({ url, path }) => ({ path: url + path })) },
  { mistake: 'URL_SIGNED', sign: withParts(({ url, path }) => ({ path: url.replace('http://', '') + path })) },
  { mistake: 'PATH_INCOMPLETE', sign: withParts(() => ({ path: '/wallets' })) },
  { mistake: 'PATH_INCOMPLETE', sign: withParts(() => ({ path: '/v1/wallets' })) },
  { mistake: 'PATH_INCOMPLETE', sign: withParts(() => ({ path: 'api/v1/wallets' })) },
  { mistake: 'PATH_ENCODING', target: order, sign: withParts(({ path }) => ({ path: decodeURIComponent(path) })) },
  { mistake: 'PATH_ENCODING', target: order, sign: withParts(({ path }) => ({ path: encodeURI(path) })) },
  { mistake: 'PATH_ENCODING', target: order, sign: withParts(({ path }) => ({ path: path.replace('%2f', '%2F') })) },
  { mistake: 'PATH_ENCODING', target: order, sign: withParts(({ path }) => ({ path: path.replace('%3A', '%3a') })) },
  { mistake: 'PATH_ENCODING', target: plainOrder, sign: withParts(({ path }) => ({ path: path.replace(':', '%3A') })) },
  { mistake: 'TRAILING_SLASH', sign: withParts(({ path }) => ({ path: `${path}/` })) },
  {
    mistake: 'TRAILING_SLASH',
    target: '/api/v1/transfer/query/orders/rent/?size=1',
    sign: withParts(({ path }) => ({ path: path.slice(0, -1) })),
  },
  { mistake: 'LOWER_CASE_METHOD', sign: withParts(() => ({ method: 'get' })) },
  { mistake: 'LOWER_CASE', sign: withParts(({ nonce }) => ({ method: 'get', nonce: nonce.toLowerCase() })) },
  { mistake: 'TRAILING_NEWLINE', sign: withMessage(parts => `${message(parts)}\n`) },
  { mistake: 'CRLF', sign: withMessage(parts => message(parts).replaceAll('\n', '\r\n')) },
  { mistake: 'SEPARATOR', sign: withMessage(parts => message(parts).replaceAll('\n', '\\n')) },
  { mistake: 'SEPARATOR', sign: withMessage(parts => message(parts).replaceAll('\n', '')) },
  { mistake: 'LINE_ORDER', sign: withParts(({ time, nonce }) => ({ time: nonce, nonce: time })) },
  { mistake: 'LINE_ORDER', sign: withParts(({ method, path }) => ({ method: path, path: method })) },
  { mistake: 'LINE_MISSING', sign: withMessage(parts => message(parts).replace(`\n${parts.nonce}`, '')) },
  { mistake: 'TIMESTAMP_MILLISECONDS', sign: withParts(({ time }) => ({ time: `${time}000` })) },
  { mistake: 'TIMESTAMP_DIFFERENT', sign: withParts(({ time }) => ({ time: String(Number(time) - 1) })) },
  { mistake: 'BODY_HASH_MISSING', sign: withHash(() => '') },
  { mistake: 'BODY_HASH_MISSING', sign: withMessage(parts => message(parts).replace(/\n[^\n]*$/, '')) },
  { mistake: 'BODY_HASH_OF_NOTHING', ...hashes('') },
  { mistake: 'BODY_HASH_OF_SOMETHING', sign: withParts(() => ({ body: '{}' })) },
  { mistake: 'BODY_HASH_UPPER_CASE', ...post, sign: withHash(({ body }) => sha256(body).toUpperCase()) },
  {
    mistake: 'BODY_HASH_BASE64',
    ...post,
    sign: withHash(({ body }) => createHash('sha256').update(body).digest('base64')),
  },
  { mistake: 'BODY_NOT_HASHED', ...post, sign: withHash(({ body }) => body) },
  { mistake: 'BODY_NEWLINE', ...hashes(`${compact}\n`) },
  { mistake: 'BODY_NEWLINE', ...hashes(compact, `${compact}\n`) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(compact, JSON.stringify(value, null, 2)) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(python(compact)) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(python(ascii(compact))) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(sortedText) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(python(ascii(sortedText))) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(JSON.stringify(value, null, 2)) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(JSON.stringify(value, null, 4)) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(ascii(compact).replaceAll('/', '\\/')) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(compact, ascii(compact).replaceAll('/', '\\/')) },
  { mistake: 'BODY_SERIALIZED_AGAIN', ...hashes(sortedText.replace('&', '\\u0026')) },
  { mistake: 'SECRET_WHITESPACE', sign: withKey(secret => `${secret}\n`) },
  { mistake: 'SECRET_WHITESPACE', sign: withKey(secret => ` ${secret}`) },
  { mistake: 'SECRET_QUOTED', sign: withKey(secret => `"${secret}"`) },
  { mistake: 'SECRET_DECODED', sign: withKey(secret => Buffer.from(secret, 'base64url')) },
  { mistake: 'SECRET_ENCODED', sign: withKey(secret => Buffer.from(secret).toString('base64')) },
  { mistake: 'SECRET_IS_API_KEY', sign: parts => base64(parts.apiKey, message(parts)) },
  { mistake: 'SECRET_AND_MESSAGE_SWAPPED', sign: parts => base64(message(parts), parts.secret) },
  { mistake: 'SIGNATURE_HEX', sign: encoded(bytes => bytes.toString('hex')) },
  { mistake: 'SIGNATURE_HEX', sign: encoded(bytes => bytes.toString('hex').toUpperCase()) },
  { mistake: 'SIGNATURE_HEX_IN_BASE64', sign: encoded(bytes => Buffer.from(bytes.toString('hex')).toString('base64')) },
  { mistake: 'SIGNATURE_BASE64URL', sign: encoded(bytes => bytes.toString('base64url')), shownBy: /[-_]/ },
  { mistake: 'SIGNATURE_UNPADDED', sign: encoded(bytes => bytes.toString('base64').replace('=', '')) },
]

/** Each request comes from another address, because the searches for one client are limited. */
let addresses = 0

/** Sends what a client sends, with these headers also. */
async function send(
  { method = 'GET', target = '/api/v1/wallets?size=1', body, sign, shownBy = /./ }: Client,
  headers: Record<string, string>,
) {
  const { baseUrl: url, apiKey, apiSecret: secret } = system
  const time = String(Math.floor(Date.now() / 1000))
  const path = target.split('?', 1)[0]!
  let nonce: string
  let signature: string
  do {
    nonce = `N-${randomUUID()}`
    signature = sign({ apiKey, secret, method, path, target, url, time, nonce, body: body ?? '' })
  } while (!shownBy.test(signature))
  const signed = { 'X-Api-Key': apiKey, 'X-Timestamp': time, 'X-Nonce': nonce, 'X-Signature': signature }
  const json = {
    ...(body === undefined ? {} : { body }),
    headers: {
      ...signed,
      'Content-Type': 'application/json',
      'X-Forwarded-For': `192.0.2.${addresses++}`,
      ...headers,
    },
  }
  const response = await fetch(url + target, { method, ...json })
  return (await response.json()) as Envelope
}

test.each(clients.map((client, at) => ({ at, ...client })))(
  '$mistake is named, and nothing of the secret (client $at)',
  async client => {
    for (const locale of [enUS, zhCN]) {
      const { code, detail } = await send(client, { 'X-LOCALE': locale.tag })
      expect(code).toBe('GA2012')
      expect(detail).toContain(locale.mistakes[client.mistake])
      expect(detail).not.toContain(system.apiSecret)
    }
  },
)

test('there is a client for every known mistake', () => {
  expect([...new Set(clients.map(({ mistake }) => mistake))].toSorted()).toEqual([...signingMistakes].toSorted())
})

test('a client that is right is answered, however it asks for sentences', async () => {
  const right = withParts(() => ({}))
  const codeOf = async (client: object) =>
    (await send({ mistake: 'CRLF', sign: right, ...client }, { 'X-LOCALE': 'en-US' })).code
  expect([await codeOf({}), await codeOf(post)]).toEqual(['2000', 'W001'])
})

test.each([
  ['another secret', (parts: Parts) => base64('x'.repeat(43), message(parts))],
  ['another secret and the query string', (parts: Parts) => base64('x', message({ ...parts, path: parts.target }))],
  ['a text that is no signature', () => 'ff'],
  ['another value in hexadecimal', () => 'ff'.repeat(32)],
])('a client with %s gets no name of a mistake', async (_, sign) => {
  const { code, detail } = await send({ mistake: 'CRLF', sign }, { 'X-LOCALE': 'en-US' })
  expect(code).toBe('GA2012')
  for (const sentence of Object.values(enUS.mistakes)) expect(detail).not.toContain(sentence)
  expect(detail).toMatch(/five lines|44 characters/)
})
