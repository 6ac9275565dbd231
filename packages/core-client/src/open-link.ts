import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { batchPath, batchProtocol } from '@workspace-wallet/contract'
import { firstText } from '@workspace-wallet/runtime/first-text'
import type { AnswerLimits } from './answer-limits.ts'
import { CoreLink } from './core-link.ts'
import { CoreRejected } from './errors.ts'
import { foreignAnswer, requestFailure } from './request-failures.ts'

/** How long connecting may take, TLS included. */
const connectMs = 1_000
/** How long the response may take after that. Calls that wait for it end earlier, or go to another core. */
const responseMs = 15_000

/**
 * Opens a connection for batches: an HTTP request with the token, which core answers with `101 Switching Protocols`.
 *
 * @param url the origin of a core, or of what passes calls on to it
 * @param signal ends the attempt
 * @throws CoreUnreachable, CoreRejected. No call was sent
 */
export function openLink(
  url: string,
  { token, answers }: { token: string; answers: AnswerLimits },
  signal: AbortSignal,
): Promise<CoreLink> {
  const attempt = { sent: false, sentAtMs: performance.now() }
  const headers = { authorization: `Bearer ${token}`, connection: 'Upgrade', upgrade: batchProtocol }
  const request = (url.startsWith('https:') ? requestHttps : requestHttp)(new URL(batchPath, url), {
    agent: false,
    headers,
    signal,
  })
  const timeOut = (code: string) => request.destroy(Object.assign(new Error('timed out'), { code }))
  let timer = setTimeout(timeOut, connectMs, 'UND_ERR_CONNECT_TIMEOUT')
  request.on('socket', socket =>
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      timer = setTimeout(timeOut, responseMs, 'UND_ERR_HEADERS_TIMEOUT')
    }),
  )
  return new Promise<CoreLink>((resolve, reject) => {
    request.on('error', error => reject(requestFailure(url, error, attempt)))
    request.on('upgrade', (response, socket: Socket, head) => {
      if (response.headers.upgrade === batchProtocol)
        return resolve(new CoreLink(url, socket.setNoDelay(), head, answers))
      socket.destroy()
      reject(foreignAnswer(url, attempt, response.headers['content-type']))
    })
    request.on('response', async response => {
      const { statusCode = 0, headers } = response
      const text = await firstText(response)
      request.destroy()
      if (statusCode < 300) reject(foreignAnswer(url, attempt, headers['content-type']))
      else reject(new CoreRejected(url, statusCode, text, attempt.sentAtMs, attempt.sent))
    })
    request.end()
  }).finally(() => clearTimeout(timer))
}
