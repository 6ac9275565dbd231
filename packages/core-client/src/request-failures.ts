/** Explains why an HTTP request to core failed, from the errors of Node and undici. */
import { CoreUnreachable, mayBeExecuted, type NoAnswerError, useUrlOfCore } from './errors.ts'

/** `sent`: whether core may have executed the calls. `sentAtMs`: when it was sent, on the clock of `performance.now()`. */
type Attempt = { readonly sent: boolean; readonly sentAtMs: number }

/**
 * The error for a request without a response.
 *
 * @param url of the server, without credentials
 * @param error as Node threw it
 */
export function requestFailure(url: string, error: unknown, { sent, sentAtMs }: Attempt): CoreUnreachable {
  const code = codeOf(error)
  // These errors contain what the server sent, and a server may echo the token. So none of them is the cause.
  if ((error as Error).name === 'HTTPParserError' || code?.startsWith('HPE_')) {
    const sentence = `${url} does not answer in HTTP: if it uses TLS, begin the URL with https://, else ${useUrlOfCore}`
    return new CoreUnreachable(sentence, sent, sentAtMs)
  }
  const isUnreachable = wasNeverSent(error) || (!sent && code === 'EPROTO')
  const sentence = isUnreachable ? unreachable(url, code) : withoutAnswer(url, code)
  return new CoreUnreachable(sent ? `${sentence}; ${mayBeExecuted}` : sentence, sent, sentAtMs, error)
}

/** The error for an exchange whose connection was lost. */
export function connectionLost(url: string, { sent, sentAtMs }: Attempt, error?: Error): CoreUnreachable {
  return new CoreUnreachable(`${withoutAnswer(url, undefined)}; ${mayBeExecuted}`, sent, sentAtMs, error)
}

/** The error for an exchange whose connection was closed again before it was sent. */
export function closedAtOnce(url: string): NoAnswerError {
  return new CoreUnreachable(withoutAnswer(url, undefined), false)
}

export function closedClient(): CoreUnreachable {
  return new CoreUnreachable('the call was not sent, because this client is closed', false)
}

/** The error for an exchange that core did not answer in time. */
export function answeredTooLate(url: string, { sent, sentAtMs }: Attempt): CoreUnreachable {
  const sentence = withoutAnswer(url, 'UND_ERR_HEADERS_TIMEOUT')
  return new CoreUnreachable(sent ? `${sentence}; ${mayBeExecuted}` : sentence, sent, sentAtMs)
}

export function tooLongAnswer(url: string, { sent, sentAtMs }: Attempt): CoreUnreachable {
  return new CoreUnreachable(`${url} sent more than core does, so it is not core: ${useUrlOfCore}`, sent, sentAtMs)
}

/** The error for a response with a success status that is not from core, such as an HTML page. */
export function foreignAnswer(url: string, { sent, sentAtMs }: Attempt, type?: string | null): CoreUnreachable {
  const [mediaType] = /^[\w.+-]{1,60}\/[\w.+-]{1,60}/.exec(type ?? '') ?? []
  const answer = mediaType ? `a response of the type ${mediaType}` : 'something else'
  return new CoreUnreachable(`${url} returned ${answer}, so it is not core: ${useUrlOfCore}`, sent, sentAtMs)
}

/** The error for a streamed response that ended without its last part. */
export function streamEnded(): CoreUnreachable {
  const sentence = 'the answer of core ended too early, because core stopped or the connection broke: retry it'
  return new CoreUnreachable(sentence, true)
}

/** The error for a call that was not sent, because none of the cores answers health checks. */
export function unresponsive(urls: string[]): CoreUnreachable {
  const sentence = `no core responds at ${urls.join(', ')}, so the call was not sent: check that core runs, and retry`
  return new CoreUnreachable(sentence, false)
}

/**
 * Whether a request failed before any byte of it was sent. Errors that can also occur on an established connection, such
 * as an unreachable host or a time-out, count only if connecting failed.
 */
export function wasNeverSent(error: unknown): boolean {
  const { code, syscall, errors } = error as { code?: string; syscall?: string; errors?: unknown[] }
  // A host name with several addresses fails with one error for each.
  if (errors) return errors.every(wasNeverSent)
  return (
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    code === 'UND_ERR_CONNECT_TIMEOUT' ||
    isNotTls(code) ||
    isBadCertificate(code)
  )
}

/** Why nothing was sent. */
function unreachable(url: string, code: string | undefined): string {
  if (code === 'ECONNREFUSED') return `nothing listens at ${url}: start core there, or correct the host and port`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the host name of ${url} cannot be resolved (${code}): correct it, or check the DNS of this machine`
  if (isNotTls(code) || code === 'EPROTO') return `${url} does not use TLS: begin the URL with http:// instead`
  if (isBadCertificate(code))
    return `the certificate of ${url} is not trusted (${code}): use the host name in it, and set NODE_EXTRA_CA_CERTS to its authority`
  return `${url} cannot be reached${code ? ` (${code})` : ''}: check the host and port, and that no firewall blocks them`
}

/** Why a connection that was established gave no answer. */
function withoutAnswer(url: string, code: string | undefined): string {
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return `${url} did not answer in time: check that it is the URL of core, and the load of core`
  return `${url} closed the connection before it answered: check that core runs, and whether the URL must begin with https://`
}

/** The code of an error, or else of its first part or its cause. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, errors, cause } = error as { code?: unknown; errors?: unknown[]; cause?: unknown }
  return typeof code === 'string' ? code : (codeOf(errors?.[0]) ?? codeOf(cause))
}

/** Whether the server answered the first message of TLS with something else. */
function isNotTls(code: string | undefined): boolean {
  return code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG'
}

/** Whether this client rejected the server's certificate. */
function isBadCertificate(code = ''): boolean {
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' || /SELF_SIGNED_CERT|^CERT_|^UNABLE_TO_(GET|VERIFY)/.test(code)
}
