/**
 * The trivial upstream of gateway and nginx, which answers from memory. For the gateway, it is a core with one key, that of
 * the environment. For nginx, every path is the balance of one wallet.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import {
  type BatchAnswer,
  type BatchCall,
  batchProtocol,
  Decimal,
  type KeyAccess,
  mintId,
  noncePartitionCount,
  packBatch,
  unpackBatch,
  type WalletBalance,
} from '@workspace-wallet/contract'
import type { ProcedureOutput, ProcedurePath } from '@workspace-wallet/core-client'
import { acceptUpgrade, detachUpgrade, encryptSecret, parseKeyRing } from '@workspace-wallet/runtime'
import { FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'

const { API_KEY: apiKey = '', API_SECRET: apiSecret = '', KEY_ENCRYPTION_KEYS: keyRing = '' } = process.env

const workspaceId = mintId('workspace')
const access: KeyAccess = {
  apiKey,
  workspaceId,
  status: 'ACTIVE',
  expiresAt: null,
  workspaceExists: true,
  ownerIsMember: true,
  scopes: ['wallet:read', 'transfer:read', 'transfer:create'],
  ipAllowlist: [],
  secrets: [
    {
      version: 1,
      ciphertext: encryptSecret(parseKeyRing(keyRing), { id: apiKey, workspaceId, version: 1 }, apiSecret),
      validUntil: null,
    },
  ],
}
const epoch = randomUUID()
const balance: WalletBalance = {
  walletId: mintId('wallet'),
  currency: 'USD',
  balance: new Decimal('100000.00'),
  held: new Decimal('0.00'),
  available: new Decimal('100000.00'),
  sequence: 1,
  updatedAt: new Date(),
}

const partitions = Array.from({ length: noncePartitionCount }, (_, at) => at)
const latest: Record<string, number[]> = {}
const procedures: Readonly<Record<string, unknown>> = {
  'access.beginNonceGeneration': { first: partitions, latest: partitions },
  'access.latestNonceGenerations': latest,
  'access.nonceKey': { nonceKey: 'bench' },
  'access.changes': { places: [{ revision: 1, epoch, complete: true, apiKeys: [] }], checksumKey: 'bench' },
  'access.lookup': { revisions: [1], keys: [{ ...access, place: 0 }], unavailable: [] },
  'access.markUsed': undefined,
  'instances.report': undefined,
  'instances.leave': undefined,
  'wallets.balance': balance,
} satisfies { [Path in ProcedurePath]?: ProcedureOutput<Path> }

function answer({ path, input }: BatchCall): BatchAnswer {
  if (path === 'access.beginNonceGeneration') latest[(input as { generationId: string }).generationId] = partitions
  if (!Object.hasOwn(procedures, path))
    throw new Error(`The upstream has no procedure ${path}: add it to servers/upstream.ts.`)
  return { data: procedures[path] }
}

// The envelope that the gateway makes of the balance.
const json = JSON.stringify({
  version: '1.3.0',
  timestamp: Date.now(),
  success: true,
  code: '2000',
  message: 'SUCCESS',
  data: { ...balance, balance: '100000.00', held: '0.00', available: '100000.00' },
})

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) })
  response.end(json)
})
server.on('upgrade', (_request: IncomingMessage, socket: Socket) => {
  detachUpgrade(socket)
  acceptUpgrade(socket, batchProtocol)
  const reader = new FrameReader({
    onHead({ kind, id }) {
      if (kind === frameKinds.ping) socket.write(packFrame(frameKinds.pong, id))
      return kind === frameKinds.batch
    },
    onFrame({ id }, body) {
      const answers = packBatch((unpackBatch(body) as BatchCall[]).map(answer))
      socket.write(packFrame(frameKinds.answers, id, answers))
    },
  })
  socket.on('data', piece => reader.push(piece))
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
// Not process.exit(), which can hang: see packages/runtime/src/end-program.ts.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
