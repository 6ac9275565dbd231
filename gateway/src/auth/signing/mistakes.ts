import type { SigningMistake } from '@workspace-wallet/contract'
import { decodeBase64, decodeHex, encodeBase64 } from './encodings.ts'
import { serializationsOf } from './serializations.ts'

// The signature debugger runs this file in the browser, so it imports no module of Node.

/** A request as the server received it. */
export type ReceivedRequest = {
  apiKey: string
  method: string
  /** As sent, without the query string. */
  path: string
  /** Without the question mark; empty if there is none. */
  query: string
  /** The Host header: host and port. */
  host: string
  /** The text of X-Timestamp. */
  timestamp: string
  /** The text of X-Nonce. */
  nonce: string
  /** Empty if there is none; null if it is too long to try other forms of it. */
  body: string | null
  /** The SHA-256 of the body, in lower-case hexadecimal. */
  bodyHash: string
}

/** What a client with one mistake computes the HMAC of. */
export type Candidate = {
  mistake: SigningMistake
  /** The message that it signs. */
  message: string
  /** The text whose SHA-256, in lower-case hexadecimal, follows the message, if any. */
  hashedBody?: string
  /** The key, as bytes or as text in UTF-8. Default: the API secret. */
  key?: string | Uint8Array
}

/** Longer targets are not searched. This bounds the work for one request, in characters. */
const maxTargetLength = 1024

/**
 * What clients with one known mistake sign for a request. A signature that is the HMAC of a candidate was made with its
 * mistake. The correct message with the correct key is not a candidate.
 *
 * @param secret the API secret
 */
export function candidatesOf(request: ReceivedRequest, secret: string): Candidate[] {
  const { path, query, host } = request
  if (path.length + query.length + host.length > maxTargetLength) return []
  const seen = new Set([identityOf({ message: messageOf(request) })])
  return mistakes.flatMap(([mistake, variantsOf]) =>
    variantsOf(request, secret)
      .filter(variant => !seen.has(identityOf(variant)) && seen.add(identityOf(variant)))
      .map(variant => ({ mistake, ...variant })),
  )
}

type Variant = Omit<Candidate, 'mistake'>
type Mistake = [SigningMistake, (request: ReceivedRequest, secret: string) => Variant[]]

function identityOf({ message, hashedBody, key }: Variant): string {
  return `${message}\0${hashedBody}\0${key}`
}

/**
 * The known mistakes. If two of them give the same candidate, the first one is named.
 *
 * A key that is made from the secret must use all of it. If it used only a part, an attacker could find that part by trying
 * all of its values.
 */
const mistakes: Mistake[] = [
  ['QUERY_SIGNED', request => withPaths(request, targetsOf(request).slice(1))],
  ['URL_SIGNED', request => withPaths(request, urlsOf(request))],
  ['PATH_INCOMPLETE', request => withPaths(request, partsOf(request.path))],
  ['PATH_ENCODING', request => withPaths(request, encodingsOf(request.path))],
  ['TRAILING_SLASH', request => withPaths(request, [withOtherSlash(request.path)])],
  ['LOWER_CASE_METHOD', request => joined(request, '\n', ([method = '', ...rest]) => [method.toLowerCase(), ...rest])],
  ['LOWER_CASE', request => joined(request, '\n', lines => lines.map(line => line.toLowerCase()))],
  ['TRAILING_NEWLINE', request => ['\n', '\r\n'].map(end => ({ message: messageOf(request) + end }))],
  ['CRLF', request => ['', '\r\n'].map(end => ({ message: linesOf(request).join('\r\n') + end }))],
  // The second one is a backslash and an n: in PHP and shells, single quotes do not escape.
  ['SEPARATOR', request => ['', '\\n', ' ', ',', ':', '|', '&'].flatMap(separator => joined(request, separator))],
  ['LINE_ORDER', request => orders.flatMap(order => joined(request, '\n', lines => order.map(at => lines[at]!)))],
  ['LINE_MISSING', request => [0, 1, 2, 3].flatMap(at => joined(request, '\n', lines => lines.toSpliced(at, 1)))],
  ['TIMESTAMP_MILLISECONDS', request => changed(request, { timestamp: `${request.timestamp}000` })],
  ['TIMESTAMP_DIFFERENT', request => [-1, 1].flatMap(by => changed(request, { timestamp: shifted(request, by) }))],
  [
    'BODY_HASH_MISSING',
    request => [...changed(request, { bodyHash: '' }), ...joined(request, '\n', lines => lines.slice(0, 4))],
  ],
  ['BODY_HASH_OF_NOTHING', request => hashing(request, [''])],
  ['BODY_HASH_OF_SOMETHING', request => hashing(request, request.body === '' ? ['{}', 'null', '""', '[]'] : [])],
  ['BODY_HASH_UPPER_CASE', request => changed(request, { bodyHash: request.bodyHash.toUpperCase() })],
  ['BODY_HASH_BASE64', request => changed(request, { bodyHash: encodeBase64(decodeHex(request.bodyHash)!) })],
  ['BODY_NOT_HASHED', request => changed(request, { bodyHash: request.body ?? '' })],
  ['BODY_NEWLINE', request => hashing(request, withOtherEnds(request.body))],
  ['BODY_SERIALIZED_AGAIN', request => hashing(request, request.body ? serializationsOf(request.body) : [])],
  ['SECRET_WHITESPACE', (request, secret) => keyed(request, [...followedBySpace(secret), ` ${secret}`, ` ${secret} `])],
  ['SECRET_QUOTED', (request, secret) => keyed(request, [`"${secret}"`, `'${secret}'`])],
  ['SECRET_DECODED', (request, secret) => keyed(request, [decodeHex(secret), decodeBase64(secret)])],
  ['SECRET_ENCODED', (request, secret) => keyed(request, [encodeBase64(new TextEncoder().encode(secret))])],
  ['SECRET_IS_API_KEY', request => keyed(request, [request.apiKey])],
  ['SECRET_AND_MESSAGE_SWAPPED', (request, secret) => [{ message: secret, key: messageOf(request) }]],
]

/** Wrong orders of the five lines. */
const orders = [
  [0, 1, 3, 2, 4],
  [1, 0, 2, 3, 4],
  [2, 3, 0, 1, 4],
  [2, 0, 1, 3, 4],
  [0, 1, 4, 2, 3],
  [3, 2, 0, 1, 4],
]

type Lines = Pick<ReceivedRequest, 'method' | 'path' | 'timestamp' | 'nonce' | 'bodyHash'>

function linesOf({ method, path, timestamp, nonce, bodyHash }: Lines): string[] {
  return [method.toUpperCase(), path, timestamp, nonce, bodyHash]
}

function messageOf(lines: Lines): string {
  return linesOf(lines).join('\n')
}

/** The lines, changed and joined. */
function joined(request: Lines, separator: string, change = (lines: string[]) => lines): Variant[] {
  return [{ message: change(linesOf(request)).join(separator) }]
}

/** The message with one line changed. */
function changed(request: Lines, change: Partial<Lines>): Variant[] {
  return [{ message: messageOf({ ...request, ...change }) }]
}

function withPaths(request: Lines, paths: string[]): Variant[] {
  return paths.flatMap(path => changed(request, { path }))
}

/** The message with the hash of another body. */
function hashing(request: ReceivedRequest, bodies: string[]): Variant[] {
  const message = messageOf({ ...request, bodyHash: '' })
  return bodies.filter(body => body !== request.body).map(hashedBody => ({ message, hashedBody }))
}

/** The correct message, signed with another key. */
function keyed(request: Lines, keys: (string | Uint8Array | null)[]): Variant[] {
  return keys.filter(key => key !== null).map(key => ({ message: messageOf(request), key }))
}

function shifted({ timestamp }: Lines, bySeconds: number): string {
  return String(Number(timestamp) + bySeconds)
}

function withOtherEnds(body: string | null): string[] {
  return body ? [`${body}\n`, `${body}\r\n`, body.trimEnd()] : []
}

function followedBySpace(secret: string): string[] {
  return ['\n', '\r\n', ' ', '\t'].map(space => secret + space)
}

/** The path, and the path with the query string if there is one. */
function targetsOf({ path, query }: ReceivedRequest): string[] {
  return query === '' ? [path] : [path, `${path}?${query}`]
}

function urlsOf(request: ReceivedRequest): string[] {
  return ['http://', 'https://', ''].flatMap(scheme => targetsOf(request).map(target => scheme + request.host + target))
}

/** What is left of the path without its beginning: the version of the API, or the first slash. */
function partsOf(path: string): string[] {
  return ['/api/v1', '/api', '/'].filter(prefix => path.startsWith(prefix)).map(prefix => path.slice(prefix.length))
}

/** With a slash at its end, or without the one that it has. */
function withOtherSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : `${path}/`
}

/**
 * The path in other percent-encodings: decoded, encoded once more, with all reserved characters encoded, and with the
 * hexadecimal digits in the other case.
 */
function encodingsOf(path: string): string[] {
  const decoded = tryDecode(path)
  const inCase = (change: (triplet: string) => string) => path.replaceAll(/%[0-9a-f]{2}/gi, change)
  return [
    decoded,
    path.replaceAll('%', '%25'),
    encodeSegments(path),
    encodeSegments(decoded),
    inCase(triplet => triplet.toUpperCase()),
    inCase(triplet => triplet.toLowerCase()),
  ]
}

function encodeSegments(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/** The path itself if it is not valid percent-encoding. */
function tryDecode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
