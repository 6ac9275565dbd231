import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { hasUnreadBody, limitConnections, PipelineLimit, type Readiness } from '@workspace-wallet/runtime'
import { createMetricsReader } from '@workspace-wallet/runtime/metrics-reader'
import type { Registry } from 'prom-client'

/** Maximum number of connections: those of probes and of Prometheus. One client address gets half. */
const connectionLimit = 256
/** Maximum number of pipelined requests of one connection. */
const pipelineLimit = 4

/** The internal listener: `/healthz`, `/readyz` and `/metrics`, for operators. */
export function createInternalServer(registry: Registry, readiness: () => Promise<Readiness>): Server {
  const readMetrics = createMetricsReader(registry)

  async function answer({ url: path, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path === '/metrics') {
      const { text, type } = await readMetrics(headers.accept)
      send(response, 200, text, type)
    } else if (path === '/healthz') send(response, 200, '{"status":"ok"}')
    else if (path === '/readyz') {
      const found = await readiness()
      send(response, found.status === 'ready' ? 200 : 503, JSON.stringify(found))
    } else send(response, 404, '{"status":"not found"}')
  }
  const pipelines = new PipelineLimit(pipelineLimit)
  const server = createServer((request, response) => {
    pipelines.add(request, response)
    answer(request, response).catch(() => response.destroy())
  })
  pipelines.watch(server)
  limitConnections(server, connectionLimit)
  return server
}

function send(response: ServerResponse, status: number, body: string, type = 'application/json'): void {
  if (hasUnreadBody(response.req)) response.setHeader('connection', 'close')
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
