import type { KeyObject } from 'node:crypto'
import type { KeyRing, Log } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import type { ListReader } from '../database/lists/list-reader.ts'
import type { Orm } from '../database/orm.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ServiceToken } from './service-token.ts'

/** The parts that procedures work with. */
export type Core = {
  orm: Orm
  /**
   * Connections for short reads and for administration. Lists have their own, and the ledger has its own: a slow list
   * holds up neither money nor anybody else's reads.
   */
  reads: Pool
  lists: ListReader
  shards: Shards
  keyRing: KeyRing
  /** Keys the checksum in the ids of API keys (runtime/key-ids.ts). */
  keyIdChecksumKey: string
  /** The key of the chain over all flows (see ledger/chain). */
  chainKey: KeyObject
  log: Log
  metrics: Metrics
  /** Aborted when core begins to stop: what takes minutes ends then. */
  stopping: AbortSignal
  /** Answers what was taken, then closes every connection. */
  close(): Promise<void>
}

/** What every procedure is called with: core's parts, and the service token that the caller presented. */
export type Context = { core: Core; token: Pick<ServiceToken, 'name' | 'role'> }

/** What the base procedures make of it. `actor` is who acts, as it is written into transfers and the audit. */
export type CallContext = Context & { actor: string }
