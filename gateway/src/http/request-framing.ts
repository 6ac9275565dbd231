import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'

const versions = ['1.1', '1.0']

/**
 * Rejects what Node accepts and RFC 9112 forbids, because a proxy may read it as another request: another version, no Host or
 * two (section 3.2), and a transfer coding besides chunked (section 6.1).
 *
 * @throws DomainError S012
 */
export function checkFraming({ headers, rawHeaders, httpVersion }: IncomingMessage): void {
  if (!versions.includes(httpVersion))
    throw new DomainError('S012', { field: 'HTTP version', reason: 'NOT_ONE_OF', limit: versions.join(', ') })
  if (headers.host === undefined && httpVersion === '1.1')
    throw new DomainError('S012', { field: 'Host', reason: 'REQUIRED' })
  if (isRepeated(rawHeaders, 'host')) throw new DomainError('S012', { field: 'Host', reason: 'REPEATED' })
  const coding = headers['transfer-encoding']
  if (coding === undefined) return
  // Version 1.0 has no transfer codings.
  if (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')
    throw new DomainError('S012', { field: 'Transfer-Encoding', reason: 'NOT_ONE_OF', limit: 'chunked' })
}

/** @param rawHeaders names and values in turn */
function isRepeated(rawHeaders: string[], lowerCaseName: string): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count++
  }
  return count > 1
}
