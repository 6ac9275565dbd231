import type { KeyObject } from 'node:crypto'
import type { KeyRing, Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import type { CoreConfig } from './config.ts'
import { ListReader } from './database/lists/list-reader.ts'
import { type Orm, openOrm, poolOf } from './database/orm.ts'
import { keySealOf, underChainKey } from './ledger/chain/chain-key.ts'
import { postBatch } from './ledger/posting/batch.ts'
import { inLog } from './ledger/posting/batch-log.ts'
import { Lanes } from './ledger/posting/shards.ts'
import { Metrics } from './metrics.ts'

/** The parts that procedures work with. */
export type Core = {
  orm: Orm
  /**
   * Connections for short reads and for administration. Lists have their own, and the ledger has its own: a slow list
   * holds up neither money nor anybody else's reads.
   */
  reads: Pool
  lists: ListReader
  lanes: Lanes
  keyRing: KeyRing
  /** Seals the ids of API keys (contract/key-ids.ts). */
  keySeal: string
  /** The key of the chain over all flows (see ledger/chain.ts). */
  chainKey: KeyObject
  log: Log
  metrics: Metrics
  /** Aborted when core begins to stop: what takes minutes ends then. */
  stopping: AbortSignal
  /** Answers what was taken, then closes every connection. */
  close(): Promise<void>
}

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
    chainKey: config.LEDGER_CHAIN_KEY,
  })
  const listOrm = await openOrm(config.DATABASE_URL, { name: 'lists', max: config.DATABASE_LIST_POOL, pipeline: true })
  const ledgerOrm = await openOrm(config.DATABASE_URL, {
    name: 'ledger',
    max: config.LEDGER_LANES,
    pipeline: true,
    queryTimeoutMs: postingTimeoutMs,
  })
  const ledger = { pool: await poolOf(ledgerOrm), chainKey: config.LEDGER_CHAIN_KEY, log }
  const metrics = new Metrics()
  const lanes = new Lanes({
    lanes: config.LEDGER_LANES,
    queueLimit: config.LEDGER_QUEUE,
    post: metrics.measured(
      underChainKey(
        ledger,
        inLog(log, postings => postBatch(ledger, postings)),
      ),
    ),
  })
  const reads = await poolOf(orm)
  const listPool = await poolOf(listOrm)
  const lists = new ListReader(listPool, config.DATABASE_LIST_POOL)
  metrics.watch(lanes, lists, { reads, lists: listPool, ledger: ledger.pool })
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
      await Promise.all([orm, listOrm, ledgerOrm].map(each => each.close(true)))
    },
  }
}
