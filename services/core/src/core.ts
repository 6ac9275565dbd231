import type { CoreConfig } from './config.ts'
import { openOrm, poolOf } from './db/orm.ts'
import { postBatch } from './ledger/batch.ts'
import { inLog } from './ledger/batch-log.ts'
import { keySealOf, underChainKey } from './ledger/chain-key.ts'
import { Lanes } from './ledger/lanes.ts'
import type { Log } from './log.ts'
import { Metrics } from './metrics.ts'
import type { Core } from './trpc.ts'
import { Turns } from './turns.ts'

/**
 * When a database that does not answer is given up on, while whoever asked for a posting still waits: after
 * PostgreSQL's own limits on locks and statements, which say for certain that nothing was done.
 */
const postingTimeoutMs = 4_000

/** Puts the parts together. The ledger has connections of its own, one for each lane. */
export async function openCore(config: CoreConfig, log: Log, stopping: AbortSignal): Promise<Core> {
  const orm = await openOrm(config.DATABASE_URL, { name: 'reads', max: config.DATABASE_READ_POOL })
  const listOrm = await openOrm(config.DATABASE_URL, { name: 'lists', max: config.DATABASE_LIST_POOL })
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
  const lists = await poolOf(listOrm)
  metrics.watch(lanes, { reads, lists, ledger: ledger.pool })
  return {
    orm,
    reads,
    lists,
    listTurns: new Turns(Math.ceil(config.DATABASE_LIST_POOL / 2), 8),
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
