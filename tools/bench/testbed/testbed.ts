/** The programs of a run: PostgreSQL with durable commits, Redis, core and gateway. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { query } from '../../../cli/processes/database.ts'
import { type Postgres, startPostgres } from '../../../cli/processes/postgres.ts'
import { type Program, startProgram } from '../../../cli/processes/program.ts'
import { type Redis, startRedis } from '../../../cli/processes/redis.ts'
import { retryUnavailable } from '../../../cli/processes/retry.ts'
import { makeSecrets } from '../../../cli/start/secrets.ts'
import type { LoadPlan } from '../load/plan.ts'

export type Testbed = {
  directory: string
  postgres: Postgres
  redis: Redis
  keyEncryptionKeys: string
  /** In base64, as in LEDGER_CHAIN_KEY. */
  ledgerChainKey: string
  adminToken: string
  /** Creates a database with the schema. */
  createDatabase(name: string): Promise<Database>
  createEmptyDatabase(name: string): Promise<Database>
  /** Starts core, gateway or a server of the benchmark (in `servers`), with these options of Node. */
  start(path: string, environment: NodeJS.ProcessEnv, options?: string[]): Promise<Program>
  startCore(database: Database, options?: string[]): Promise<Program>
  startGateway(coreUrls: string[], options?: string[]): Promise<Program>
  /** One core and one gateway. */
  startService(database: Database, options?: string[]): Promise<Service>
  stop(): Promise<void>
}

export type Database = {
  name: string
  ownerUrl: string
  serviceUrl: string
  servicePassword: string
  /** Of a PgBouncer that core uses. */
  poolerUrl?: string
}

export type Service = { core: Program; gateway: Program; admin: CoreClient }

export type Signer = LoadPlan['signers'][number] & { workspaceId: string }

const template = 'bench_template'
const serviceRole = 'wallet_service'
const root = new URL('../../../', import.meta.url)

export async function startTestbed(parentDirectory: string): Promise<Testbed> {
  const directory = await mkdtemp(join(parentDirectory, 'wallet-bench-'))
  const stops: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  const stop = async () => {
    for (const each of stops.splice(0).toReversed()) await each()
  }
  try {
    // PostgreSQL may have to run as another user.
    await chmod(directory, 0o755)
    const secrets = makeSecrets()
    const postgres = await startPostgres({
      dataDir: join(directory, 'postgres'),
      port: 0,
      durable: true,
      superuserPassword: secrets.superuserPassword,
      removeWhenStopped: [directory],
    })
    stops.push(postgres.stop)
    const redis = await startRedis()
    stops.push(redis.stop)
    const databaseOf = (name: string): Database => ({
      name,
      ownerUrl: postgres.url(name),
      serviceUrl: postgres.url(name, serviceRole, secrets.servicePassword),
      servicePassword: secrets.servicePassword,
    })
    const create = async (name: string, from: string): Promise<Database> => {
      await query(postgres.url('postgres'), `create database ${name} template ${from}`)
      return databaseOf(name)
    }
    await migrate(await create(template, 'template1'))

    const start: Testbed['start'] = async (path, environment, options) => {
      const program = await startProgram(fileURLToPath(new URL(path, root)), environment, options)
      stops.push(program.stop)
      return program
    }
    const common = { NODE_ENV: 'production', LOG_LEVEL: 'warn', KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys }
    const startCore: Testbed['startCore'] = (database, options) =>
      start(
        'services/core/src/main.ts',
        {
          ...common,
          CORE_PORT: '0',
          // Only what is measured runs.
          VERIFY_EVERY_MINUTES: '0',
          DATABASE_URL: database.serviceUrl,
          ...(database.poolerUrl && { DATABASE_POOLER_URL: database.poolerUrl }),
          LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
          RECEIPT_KEYS: secrets.receiptKeys,
          SERVICE_TOKENS: `g:gateway:${secrets.gatewayToken},a:admin:${secrets.adminToken}`,
        },
        options,
      )
    const startGateway: Testbed['startGateway'] = (coreUrls, options) =>
      start(
        'gateway/src/main.ts',
        {
          ...common,
          GATEWAY_PORT: '0',
          INTERNAL_PORT: '0',
          CORE_URL: coreUrls.join(','),
          CORE_TOKEN: secrets.gatewayToken,
          REDIS_URL: redis.url,
        },
        options,
      )
    return {
      directory,
      postgres,
      redis,
      keyEncryptionKeys: secrets.keyEncryptionKeys,
      ledgerChainKey: secrets.ledgerChainKey,
      adminToken: secrets.adminToken,
      createDatabase: name => create(name, template),
      createEmptyDatabase: name => create(name, 'template1'),
      start,
      startCore,
      startGateway,
      async startService(database, options) {
        const core = await startCore(database, options)
        const gateway = await startGateway([core.url], options)
        const admin = createCoreClient({ url: core.url, token: secrets.adminToken })
        stops.push(() => admin.close())
        return { core, gateway, admin }
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** So that the next measurement starts without pages to write, and writes each page to the log in full the first time. */
export function checkpoint({ postgres }: Testbed): Promise<unknown> {
  return query(postgres.url('postgres'), 'checkpoint')
}

async function migrate({ ownerUrl, serviceUrl }: Database): Promise<void> {
  const script = fileURLToPath(new URL('services/core/src/migrate.ts', root))
  await promisify(execFile)(process.execPath, [script], {
    env: { PATH: process.env.PATH, MIGRATION_DATABASE_URL: ownerUrl, DATABASE_URL: serviceUrl },
  })
}

/** Creates a workspace with a key and this number of wallets with 100,000 dollars each. */
export async function makeSigner(admin: CoreClient, wallets: number): Promise<Signer> {
  const { workspaceId } = await retryUnavailable(() => admin.workspaces.create.mutate({ name: 'Bench' }))
  await retryUnavailable(() => admin.members.add.mutate({ workspaceId, userId: 'bench' }))
  const key = await retryUnavailable(() =>
    admin.apiKeys.create.mutate({
      workspaceId,
      ownerUserId: 'bench',
      scopes: [
        'wallet:read',
        'transfer:read',
        'transfer:create',
        'transfer:reverse',
        'hold:create',
        'hold:read',
        'event:read',
      ],
    }),
  )
  const ids = await Promise.all(
    Array.from({ length: wallets }, async () => {
      const wallet = { workspaceId, currency: 'USD', name: 'Bench' }
      const { walletId } = await retryUnavailable(() => admin.wallets.create.mutate(wallet))
      const deposit = { workspaceId, walletId, amount: '100000', bizId: randomUUID() }
      await retryUnavailable(() => admin.wallets.deposit.mutate(deposit))
      return walletId
    }),
  )
  return { ...key, workspaceId, wallets: ids }
}
