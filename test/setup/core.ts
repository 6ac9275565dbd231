/** Core inside the test's own process, on a database of its own: for tests of its modules. */
import { type KeyObject, randomBytes } from 'node:crypto'
import type { Scope, VerifyReport } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import { openCore } from '../../services/core/src/compose.ts'
import { coreSchema } from '../../services/core/src/config.ts'
import { verifyLedger } from '../../services/core/src/integrity/verify/verify.ts'
import type { Places } from '../../services/core/src/places/places.ts'
import { appRouter } from '../../services/core/src/routers/app-router.ts'
import type { Core } from '../../services/core/src/trpc/context.ts'
import type { Role } from '../../services/core/src/trpc/service-token.ts'
import { createOtherHome, createTestDatabase, hasOtherHome, type TestDatabase, waitingForLocks } from './database.ts'

export type TestCore = {
  database: TestDatabase
  /** The place of `database`. */
  core: Core
  places: Places<Core>
  chainKey: KeyObject
  /** Calls core's procedures with the rights of this role. */
  as(role: Role): ReturnType<typeof appRouter.createCaller>
  /** Closes core and drops the database. */
  close(): Promise<void>
}

type TestCoreOptions = {
  /** Settings of core's sessions, as in `options` of libpq. */
  options?: string
  /** Another database than a new one with the product's schema. */
  database?: TestDatabase
  /** Databases of further places. */
  furtherPlaces?: readonly TestDatabase[]
  /** Called before core connects. */
  prepare?: (database: TestDatabase) => Promise<void>
}

export async function openTestCore({
  options = '',
  prepare,
  database: given,
  furtherPlaces = [],
}: TestCoreOptions = {}): Promise<TestCore> {
  const database = given ?? (await createTestDatabase())
  await prepare?.(database)
  const home = hasOtherHome ? [await createOtherHome()] : []
  const [first, ...others] = [...home, database, ...furtherPlaces].map(({ serviceUrl }) =>
    waitingForLocks(serviceUrl, options),
  )
  const key = () => randomBytes(32).toString('base64')
  const config = coreSchema.parse({
    DATABASE_URL: first,
    DATABASE_URLS: others.join(' '),
    DATABASE_WRITERS: 'postgres',
    KEY_ENCRYPTION_KEYS: `k1:${key()}`,
    LEDGER_CHAIN_KEY: key(),
    RECEIPT_KEYS: `r1:${key()}`,
    VERIFY_EVERY_MINUTES: '0',
    SERVICE_TOKENS: `test:admin:${'x'.repeat(32)}`,
  })
  const opened = await openCore(
    config,
    createLog('test', process.env.TEST_LOG ?? 'silent').log,
    new AbortController().signal,
  )
  const core = opened.places.all[home.length]!
  return {
    database,
    core,
    places: opened.places,
    chainKey: config.LEDGER_CHAIN_KEY,
    as: role => appRouter.createCaller({ places: opened.places, core, token: { name: 'test', role } }),
    async close() {
      await opened.close()
      for (const each of [database, ...home, ...furtherPlaces]) await each.drop()
    },
  }
}

/** Creates a workspace with an owner and an API key of theirs. */
export async function createTenantIn(
  testCore: TestCore,
  scopes: Scope[],
): Promise<{ workspaceId: string; apiKey: string }> {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  await admin.members.add({ workspaceId, userId: 'owner' })
  const { apiKey } = await admin.apiKeys.create({ workspaceId, ownerUserId: 'owner', name: 'Key', scopes })
  return { workspaceId, apiKey }
}

/** Verifies the place of a core, whoever may write to it. */
export async function verifyCore({ core, chainKey }: TestCore): Promise<VerifyReport> {
  const { databaseUrl, number: place } = core
  const verification = { databaseUrl, place, chainKey, writers: null, workspaceId: null, checkpoint: null }
  for await (const event of verifyLedger(verification)) if (event.kind === 'result') return event.report
  throw new Error('the verification gave no result')
}
