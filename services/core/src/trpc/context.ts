import type { KeyObject } from 'node:crypto'
import type { LatestNonceGenerations, Scope } from '@workspace-wallet/contract'
import type { AddressBlock, KeyRing, Log, SampledLog } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import type { Registry } from 'prom-client'
import type { AccessCache } from '../access/access-cache.ts'
import type { ForeignSessions } from '../database/foreign-sessions.ts'
import type { DatabaseHistory } from '../database/history.ts'
import type { ListReader } from '../database/lists/list-reader.ts'
import type { Orm } from '../database/orm.ts'
import type { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'
import type { EventReader } from '../events/event-reader.ts'
import type { InstanceIntake } from '../instances/intake.ts'
import type { LedgerWaits } from '../ledger/posting/ledger-waits.ts'
import type { Shards } from '../ledger/posting/shards.ts'
import type { Halts } from '../ledger/store/halt.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Places } from '../places/places.ts'
import type { RefusalIntake } from '../refusals/intake.ts'
import type { SigningKeys } from '../signing/signing-keys.ts'
import type { DueWebhooks } from '../webhooks/due-webhooks.ts'
import type { WebhookLogs } from '../webhooks/leases.ts'
import type { CallerToken } from './service-token.ts'

/** What procedures use: a place, and what they need besides. */
export type Core = {
  /** Of the place: the host, database and schema. */
  name: string
  /** Of the place, from 0, in the order of the URLs. */
  number: number
  /** The URL of the place: for connections of their own. */
  databaseUrl: string
  orm: Orm
  /** Connections for short reads and administration. Lists and the ledger have their own, so that a slow list delays neither. */
  reads: Pool
  /** Connections for what each call and each gateway waits for: what keys and operators may do, and the generations of nonces. */
  accessReads: Pool
  lists: ListReader
  /** What the API keys may do for which gateways call. */
  access: AccessCache
  events: EventReader
  /** Limits what waits for the lock of a ledger or of a webhook on connections of `reads`. */
  lockWaits: WorkspaceConcurrencyLimit
  /** Halts workspaces whose rows were modified outside the service. */
  halts: Halts
  ledgerWaits: LedgerWaits
  /**
   * Limits the calls of all tokens that no other limit holds for, on connections of `reads`: by role and name, and by workspace for
   * gateways.
   */
  calls: WorkspaceConcurrencyLimit
  /** Limits the calls of couriers on connections of `reads`, by the name of their token. */
  courierCalls: WorkspaceConcurrencyLimit
  /** Limits the calls of gateways on connections of `accessReads`, by the name of their token. */
  accessCalls: WorkspaceConcurrencyLimit
  /** Limits the searches of admins on connections of `reads`, by actor. */
  searches: WorkspaceConcurrencyLimit
  /** Limits the reads of wallets with many due holds on connections of `reads`, by workspace. */
  dueHoldReads: WorkspaceConcurrencyLimit
  /** Limits the calls of viewers on connections of `reads`, also their searches, by their names. */
  viewerCalls: WorkspaceConcurrencyLimit
  /** Reads the latest generations of nonces, for all gateways that ask at the same time. */
  latestNonceGenerations(): Promise<LatestNonceGenerations>
  /** Stores the refused calls that gateways report. */
  refusals: RefusalIntake
  /** Stores what instances report about themselves. */
  instances: InstanceIntake
  shards: Shards
  /** Finds the webhooks that have events to deliver. */
  dueWebhooks: DueWebhooks
  keyRing: KeyRing
  /** The key of the checksum in the IDs of API keys (packages/runtime/src/key-ids.ts). */
  keyIdChecksumKey: string
  /** The key of the nonce store (gateway/src/auth/nonces). */
  nonceKey: string
  /** The key of the checksum in tokens of operators (operators/tokens.ts). */
  operatorChecksumKey: string
  /** The key of all MACs: chains of flows and actions, rows, checkpoints (see ledger/chain). */
  chainKey: KeyObject
  /** Sessions of PostgreSQL that block core. */
  foreignSessions: Pick<ForeignSessions, 'describeBlocking'>
  /** What this core has seen of the database, and what it has acknowledged. */
  history: Pick<DatabaseHistory, 'acknowledge'>
  /** The keys that sign receipts. */
  receiptKeys: SigningKeys
  /** DATABASE_WRITERS: roles that may write to the database besides that of the service; null if it is not set. */
  databaseWriters: readonly string[] | null
  /** WEBHOOK_ALLOWED_NETWORKS: networks that webhooks may lead to besides public addresses. */
  webhookNetworks: readonly AddressBlock[]
  log: Log
  /** For lines that whoever has a token can cause, as many as they like. */
  sampledLog: SampledLog
  webhookLogs: WebhookLogs
  metrics: Metrics
  /** Aborted when core begins to stop; ends verifications and checkpoints, which take minutes. */
  stopping: AbortSignal
  /** Why the place cannot be used now, as a sentence; null if it can. */
  findFault(): Promise<string | null>
  /**
   * Opens a connection of each pool.
   *
   * @throws UnsuitableSession if no session there can be used, or the error of a database that is not available
   */
  checkConnections(): Promise<void>
  /** Finishes accepted postings, then closes all connections. */
  close(): Promise<void>
}

/** All that this process serves. */
export type OpenedCore = {
  places: Places<Core>
  /** Of this process, as its reports have it. */
  instanceId: string
  /** The metrics of all places. */
  registry: Registry
  /** Finishes accepted postings, then closes all connections. */
  close(): Promise<void>
}

/**
 * The context of every call: the places, the token of the caller, and what came with the call as its W3C `traceparent`. `core`: the
 * place of the workspace or key that the input names, otherwise home.
 */
export type Context = { places: Places<Core>; core: Core; token: CallerToken; traceparent?: unknown }

/** The places that a list reads: that of the workspace which its input names, otherwise all. */
export function placesOf({ core, places }: Context, workspaceId: string | undefined): readonly Core[] {
  return workspaceId === undefined ? places.all : [core]
}

/** The context after the base procedures. */
export type CallContext = Context & {
  /** What transfers and the audit record: `role:name`, `operator:name` or `key:ak_…`. */
  actor: string
  /** Of the request of the public API or the call, for the log, the ledger and the audit. */
  requestId: string
  /** Why the caller does it, for the audit. */
  reason?: string | undefined
  /**
   * Checks a scope that only some calls of a procedure require, if a gateway calls for an API key.
   *
   * @param index the place of the item of a batch that needs the scope
   * @throws DomainError GA2024, or another code if the key may no longer be used at all
   */
  requireScope: (scope: Scope, index?: number) => Promise<unknown>
}
