import { createServer, type Server } from 'node:http'
import { limitConnections, limitPieces, PipelineLimit } from '@workspace-wallet/runtime'
import type { Express } from 'express'

/** Maximum number of connections: each can have a connection to core. One client address gets half. */
const connectionLimit = 1024
/** Maximum number of pipelined requests of one connection. Browsers and clients of core make one at a time. */
const pipelineLimit = 4

/** The server of the internal listener. Whoever reaches it shares the process with the public one, with or without a token. */
export function createInternalServer(app: Express): Server {
  const pipelines = new PipelineLimit(pipelineLimit)
  const server = createServer({ headersTimeout: 10_000, connectionsCheckingInterval: 1_000 }, (request, response) => {
    if (!pipelines.accepts(request, response)) return
    limitPieces(request)
    app(request, response)
  })
  limitConnections(server, connectionLimit)
  return server
}
