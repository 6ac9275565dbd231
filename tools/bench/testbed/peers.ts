/**
 * The service, what a team could write instead of it (servers/transaction.ts), and if asked for a published ledger of SQL functions
 * (servers/pgledger.ts), and the service behind PgBouncer. Each has the same number of wallets.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mintKeyId } from '@workspace-wallet/runtime'
import { query } from '../../../cli/processes/database.ts'
import { startPgBouncer } from '../../../cli/processes/pgbouncer.ts'
import type { Watched } from '../measure/cpu.ts'
import { benchId, installPlainSchema, walletIds, walletsEach } from './plain/install.ts'
import { type Database, makeSigner, type Signer, type Testbed } from './testbed.ts'

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

/** @param sources the directory with the sources of pgledger */
export async function startPgledger(
  testbed: Testbed,
  name: string,
  workspaces: number,
  sources: string,
): Promise<Peer> {
  const { ownerUrl } = await testbed.createEmptyDatabase(name)
  for (const file of [
    'vendor/scoville-pgsql-ulid/ulid-to-uuid.sql',
    'vendor/scoville-pgsql-ulid/uuid-to-ulid.sql',
    'pgledger.sql',
  ])
    await query(ownerUrl, await readFile(join(sources, file), 'utf8'))
  const signers = await Promise.all(
    Array.from({ length: workspaces }, async (_, at) => {
      const accounts = await query(
        ownerUrl,
        `select (pgledger_create_account('wallet ' || n, 'USD')).id from generate_series(1, ${walletsEach}) n`,
      )
      return makePeerSigner(
        at,
        accounts.map(({ id }) => id as string),
      )
    }),
  )
  return startExpress(testbed, 'pgledger', ownerUrl, signers)
}

/** The service behind PgBouncer. @param program PgBouncer 1.21 or newer */
export async function startPooled(testbed: Testbed, name: string, workspaces: number, program: string): Promise<Peer> {
  const database = await testbed.createDatabase(name)
  const password = randomBytes(16).toString('hex')
  await query(database.ownerUrl, `create role wallet_pooler login password '${password}' in role wallet_service`)
  const target = Object.assign(new URL(database.serviceUrl), { username: 'wallet_pooler', password })
  const pgbouncer = await startPgBouncer(target.href, { program })
  const service = await startServiceOn(testbed, { ...database, poolerUrl: pgbouncer.url }, workspaces)
  return {
    ...service,
    watched: { ...service.watched, pgbouncer: pgbouncer.pid() },
    async stop() {
      await service.stop()
      await pgbouncer.stop()
    },
  }
}

async function startService(testbed: Testbed, name: string, workspaces: number): Promise<Peer> {
  return startServiceOn(testbed, await testbed.createDatabase(name), workspaces)
}

async function startServiceOn(testbed: Testbed, database: Database, workspaces: number): Promise<Peer> {
  const { core, gateway, admin } = await testbed.startService(database)
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
  const signers = Array.from({ length: workspaces }, (_, at) => makePeerSigner(at, walletIds(at + 1)))
  return startExpress(testbed, 'transaction', ownerUrl, signers)
}

function makePeerSigner(at: number, wallets: string[]): Signer {
  const apiSecret = randomBytes(32).toString('base64url')
  return { apiKey: mintKeyId('bench'), apiSecret, workspaceId: benchId(at + 1), wallets }
}

async function startExpress(testbed: Testbed, server: string, ownerUrl: string, signers: Signer[]): Promise<Peer> {
  const program = await testbed.start(`tools/bench/testbed/servers/${server}.ts`, {
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
