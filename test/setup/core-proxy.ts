/** An HTTP proxy between a gateway and core that sees every request and may change every answer. */
import { createServer, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from './listen.ts'

export type CoreProxy = { url: string; close(): void }

type Hooks = {
  onRequest?: (path: string, body: Buffer) => void
  changeAnswer?: (body: Buffer) => Buffer
}

export async function startCoreProxy(coreUrl: string, { onRequest, changeAnswer }: Hooks): Promise<CoreProxy> {
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    onRequest?.(incoming.url!, body)
    const { method, headers } = incoming
    const forwarded = request(new URL(incoming.url!, coreUrl), { method, headers }, async answer => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      if (changeAnswer) outgoing.end(changeAnswer(await buffer(answer)))
      else answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    forwarded.end(body)
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
