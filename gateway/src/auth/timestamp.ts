import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import { header, headerFault } from './headers.ts'
import { toleranceSeconds } from './nonces/store.ts'
import { millisecondsPattern, secondsPattern } from './signing/header-patterns.ts'

/**
 * Step 4 of section 5.3: X-Timestamp is within 60 s of server time. Returns its text. Both times are compared in whole
 * seconds.
 *
 * @throws DomainError GA2013
 */
export function checkTimestamp(request: IncomingMessage, nowMs: number): string {
  const timestamp = header(request, 'x-timestamp')
  if (millisecondsPattern.test(timestamp))
    throw new DomainError('GA2013', { header: 'X-Timestamp', reason: 'MILLISECONDS', seconds: timestamp.slice(0, -3) })
  if (!secondsPattern.test(timestamp))
    throw new DomainError('GA2013', { header: 'X-Timestamp', reason: headerFault(request, 'X-Timestamp') })
  const secondsOff = Number(timestamp) - Math.floor(nowMs / 1000)
  if (Math.abs(secondsOff) > toleranceSeconds)
    throw new DomainError('GA2013', { header: 'X-Timestamp', reason: 'OFF', secondsOff })
  return timestamp
}
