import type { Server } from 'node:http'
import { batchPath, batchProtocol } from '@workspace-wallet/contract'
import { LimitedServer, senderByNetwork, UnreadAnswers } from '@workspace-wallet/runtime'
import type { Express } from 'express'
import { tunnelBatches } from './batch-tunnel.ts'

/** Each connection can have one to core. */
const limits = { connections: 1024 }

/**
 * The server of the internal listener. Whoever reaches it shares the process with the public one, with or without a token.
 *
 * @param memoryBytes for answers that are not read
 */
export function createInternalServer(
  app: Express,
  tunnel: Parameters<typeof tunnelBatches>[0],
  memoryBytes: number,
): Server {
  const server = new LimitedServer(limits, {}, app, {
    protocol: batchProtocol,
    path: batchPath,
    open: (request, socket, head) => tunnelBatches(tunnel, request, socket, head),
  })
  new UnreadAnswers(server, { limitBytes: memoryBytes, senderOf: senderByNetwork })
  return server
}
