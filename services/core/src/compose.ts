import {
  ConfigurationError,
  errorSummary,
  InstanceReporter,
  type Log,
  SampledLog,
  shareNextRun,
} from '@workspace-wallet/runtime'
import { LabelledRegistries } from '@workspace-wallet/runtime/metrics-reader'
import type { ClientBase } from 'pg'
import type { Registry } from 'prom-client'
import manifest from '../package.json' with { type: 'json' }
import { AccessCache } from './access/access-cache.ts'
import { findLatestNonceGenerations } from './access/nonce-generation.ts'
import type { CoreConfig } from './config.ts'
import { ForeignSessions, prepareLook } from './database/foreign-sessions.ts'
import { DatabaseHistory } from './database/history.ts'
import { ListReader } from './database/lists/list-reader.ts'
import { keepToPlace } from './database/one-place.ts'
import { openOrm, poolOf } from './database/orm.ts'
import { openPool } from './database/pool.ts'
import { poolerOf, poolerUrl } from './database/pooler.ts'
import { isSchemaCurrent } from './database/readiness.ts'
import { watchRoleSettings } from './database/role-settings.ts'
import { defaultSchema, schemaOf } from './database/schema.ts'
import { explainConnectError } from './database/session-checks.ts'
import { type PoolName, poolSettings } from './database/session-settings.ts'
import { WorkspaceConcurrencyLimit } from './database/workspace-concurrency-limit.ts'
import { entities } from './entities.ts'
import { EventReader } from './events/event-reader.ts'
import { countOpenHolds, maxCountedHolds, readExpiryDelay } from './holds/figures.ts'
import { sweepDueHolds } from './holds/sweeper.ts'
import { InstanceIntake } from './instances/intake.ts'
import { watchIntegrity } from './integrity/figures.ts'
import { scheduleVerifications } from './integrity/schedule/scheduler.ts'
import {
  deriveKeyIdChecksumKey,
  deriveNonceKey,
  deriveOperatorChecksumKey,
  requireChainKey,
} from './ledger/chain/chain-key.ts'
import { type LedgerStore, postBatch } from './ledger/posting/batch.ts'
import { withBatchLog } from './ledger/posting/batch-log.ts'
import { KnownWorkspaces } from './ledger/posting/known-workspaces.ts'
import { LedgerWaits } from './ledger/posting/ledger-waits.ts'
import { RememberedLedgers } from './ledger/posting/remembered-ledgers.ts'
import { Shards } from './ledger/posting/shards.ts'
import { Halts } from './ledger/store/halt.ts'
import { watchDataDisk } from './metrics/data-disk.ts'
import { watchDatabaseServer } from './metrics/database-server.ts'
import { Metrics } from './metrics/metrics.ts'
import { findLeft } from './places/claims.ts'
import { inTime } from './places/in-time.ts'
import { Placement } from './places/placement.ts'
import { Places } from './places/places.ts'
import { RefusalIntake } from './refusals/intake.ts'
import type { Core, OpenedCore } from './trpc/context.ts'
import { DueWebhooks } from './webhooks/due-webhooks.ts'
import { watchWebhooks } from './webhooks/figures.ts'

/**
 * The timeout of a statement of a batch. It is longer than PostgreSQL's own timeouts, after which the outcome is certain,
 * and shorter than the callers of postings wait.
 */
const postingTimeoutMs = 4_000

/** Every call and every gateway waits for these reads, so nothing else may use their connections. */
const accessConnections = 2

/**
 * Limits of calls that keep a connection of the pool of reads. A quarter of the connections is for each of the two kinds that wait for
 * locks and for other calls, an eighth each for searches of admins and for viewers, and one for reads of many due holds. The rest is for
 * reads that share their statements: one of ten connections.
 */
function openLimits(connections: number) {
  const quarter = Math.max(1, Math.floor(connections / 4))
  const eighth = Math.max(1, Math.floor(connections / 8))
  return {
    /**
     * Changes of wallets by clients, and reads of holds that have just expired, wait for the lock of a ledger. Every slot is reserved for
     * workspaces with nothing running, so a workspace has one at a time.
     */
    lockWaits: new WorkspaceConcurrencyLimit({
      slots: quarter,
      reservedSlots: quarter,
      waitingPerWorkspace: 64,
      waiting: 512,
      waitMs: 4_000,
    }),
    /** Each other call may keep a connection for a short while. A token with nothing running gets one first. */
    calls: new WorkspaceConcurrencyLimit({
      slots: quarter,
      reservedSlots: 0,
      waitingPerWorkspace: 256,
      waiting: 1024,
      waitMs: 4_000,
    }),
    /** Calls of couriers wait for the locks of webhooks. Couriers are also more exposed than other programs. */
    courierCalls: new WorkspaceConcurrencyLimit({
      slots: quarter,
      reservedSlots: 0,
      waitingPerWorkspace: 1024,
      waiting: 1024,
      waitMs: 4_000,
    }),
    /** One of the two connections of `accessReads` remains for core's polls and the tokens of operators. */
    accessCalls: new WorkspaceConcurrencyLimit({
      slots: accessConnections - 1,
      reservedSlots: 0,
      waitingPerWorkspace: 64,
      waiting: 256,
      waitMs: 1_500,
    }),
    /** Searches of admins, whose statements take up to two seconds. */
    searches: new WorkspaceConcurrencyLimit({
      slots: eighth,
      reservedSlots: 0,
      waitingPerWorkspace: 16,
      waiting: 64,
      waitMs: 10_000,
    }),
    /**
     * Balances of wallets with many due holds take core about 10 ms each to check. One at a time: another one would not be ready sooner. They
     * wait only briefly, because a gateway sends reads of all workspaces in batches, which are answered when all of their calls are.
     */
    dueHoldReads: new WorkspaceConcurrencyLimit({
      slots: 1,
      reservedSlots: 0,
      waitingPerWorkspace: 1,
      waiting: 32,
      waitMs: 50,
    }),
    /** Calls of viewers, also their searches, however many of them a viewer makes at a time. */
    viewerCalls: new WorkspaceConcurrencyLimit({
      slots: eighth,
      reservedSlots: 0,
      waitingPerWorkspace: 64,
      waiting: 256,
      waitMs: 10_000,
    }),
  }
}

/** What a process has once, and all places use. */
type Shared = { config: CoreConfig; log: Log; stopping: AbortSignal }

/** Opens core: a place for each database URL. @throws ConfigurationError if these cannot be places of one core */
export async function openCore(config: CoreConfig, log: Log, stopping: AbortSignal): Promise<OpenedCore> {
  requirePlaces(config)
  const shared = { config, log, stopping }
  const home = await openPlace(shared, config.DATABASE_URL, config.DATABASE_PLACE ?? 0)
  const others = await Promise.all(config.DATABASE_URLS.map((url, index) => openPlace(shared, url, index + 1)))
  const places = new Places<Core>([home, ...others], home.sampledLog, {
    isIncomplete: config.DATABASE_PLACE !== undefined,
  })
  home.metrics.watchProcess()
  if (config.DATA_DIR !== undefined) watchDataDisk(home.metrics.registry, config.DATA_DIR)
  const reporter = new InstanceReporter({
    version: manifest.version,
    health: async () => ({
      fault: (await Promise.all(places.all.map(findFaultInTime))).find(fault => fault !== null) ?? null,
      waiting: places.all.reduce((sum, { shards }) => sum + shards.depth.waiting, 0),
      unhealthyCores: 0,
    }),
    send: async report => home.instances.report('core', 'core', report),
    leave: async ({ instanceId }) => home.instances.leave('core', 'core', instanceId),
    log,
  })
  reporter.start()
  return {
    places,
    instanceId: reporter.instanceId,
    registry: registryOf(places),
    async close() {
      await reporter.close()
      await Promise.all(places.all.map(place => place.close()))
    },
  }
}

/** A place that does not answer must not keep core from reporting itself. */
function findFaultInTime(place: Core): Promise<string | null> {
  return inTime(place, place.findFault()).catch(error => errorSummary(error))
}

function requirePlaces({ DATABASE_URL, DATABASE_URLS, DATABASE_PLACE, DATABASE_POOLER_URL }: CoreConfig): void {
  const names = [DATABASE_URL, ...DATABASE_URLS].map(nameOfPlace)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw new ConfigurationError([`DATABASE_URLS: ${twice} is a place already`])
  if (DATABASE_URLS.length > 0 && DATABASE_PLACE !== undefined)
    throw new ConfigurationError(['DATABASE_PLACE: it is for a core with one place, and DATABASE_URLS names others'])
  if (DATABASE_URLS.length > 0 && DATABASE_POOLER_URL !== undefined)
    throw new ConfigurationError([
      'DATABASE_POOLER_URL: it leads to one place, and DATABASE_URLS names others: remove it',
    ])
}

/** The metrics of all places. Those of one alone have no label for it. */
function registryOf({ home, all }: Places<Core>): Registry {
  if (all.length === 1) return home.metrics.registry
  return new LabelledRegistries('place', new Map(all.map(({ name, metrics }) => [name, metrics.registry])))
}

/** Such as `db-1:5432/wallet` or `db-1:5432/wallet/bucket_2`: without role and password. */
function nameOfPlace(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl)
  const schema = schemaOf(databaseUrl)
  return `${host}${pathname}${schema === defaultSchema ? '' : `/${schema}`}`
}

/** Opens a place. Its ledger has its own connections: two for each shard, which has two batches in flight at most. */
async function openPlace(shared: Shared, configuredUrl: string, number: number): Promise<Core> {
  const { config, stopping } = shared
  const name = nameOfPlace(configuredUrl)
  const log = config.DATABASE_URLS.length > 0 ? shared.log.child({ place: name }) : shared.log
  const { LEDGER_CHAIN_KEY: chainKey } = config
  const history = new DatabaseHistory(log, (db, workspaceIds) => findLeft(db, { chainKey, number }, workspaceIds))
  const pooler = poolerOf(configuredUrl, config.DATABASE_POOLER_URL)
  const placement = await Placement.find(configuredUrl, history, log)
  const admit = async (client: ClientBase) => {
    await history.admit(client)
    await requireChainKey(client, chainKey)
  }
  /** To the pools with which `ForeignSessions` looks. */
  const admitLooking = async (client: ClientBase) => {
    await admit(client)
    if (!pooler) await prepareLook(client)
  }
  const onOpened = (client: ClientBase) => placement.admit(client)
  const urlOf = (pool: PoolName) => (pooler ? poolerUrl(pooler, pool) : placement.url)
  const optionsOf = (name: PoolName) => ({ name, settings: poolSettings[name], chainKey, admit, pooler, onOpened })
  const orm = await openOrm(urlOf('reads'), {
    ...optionsOf('reads'),
    admit: admitLooking,
    max: config.DATABASE_READ_POOL,
    entities,
  })
  const reads = await poolOf(orm)
  const accessReads = openPool(urlOf('reads'), { ...optionsOf('reads'), name: 'access', max: accessConnections })
  const listPool = openPool(urlOf('lists'), {
    ...optionsOf('lists'),
    admit: admitLooking,
    max: config.DATABASE_LIST_POOL,
    pipeline: true,
  })
  const ledgerPool = openPool(urlOf('ledger'), {
    ...optionsOf('ledger'),
    max: 2 * config.LEDGER_SHARDS,
    pipeline: true,
    queryTimeoutMs: postingTimeoutMs,
  })
  const sessionPool = openPool(placement.url, { name: 'sessions', max: 1, chainKey, admit: admitLooking, onOpened })
  if (config.DATABASE_URLS.length > 0) {
    keepToPlace(reads, name, orm)
    for (const pool of [accessReads, listPool, ledgerPool, sessionPool]) keepToPlace(pool, name)
  }
  // The sessions of a pooler have another role, which may not end those of the service.
  const others = pooler ? [] : [reads, listPool]
  const foreignSessions = new ForeignSessions(sessionPool, chainKey, log, { others })
  for (const pool of [sessionPool, reads, accessReads, listPool, ledgerPool]) foreignSessions.watchErrors(pool)
  const metrics = new Metrics()
  const halts = new Halts(reads, chainKey, log)
  const ledger: LedgerStore = {
    pool: ledgerPool,
    chainKey,
    log,
    remembered: new RememberedLedgers(),
    halts,
    onCommitted: row => history.acknowledge(row),
    onWritten: rows => metrics.written(rows),
  }
  const shards = new Shards({
    shards: config.LEDGER_SHARDS,
    queueLimit: config.LEDGER_QUEUE,
    workspaces: new KnownWorkspaces(reads),
    postBatch: metrics.measured(withBatchLog(log, postings => postBatch(ledger, postings))),
  })
  const closing = new AbortController()
  const access = new AccessCache({ reads: accessReads, number, chainKey, log, metrics })
  const following = access.follow(closing.signal)
  const sweeping = sweepDueHolds({ reads, shards, log }, AbortSignal.any([stopping, closing.signal]))
  const verifying = scheduleVerifications(
    {
      get databaseUrl() {
        return placement.url
      },
      number,
      databaseWriters: config.DATABASE_WRITERS ?? null,
      chainKey,
      orm,
      reads,
      log,
    },
    {
      everyMs: config.VERIFY_EVERY_MINUTES * 60_000,
      wholeEveryMs: config.VERIFY_WHOLE_EVERY_DAYS * 86_400_000,
    },
    AbortSignal.any([stopping, closing.signal]),
  )
  // A pooler can lead to another server than DATABASE_URL.
  const watched = pooler ? [[sessionPool], [reads]] : [[sessionPool, reads]]
  const watching = Promise.all([
    foreignSessions.watch(closing.signal),
    // Not on the connection that finds out which session holds the lock it waits for.
    watchRoleSettings(pooler ? sessionPool : reads, log, closing.signal),
    ...watched.map(pools => history.watch(pools, closing.signal)),
    placement.follow([sessionPool, reads, accessReads, listPool, ledgerPool], closing.signal, () =>
      foreignSessions.forgetRole(),
    ),
  ])
  const lists = new ListReader(listPool, config.DATABASE_LIST_POOL)
  const limits = openLimits(config.DATABASE_READ_POOL)
  const events = new EventReader({ lists, chainKey, halts, metrics })
  const allLists = {
    get load() {
      return { ...lists.load, events: events.load }
    },
  }
  metrics.watch(shards, allLists, { reads, access: accessReads, lists: listPool, ledger: ledgerPool })
  metrics.watchDatabase(
    'core_open_holds',
    `Holds that are stored as open: counted up to ${maxCountedHolds}, estimated from there on`,
    () => countOpenHolds(reads),
  )
  metrics.watchDatabase(
    'core_hold_expiry_delay_seconds',
    'How long ago the oldest hold expired whose expiry is not written yet, up to 600; 0 without one',
    () => readExpiryDelay(reads),
  )
  watchWebhooks(metrics, reads)
  watchIntegrity(metrics, { reads, chainKey })
  watchDatabaseServer(metrics, reads)
  metrics.watchSessions(foreignSessions)
  metrics.watchHistory(history)
  const instances = new InstanceIntake(reads, log)
  const sampledLog = new SampledLog(log)
  const webhookLogs = { known: new SampledLog(log), others: new SampledLog(log) }
  return {
    name,
    number,
    get databaseUrl() {
      return placement.url
    },
    orm,
    reads,
    accessReads,
    lists,
    access,
    events,
    ...limits,
    halts,
    ledgerWaits: new LedgerWaits(reads, limits.lockWaits),
    latestNonceGenerations: shareNextRun(() => findLatestNonceGenerations(orm.em.fork(), chainKey)),
    refusals: new RefusalIntake(reads, log, metrics),
    instances,
    shards,
    dueWebhooks: new DueWebhooks(reads, chainKey),
    metrics,
    stopping,
    keyRing: config.KEY_ENCRYPTION_KEYS,
    keyIdChecksumKey: deriveKeyIdChecksumKey(chainKey),
    nonceKey: deriveNonceKey(chainKey),
    operatorChecksumKey: deriveOperatorChecksumKey(chainKey),
    chainKey,
    foreignSessions,
    history,
    receiptKeys: config.RECEIPT_KEYS,
    databaseWriters: config.DATABASE_WRITERS ?? null,
    webhookNetworks: config.WEBHOOK_ALLOWED_NETWORKS,
    log,
    sampledLog,
    webhookLogs,
    async findFault() {
      if (await isSchemaCurrent(reads)) return null
      return history.refusal ?? 'the database lacks migrations that this core knows'
    },
    async checkConnections() {
      for (const pool of [sessionPool, reads, accessReads, listPool, ledgerPool])
        try {
          const client = await pool.connect()
          client.release()
        } catch (error) {
          throw explainConnectError(error)
        }
    },
    async close() {
      closing.abort()
      for (const each of [sampledLog, webhookLogs.known, webhookLogs.others]) each.flush()
      await Promise.all([following, sweeping, watching, verifying])
      await shards.close()
      await halts.idle()
      await instances.close()
      await Promise.all([orm.close(true), accessReads.end(), listPool.end(), ledgerPool.end(), sessionPool.end()])
      // The ORM does not close a pool that only others have used.
      if (!reads.ending) await reads.end()
    },
  }
}
