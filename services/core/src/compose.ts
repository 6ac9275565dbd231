import type { Log } from '@workspace-wallet/runtime'
import type { CoreConfig } from './config.ts'
import { ListReader } from './database/lists/list-reader.ts'
import { openOrm, poolOf } from './database/orm.ts'
import { openPool } from './database/pool.ts'
import { entities } from './entities.ts'
import { deriveKeyIdChecksumKey } from './ledger/chain/chain-key.ts'
import { postBatch } from './ledger/posting/batch.ts'
import { withBatchLog } from './ledger/posting/batch-log.ts'
import { RememberedLedgers } from './ledger/posting/remembered-ledgers.ts'
import { requireChainKey } from './ledger/posting/require-chain-key.ts'
import { Shards } from './ledger/posting/shards.ts'
import { Metrics } from './metrics/metrics.ts'
import type { Core } from './trpc/context.ts'

/**
 * The timeout of a statement of a batch. It is longer than PostgreSQL's own timeouts, after which the outcome is certain,
 * and shorter than the callers of postings wait.
 */
const postingTimeoutMs = 4_000

/** Opens core. The ledger has its own connections, one for each shard. */
export async function openCore(config: CoreConfig, log: Log, stopping: AbortSignal): Promise<Core> {
  const orm = await openOrm(config.DATABASE_URL, {
    name: 'reads',
    max: config.DATABASE_READ_POOL,
    entities,
    chainKey: config.LEDGER_CHAIN_KEY,
  })
  const reads = await poolOf(orm)
  const listPool = openPool(config.DATABASE_URL, { name: 'lists', max: config.DATABASE_LIST_POOL, pipeline: true })
  const ledgerPool = openPool(config.DATABASE_URL, {
    name: 'ledger',
    max: config.LEDGER_SHARDS,
    pipeline: true,
    queryTimeoutMs: postingTimeoutMs,
  })
  const ledger = { pool: ledgerPool, chainKey: config.LEDGER_CHAIN_KEY, log, remembered: new RememberedLedgers() }
  const metrics = new Metrics()
  const shards = new Shards({
    shards: config.LEDGER_SHARDS,
    queueLimit: config.LEDGER_QUEUE,
    post: metrics.measured(
      requireChainKey(
        ledger,
        withBatchLog(log, postings => postBatch(ledger, postings)),
      ),
    ),
  })
  const lists = new ListReader(listPool, config.DATABASE_LIST_POOL)
  metrics.watch(shards, lists, { reads, lists: listPool, ledger: ledgerPool })
  return {
    orm,
    reads,
    lists,
    shards,
    metrics,
    stopping,
    keyRing: config.KEY_ENCRYPTION_KEYS,
    keyIdChecksumKey: deriveKeyIdChecksumKey(config.LEDGER_CHAIN_KEY),
    chainKey: config.LEDGER_CHAIN_KEY,
    log,
    async close() {
      await shards.close()
      await Promise.all([orm.close(true), listPool.end(), ledgerPool.end()])
    },
  }
}
