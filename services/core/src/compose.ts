import type { Log } from '@workspace-wallet/runtime'
import type { CoreConfig } from './config.ts'
import { ListReader } from './database/lists/list-reader.ts'
import { openOrm, poolOf } from './database/orm.ts'
import { openPool } from './database/pool.ts'
import { entities } from './entities.ts'
import { keySealOf } from './ledger/chain/chain-key.ts'
import { postBatch } from './ledger/posting/batch.ts'
import { inLog } from './ledger/posting/batch-log.ts'
import { requireChainKey } from './ledger/posting/require-chain-key.ts'
import { Lanes } from './ledger/posting/shards.ts'
import { Metrics } from './metrics/metrics.ts'
import type { Core } from './trpc/context.ts'

/**
 * When a database that does not answer is given up on, while whoever asked for a posting still waits: after
 * PostgreSQL's own limits on locks and statements, which say for certain that nothing was done.
 */
const postingTimeoutMs = 4_000

/** Puts the parts together. The ledger has connections of its own, one for each lane. */
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
    max: config.LEDGER_LANES,
    pipeline: true,
    queryTimeoutMs: postingTimeoutMs,
  })
  const ledger = { pool: ledgerPool, chainKey: config.LEDGER_CHAIN_KEY, log }
  const metrics = new Metrics()
  const lanes = new Lanes({
    lanes: config.LEDGER_LANES,
    queueLimit: config.LEDGER_QUEUE,
    post: metrics.measured(
      requireChainKey(
        ledger,
        inLog(log, postings => postBatch(ledger, postings)),
      ),
    ),
  })
  const lists = new ListReader(listPool, config.DATABASE_LIST_POOL)
  metrics.watch(lanes, lists, { reads, lists: listPool, ledger: ledgerPool })
  return {
    orm,
    reads,
    lists,
    lanes,
    metrics,
    stopping,
    keyRing: config.KEY_ENCRYPTION_KEYS,
    keySeal: keySealOf(config.LEDGER_CHAIN_KEY),
    chainKey: config.LEDGER_CHAIN_KEY,
    log,
    async close() {
      await lanes.close()
      await Promise.all([orm.close(true), listPool.end(), ledgerPool.end()])
    },
  }
}
