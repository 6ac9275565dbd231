import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { batchPath, batchProtocol } from '@workspace-wallet/contract'
import { detachUpgrade, isUpgradeTo, limitConnections, PipelineLimit } from '@workspace-wallet/runtime'
import type { Express } from 'express'
import { tunnelBatches } from './batch-tunnel.ts'

/** Maximum number of connections: each can have a connection to core. One client address gets half. */
const connectionLimit = 1024
/** Maximum number of pipelined requests of one connection. Browsers and clients of core make one at a time. */
const pipelineLimit = 4

const isBatches = (request: IncomingMessage) => request.url === batchPath && isUpgradeTo(request, batchProtocol)

/** The server of the internal listener. Whoever reaches it shares the process with the public one, with or without a token. */
export function createInternalServer(app: Express, tunnel: Parameters<typeof tunnelBatches>[0]): Server {
  const pipelines = new PipelineLimit(pipelineLimit)
  const settings = {
    headersTimeout: 10_000,
    connectionsCheckingInterval: 1_000,
    shouldUpgradeCallback: isBatches,
  }
  const server = createServer(settings, (request, response) => {
    pipelines.add(request, response)
    app(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    detachUpgrade(socket)
    if (isBatches(request) && !pipelines.isPending(socket)) tunnelBatches(tunnel, request, socket, head)
    else socket.destroy()
  })
  pipelines.watch(server)
  limitConnections(server, connectionLimit)
  return server
}
