/** A proxy between a gateway and core that sees every batch and may change its answers. */
import { createServer } from 'node:http'
import type { BatchCall } from '@workspace-wallet/contract'
import { openBatches, serveBatches } from './batches.ts'
import { listen } from './listen.ts'

export type CoreProxy = { url: string; close(): void }

type Hooks = {
  onBatch?: (calls: BatchCall[]) => void
  changeAnswer?: (body: Buffer, calls: BatchCall[]) => Buffer
}

/** @param token of the gateway */
export async function startCoreProxy(
  core: { url: string; token: string },
  { onBatch, changeAnswer = body => body }: Hooks,
): Promise<CoreProxy> {
  const server = createServer(async (request, response) => {
    const answer = await fetch(core.url + request.url).catch(() => null)
    if (answer) response.writeHead(answer.status).end(await answer.text())
    else response.destroy()
  })
  const upstream = await openBatches(core.url, core.token)
  serveBatches(server, async ({ calls, reply, reject }, body) => {
    onBatch?.(calls)
    const { status, body: answers } = await upstream.send(body)
    if (status === 200) reply(changeAnswer(answers, calls))
    else reject(status || 502)
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      upstream.socket.destroy()
      server.closeAllConnections()
      server.close()
    },
  }
}
