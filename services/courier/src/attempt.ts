import { constants } from 'node:crypto'
import http from 'node:http'
import type { LookupFunction, Socket } from 'node:net'
import { isIPv6 } from 'node:net'
import { DEFAULT_CIPHERS } from 'node:tls'
import type { Delivery, FieldReason, LeasedWebhook } from '@workspace-wallet/contract'
import { type AddressBlock, literalAddress, webhookAddressFault } from '@workspace-wallet/runtime'
import { LimitedAgent, LimitedTlsAgent } from './limited-agents.ts'
import { ReceiverTurns } from './receiver-turns.ts'
import type { Resolve } from './resolve.ts'
import { retryAfterSeconds } from './retry-after.ts'
import { TlsError } from './tls-error.ts'

export type AttemptOptions = {
  /** WEBHOOK_ALLOWED_NETWORKS. */
  allowed: readonly AddressBlock[]
  resolve: Resolve
  /** Maximum duration of the attempt: DNS, connection, TLS, the request, and the headers of the response. */
  timeoutMs: number
}

/**
 * How an attempt ended. `refused`: the courier rejects the URL or an address of its host. `status`: a response other than 2xx.
 * `protocol`: the response is not HTTP, or its headers are too large.
 */
export const attemptResults = [
  'success',
  'status',
  'timeout',
  'refused',
  'dns',
  'connection',
  'tls',
  'protocol',
] as const
export type AttemptResult = (typeof attemptResults)[number]

/** `status`: null without a response. `code`: the code of the error, or why the URL was refused. */
export type AttemptOutcome = {
  result: AttemptResult
  status: number | null
  retryAfterSeconds: number | null
  code: string | null
}

/** Of one host. The owner of a name can give it thousands, each of which takes time to check; a receiver has a few. */
const maxAddresses = 64
const maxHeaderBytes = 16_384
/** Informational answers (1xx) before the final one. */
const maxInformational = 8
/** All bytes until the headers have ended. Node's parser skips blank lines before an answer without counting them. */
const maxAnswerBytes = (maxInformational + 1) * maxHeaderBytes
/** Session tickets of TLS 1.3, which no later connection uses. Servers send one or two, some a few more. */
const maxSessionTickets = 8
/** How long a connection to the IPv4 address may take before the IPv6 address is tried, if there are both. */
const familyTimeoutMs = 5_000

/**
 * Not with Diffie-Hellman over finite fields: the receiver chooses the size of its modulus, and one of 10,000 bits blocks the courier for
 * most of a second. RFC 9325 advises against it too.
 */
const ciphers = `${DEFAULT_CIPHERS}:!kDHE`
/** One handshake for each connection. `endTlsFlood` ends a connection whose receiver asks for another one. */
const secureOptions = constants.SSL_OP_NO_RENEGOTIATION

/** No connection, no TLS session and no proxy is shared: each attempt goes to an address that was checked for it. */
const httpOptions = { keepAlive: false }
const httpsOptions = { ...httpOptions, maxCachedSessions: 0, ciphers, secureOptions }
const receiverTurns = new ReceiverTurns()

/**
 * Sends one event, once. It follows no redirect. The connection is closed when the headers of the response have arrived:
 * no more of it is read. Never rejects.
 *
 * @param webhook every address of the host of its URL is checked
 * @param traceparent a header that the signature of the event does not cover
 */
export async function attempt(
  { url, workspaceId }: Pick<LeasedWebhook, 'url' | 'workspaceId'>,
  delivery: Delivery,
  options: AttemptOptions,
  traceparent?: string,
): Promise<AttemptOutcome> {
  const deadline = AbortSignal.timeout(options.timeoutMs)
  const failed = (result: AttemptResult, code: string | null): AttemptOutcome => ({
    result,
    status: null,
    retryAfterSeconds: null,
    code,
  })
  const target = URL.parse(url)
  if (!target) return failed('refused', 'NOT_A_URL')
  const isHttps = target.protocol === 'https:'
  // It would wait until its deadline.
  if (isHttps && receiverTurns.pauseMs(workspaceId) > options.timeoutMs) return failed('tls', 'ERR_TLS_TOO_SLOW')
  try {
    const addresses = await addressesOf(target, options.resolve, deadline)
    if (addresses.length > maxAddresses) return failed('refused', 'TOO_MANY_ADDRESSES')
    const fault: FieldReason | null = webhookAddressFault(url, addresses, options.allowed)
    if (fault) return failed('refused', fault)
    const headers = { ...delivery.headers, ...(traceparent !== undefined && { traceparent }) }
    const receivers = { workspaceId, turns: receiverTurns }
    const agent = isHttps ? new LimitedTlsAgent(httpsOptions, receivers) : new LimitedAgent(httpOptions, receivers)
    const answer = await send(
      target,
      { ...delivery, headers },
      { agent, addresses: oneOfEachFamily(addresses) },
      deadline,
    )
    // Node's parser accepts three digits of any value. HTTP has no status below 100, and a report cannot have one.
    if (answer.statusCode! < 100) return failed('protocol', 'INVALID_STATUS')
    return outcomeOf(answer)
  } catch (error) {
    const code = (error as { code?: unknown }).code
    return deadline.aborted ? failed('timeout', null) : failed(resultOf(error), typeof code === 'string' ? code : null)
  }
}

/** All addresses of a host. @throws ResolveError, and Error at the deadline */
async function addressesOf(target: URL, resolve: Resolve, deadline: AbortSignal): Promise<string[]> {
  const literal = literalAddress(target)
  if (literal) return [literal]
  const aborted = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true })
  })
  const resolved = resolve(target.hostname).catch(cause => {
    throw new ResolveError(cause)
  })
  return Promise.race([resolved, aborted])
}

class ResolveError extends Error {
  readonly code: unknown

  constructor(cause: { code?: unknown }) {
    super('the name cannot be resolved', { cause })
    this.code = cause.code
  }
}

/** The first IPv4 and the first IPv6 address, so that a name with many addresses makes few connections. */
function oneOfEachFamily(addresses: readonly string[]) {
  return [addresses.find(address => !isIPv6(address)), addresses.find(isIPv6)].flatMap(address =>
    address === undefined ? [] : [{ address, family: isIPv6(address) ? 6 : 4 }],
  )
}

/** `addresses`: where to connect, whatever DNS returns by now. */
type Connecting = { agent: http.Agent; addresses: ReturnType<typeof oneOfEachFamily> }

/** Resolves with the headers of the response. */
function send(
  url: URL,
  delivery: Delivery,
  { agent, addresses }: Connecting,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const lookup: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family)
  return new Promise((resolve, reject) => {
    const options = {
      method: 'POST',
      headers: {
        ...delivery.headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(delivery.body),
        'user-agent': 'workspace-wallet-courier',
        connection: 'close',
      },
      agent,
      lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: familyTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      signal,
      // Also if NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
      rejectUnauthorized: true,
    }
    const request = http.request(url, options)
    let informational = 0
    request.on('information', () => {
      if (++informational > maxInformational) request.destroy(new Error('too many informational answers'))
    })
    const answered = (answer: http.IncomingMessage) => {
      request.destroy()
      resolve(answer)
    }
    request.on('socket', socket => {
      let bytes = 0
      socket.on('data', chunk => {
        bytes += chunk.length
        if (bytes > maxAnswerBytes) request.destroy(new Error('the answer is too large'))
      })
      endTlsFlood(request, socket)
    })
    request.on('response', answered)
    request.on('upgrade', answered)
    request.on('error', reject)
    request.end(delivery.body)
  })
}

/**
 * A receiver can send messages of TLS that are no data and need no answer until the deadline. Each takes few bytes, but the event loop
 * has work for it, so that thousands of them block all other attempts.
 */
function endTlsFlood(request: http.ClientRequest, socket: Socket): void {
  let handshakes = 0
  let tickets = 0
  // Node emits it again for each HelloRequest of TLS 1.2, although OpenSSL begins no other handshake.
  socket.on('secureConnect', () => {
    if (++handshakes > 1) request.destroy(new TlsError('ERR_TLS_RENEGOTIATION'))
  })
  socket.on('session', () => {
    if (++tickets > maxSessionTickets) request.destroy(new TlsError('ERR_TLS_TOO_MANY_TICKETS'))
  })
}

function outcomeOf({ statusCode = 0, headers }: http.IncomingMessage): AttemptOutcome {
  const isSuccess = statusCode >= 200 && statusCode < 300
  return {
    result: isSuccess ? 'success' : 'status',
    status: statusCode,
    retryAfterSeconds: isSuccess ? null : retryAfterSeconds(headers['retry-after'], Date.now()),
    code: null,
  }
}

const tlsCodes =
  /^(ERR_TLS_|ERR_SSL_|EPROTO|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_|INVALID_|CRL_|ERROR_IN_)/

function resultOf(error: unknown): AttemptResult {
  if (error instanceof ResolveError) return 'dns'
  const code = String((error as { code?: unknown }).code ?? '')
  if (tlsCodes.test(code)) return 'tls'
  return code.startsWith('E') ? 'connection' : 'protocol'
}
