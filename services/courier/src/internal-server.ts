import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import {
  defaultBodyMemoryBytes,
  LimitedServer,
  type Readiness,
  senderByNetwork,
  UnreadAnswers,
} from '@workspace-wallet/runtime'
import { createMetricsReader } from '@workspace-wallet/runtime/metrics-reader'
import type { Registry } from 'prom-client'

/** Connections of probes and of Prometheus. */
const limits = { connections: 256 }

/** The internal listener: `/healthz`, `/readyz` and `/metrics`, for operators. */
export function createInternalServer(registry: Registry, readiness: () => Promise<Readiness>): Server {
  const readMetrics = createMetricsReader(registry)

  async function answer({ url: path, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path === '/metrics') {
      const { bytes, type } = await readMetrics(headers.accept)
      send(response, 200, bytes, type)
    } else if (path === '/healthz') send(response, 200, '{"status":"ok"}')
    else if (path === '/readyz') {
      const found = await readiness()
      send(response, found.status === 'ready' ? 200 : 503, JSON.stringify(found))
    } else send(response, 404, '{"status":"not found"}')
  }
  const server = new LimitedServer(limits, {}, (request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  new UnreadAnswers(server, { limitBytes: defaultBodyMemoryBytes, senderOf: senderByNetwork })
  return server
}

function send(response: ServerResponse, status: number, body: string | Buffer, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
