import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import type { Socket } from 'node:net'
import { batchPath, batchProtocol } from '@workspace-wallet/contract'
import { acceptUpgrade, Rotation, refuseUpgrade, type SampledLog } from '@workspace-wallet/runtime'
import { firstText } from '@workspace-wallet/runtime/first-text'
import { type CoreUrls, noteNoAnswer } from './core-urls.ts'

/** How long a core may take to open a connection for batches. */
const openMs = 10_000

/**
 * Passes a connection for batches on to a core, which checks its token. What the core refuses is passed back.
 *
 * @param onOpen called with the connection to the core
 */
export function tunnelBatches(
  { cores, sampled }: { cores: CoreUrls; sampled: SampledLog },
  { headers, socket: { remoteAddress = '' } }: IncomingMessage,
  caller: Socket,
  head: Buffer,
  onOpen: (core: Socket) => void,
): void {
  const url = cores.next()
  const request = requestHttp(new URL(batchPath, url), {
    agent: false,
    headers: {
      ...(headers.authorization !== undefined && { authorization: headers.authorization }),
      connection: 'Upgrade',
      upgrade: batchProtocol,
      'x-forwarded-for': remoteAddress,
    },
  })
  // Whatever arrives meanwhile.
  const timer = setTimeout(() => request.destroy(), openMs)
  caller.once('close', () => request.destroy())
  request.once('close', () => clearTimeout(timer))
  request.on('upgrade', (_response, core: Socket, coreHead) => {
    clearTimeout(timer)
    core.on('error', () => core.destroy()).setTimeout(0)
    acceptUpgrade(caller, batchProtocol)
    caller.write(coreHead)
    core.write(head)
    // Core has checked it.
    const token = headers.authorization ?? ''
    connect(caller, core, token)
    connect(core, caller, token)
    onOpen(core)
  })
  request.on('response', async response => {
    refuseUpgrade(caller, response.statusCode ?? 502, await firstText(response))
  })
  request.on('error', error => {
    if (caller.destroyed) return
    noteNoAnswer(cores, sampled, url, error)
    // No call was sent.
    refuseUpgrade(caller, 503, '{}')
  })
  request.end()
}

/** Of the connections of a token, in both directions: Node would read megabytes of each before it serves others. */
const rotation = new Rotation()

/** Passes on what `from` sends, at the pace of `to`, and its end. */
function connect(from: Socket, to: Socket, token: string): void {
  to.setNoDelay()
  from.once('close', () => to.destroySoon())
  // After an error, both are closed.
  passOn(from, to, token).catch(() => {})
}

async function passOn(from: Socket, to: Socket, token: string): Promise<void> {
  for await (const piece of from.iterator({ destroyOnReturn: false })) {
    const turn = rotation.next(token, from)
    if (!to.write(piece)) await once(to, 'drain')
    await turn
  }
  to.end()
}
