/** The service, and what a team could write instead of it (servers/transaction.ts), each with the same wallets. */
import { randomBytes } from 'node:crypto'
import { mintKeyId } from '@workspace-wallet/runtime'
import type { Watched } from '../measure/cpu.ts'
import { benchId, installPlainSchema, walletIds, walletsEach } from './plain/install.ts'
import { makeSigner, type Signer, type Testbed } from './testbed.ts'

export type Peer = {
  port: number
  /** A key of each workspace. */
  signers: Signer[]
  watched: Watched
  stop(): Promise<void>
}

export const peerNames = ['service', 'transaction'] as const
export type PeerName = (typeof peerNames)[number]

/** @param workspaces how many, 8 at most */
export async function startPeers(
  testbed: Testbed,
  database: string,
  workspaces: number,
): Promise<Record<PeerName, Peer>> {
  return {
    service: await startService(testbed, `${database}_service`, workspaces),
    transaction: await startTransaction(testbed, `${database}_transaction`, workspaces),
  }
}

async function startService(testbed: Testbed, name: string, workspaces: number): Promise<Peer> {
  const { core, gateway, admin } = await testbed.startService(await testbed.createDatabase(name))
  const signers = await Promise.all(Array.from({ length: workspaces }, () => makeSigner(admin, walletsEach)))
  return {
    port: gateway.port,
    signers,
    watched: { gateway: gateway.process.pid!, core: core.process.pid!, ...storesOf(testbed) },
    async stop() {
      await gateway.stop()
      await core.stop()
    },
  }
}

async function startTransaction(testbed: Testbed, name: string, workspaces: number): Promise<Peer> {
  const { ownerUrl } = await testbed.createEmptyDatabase(name)
  await installPlainSchema(ownerUrl)
  const signers = Array.from({ length: workspaces }, (_, at) => ({
    apiKey: mintKeyId('bench'),
    apiSecret: randomBytes(32).toString('base64url'),
    workspaceId: benchId(at + 1),
    wallets: walletIds(at + 1),
  }))
  const program = await testbed.start('tools/bench/testbed/servers/transaction.ts', {
    NODE_ENV: 'production',
    DATABASE_URL: ownerUrl,
    REDIS_URL: testbed.redis.url,
    KEYS: JSON.stringify(signers),
  })
  return {
    port: program.port,
    signers,
    watched: { express: program.process.pid!, ...storesOf(testbed) },
    async stop() {
      await program.stop()
    },
  }
}

function storesOf({ postgres, redis }: Testbed): Watched {
  return { postgres: postgres.pid, redis: redis.pid() }
}
