import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { inject } from 'vitest'
import { pickFreePort } from '../../cli/processes/ports.ts'
import { type Program, startProgram } from '../../cli/processes/program.ts'
import { createOtherHome, createTestDatabase, hasOtherHome, type TestDatabase, waitingForLocks } from './database.ts'
import { nodeOptions } from './node-options.ts'
import { createTenant, createWallet } from './workspaces.ts'

const coreProgram = fileURLToPath(new URL('../../services/core/src/main.ts', import.meta.url))
const courierProgram = fileURLToPath(new URL('../../services/courier/src/main.ts', import.meta.url))
const gatewayProgram = fileURLToPath(new URL('../../gateway/src/main.ts', import.meta.url))

export type Wallet = { walletId: string; name: string; currency: string; balance: string }

/** Cores and gateways as separate processes, on a database of their own, with a workspace of funded wallets. */
export type System = {
  database: TestDatabase
  cores: Program[]
  gateways: Program[]
  baseUrl: string
  coreUrl: string
  adminToken: string
  gatewayToken: string
  serviceToken: string
  fundingToken: string
  courierToken: string
  /** LEDGER_CHAIN_KEY: 32 bytes in base64. */
  chainKey: string
  /** RECEIPT_KEYS, with the key `r1`. */
  receiptKeys: string
  admin: CoreClient
  /** With the token of a gateway. */
  gatewayClient: CoreClient
  workspaceId: string
  apiKey: string
  apiSecret: string
  wallets: Wallet[]
  startCore(environment?: NodeJS.ProcessEnv): Promise<Program>
  startGateway(environment?: NodeJS.ProcessEnv): Promise<Program>
  startCourier(environment?: NodeJS.ProcessEnv): Promise<Program>
  stop(): Promise<void>
}

export type SystemOptions = {
  /** Migrated. Without it, a new database of the shared server, dropped at the end. */
  database?: Pick<TestDatabase, 'ownerUrl' | 'serviceUrl'>
  cores?: number
  /** Cores wait for locks without a limit: a test may hold a lock for as long as it needs. */
  waitsForLocks?: boolean
  gateways?: number
  /** Each gateway calls only one core, in order, so that several cores post to the same workspace. */
  oneCorePerGateway?: boolean
  coreEnvironment?: NodeJS.ProcessEnv
  gatewayEnvironment?: NodeJS.ProcessEnv
  /** A file for the standard output of all programs. */
  stdout?: number
}

export async function startSystem(options: SystemOptions = {}): Promise<System> {
  const database = options.database ? { ...options.database, drop: async () => {} } : await createTestDatabase()
  const home = hasOtherHome ? await createOtherHome() : null
  const secret = () => randomBytes(32).toString('base64url')
  const [gatewayToken, serviceToken, fundingToken] = [secret(), secret(), secret()]
  const [courierToken, adminToken] = [secret(), secret()]
  const keys = { KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` }
  const programs: Program[] = []
  const cores: Program[] = []
  const gateways: Program[] = []

  async function start(program: string, environment: NodeJS.ProcessEnv): Promise<Program> {
    const started = await startProgram(program, environment, nodeOptions, options.stdout)
    programs.push(started)
    return started
  }
  async function startCore(environment: NodeJS.ProcessEnv = {}): Promise<Program> {
    const core = await start(coreProgram, {
      ...keys,
      CORE_PORT: String(await pickFreePort()),
      ...placesOf([...(home ? [home.serviceUrl] : []), database.serviceUrl], options.waitsForLocks ?? false),
      DATABASE_WRITERS: 'postgres',
      LEDGER_CHAIN_KEY: chainKey,
      RECEIPT_KEYS: receiptKeys,
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      SERVICE_TOKENS: `g:gateway:${gatewayToken},s:service:${serviceToken},f:funding:${fundingToken},c:courier:${courierToken},a:admin:${adminToken}`,
      VERIFY_EVERY_MINUTES: '0',
      LOG_LEVEL: 'warn',
      ...options.coreEnvironment,
      ...environment,
    })
    cores.push(core)
    return core
  }
  async function startGateway(environment: NodeJS.ProcessEnv = {}): Promise<Program> {
    const gateway = await start(gatewayProgram, {
      ...keys,
      GATEWAY_PORT: String(await pickFreePort()),
      INTERNAL_PORT: '0',
      CORE_URL: cores.map(core => core.url).join(','),
      CORE_TOKEN: gatewayToken,
      REDIS_URL: inject('redisUrl'),
      // Rendering the documentation takes a third of the CPU time of a start.
      DOCS: 'off',
      LOG_LEVEL: 'warn',
      ...options.gatewayEnvironment,
      ...environment,
    })
    gateways.push(gateway)
    return gateway
  }

  function startCourier(environment: NodeJS.ProcessEnv = {}): Promise<Program> {
    return start(courierProgram, {
      INTERNAL_PORT: '0',
      CORE_URL: cores.map(core => core.url).join(','),
      CORE_TOKEN: courierToken,
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      LOG_LEVEL: 'warn',
      ...environment,
    })
  }

  const chainKey = randomBytes(32).toString('base64')
  const receiptKeys = `r1:${randomBytes(32).toString('base64')}`
  for (let count = 0; count < (options.cores ?? 1); count++) await startCore()
  for (let at = 0; at < (options.gateways ?? 1); at++)
    await startGateway(options.oneCorePerGateway ? { CORE_URL: cores[at]!.url } : {})
  const coreUrl = cores[0]!.url
  const admin = createCoreClient({ url: coreUrl, token: adminToken })
  const gatewayClient = createCoreClient({ url: coreUrl, token: gatewayToken })
  const baseUrl = gateways[0]?.url ?? ''
  const tenant = await createTenant({ admin, baseUrl })
  const wallets: Wallet[] = []
  for (const [name, currency, amount] of [
    ['Main', 'USD', '1000.00'],
    ['Savings', 'USD', '250.00'],
    ['Travel', 'EUR', '500.00'],
  ] as const) {
    const { workspaceId } = tenant
    const walletId = await createWallet({ admin, workspaceId }, { currency, name, deposits: [amount] })
    wallets.push({ walletId, name, currency, balance: amount })
  }

  return {
    database,
    cores,
    gateways,
    coreUrl,
    adminToken,
    gatewayToken,
    serviceToken,
    fundingToken,
    courierToken,
    chainKey,
    receiptKeys,
    admin,
    gatewayClient,
    ...tenant,
    wallets,
    startCore,
    startGateway,
    startCourier,
    async stop() {
      await Promise.all([admin.close(), gatewayClient.close()])
      await Promise.all(programs.map(program => program.stop()))
      await database.drop()
      await home?.drop()
    },
  }
}

function placesOf(urls: readonly string[], waitsForLocks: boolean): NodeJS.ProcessEnv {
  const [first, ...others] = waitsForLocks ? urls.map(url => waitingForLocks(url)) : urls
  return { DATABASE_URL: first, DATABASE_URLS: others.join(' ') }
}
