import type { Server } from 'node:http'
import type { Socket } from 'node:net'
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
    open(request, socket, head) {
      // Later, it may have no address any more.
      const sender = senderByNetwork(request)
      tunnelBatches(tunnel, request, socket, head, core => {
        const weigh = () => kept(socket) + kept(core)
        unread.watch(socket, { sender: () => sender, weigh })
      })
    },
  })
  const unread = new UnreadAnswers(server, {
    limitBytes: memoryBytes,
    senderOf: senderByNetwork,
    onClosed: address =>
      tunnel.sampled.write('unread', {
        level: 'warn',
        fields: { address },
        message: 'a connection was closed: its answers were not read',
      }),
  })
  return server
}

/** What this process keeps of both directions of a connection, in bytes. */
const kept = ({ readableLength, writableLength }: Socket) => readableLength + writableLength
