import type { Uuid } from '@workspace-wallet/contract'
import { type Log, pause } from '@workspace-wallet/runtime'
import type { Client, ClientBase, Pool } from 'pg'
import { isEnded, RepeatedCheck } from './repeated-check.ts'

/** A stale primary must not answer reads for longer than a change of a key may take to be in force. */
const intervalMs = 500
/**
 * How many rows of acknowledged commits are kept. What is written first to the log of PostgreSQL can be acknowledged later, but only
 * by as many commits as are in progress at a time: one for each shard, and one for each connection for administration.
 */
const keptRows = 128

/** A row that a commit has written. Such rows are never removed or changed. The MAC identifies it: it covers all rows before it. */
export type CommittedRow = {
  table: 'transfer' | 'journal' | 'audit'
  /** Null for the audit of actions on no workspace. */
  workspaceId: Uuid<'workspace'> | null
  position: number
  mac: Buffer
}

/** Where a server is. `position`: how many bytes of the write-ahead log are on its disk. */
type ServerPosition = { systemId: string; timeline: number; position: bigint }

/** Why a server is refused. */
export const refusalReasons = ['standby', 'other_system', 'timeline', 'position', 'lost_commits'] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** The server that this connection leads to must not be used. */
export class StaleDatabase extends Error {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Only sessions on a primary know the timeline. `pg_control_system` and the other functions are for every role. */
const placeText = `
  select (select system_identifier::text from pg_control_system()) as "systemId",
    case when not pg_is_in_recovery() then (pg_split_walfile_name(pg_walfile_name(pg_current_wal_flush_lsn()))).timeline_id::int end
      as timeline,
    case when not pg_is_in_recovery() then (pg_current_wal_flush_lsn() - '0/0')::text end as position`

/** SQL: which of these rows do not exist: their places in the arrays, from 1. */
const missingText = `
  select number::int
  from unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[])
    with ordinality as kept (of_table, workspace, at_position, of_mac, number)
  where not case of_table
    when 'transfer' then exists (
      select from transfer where workspace_id = workspace and position = at_position and source_mac = decode(of_mac, 'hex'))
    when 'journal' then exists (
      select from journal where workspace_id = workspace and position = at_position and mac = decode(of_mac, 'hex'))
    else case when workspace is null
      then exists (select from audit where workspace_id is null and position = at_position and mac = decode(of_mac, 'hex'))
      else exists (select from audit where workspace_id = workspace and position = at_position and mac = decode(of_mac, 'hex'))
    end
  end`

/** When those of these workspaces left that have left the place of the database, after which their rows are removed. */
type FindLeft = (
  db: ClientBase,
  workspaceIds: readonly Uuid<'workspace'>[],
) => Promise<ReadonlyMap<Uuid<'workspace'>, Date>>

type AcknowledgedRow = CommittedRow & { acknowledgedAt: Date }

/**
 * The history of the database, as far as this core has seen it. A connection that leads to a server with less is refused: a former
 * primary that is back after a failover, a standby that was promoted without commits that this core has acknowledged, a restored
 * copy. PostgreSQL numbers the history of a cluster: each promotion begins a new timeline.
 *
 * Nothing of this is stored. To accept a database that core refuses, an operator restarts all cores (docs/failover.md).
 */
export class DatabaseHistory {
  readonly #log: Log
  readonly #findLeft: FindLeft
  #seen: ServerPosition | null = null
  /** The last acknowledged commits, the latest first. */
  #acknowledged: AcknowledgedRow[] = []
  /** The open connections, and the timeline of their server. */
  readonly #clients = new Map<ClientBase, number>()
  /** The clusters that the schema was moved away from (see moveTo). */
  readonly #former = new Set<string>()
  #refusal: StaleDatabase | null = null
  /** How many connections were refused, by reason. */
  readonly refused = Object.fromEntries(refusalReasons.map(reason => [reason, 0])) as Record<RefusalReason, number>

  /** @param findLeft must trust no row that core did not write */
  constructor(log: Log, findLeft: FindLeft) {
    this.#log = log
    this.#findLeft = findLeft
  }

  /** Why the last connection was refused; null after one that was not. */
  get refusal(): string | null {
    return this.#refusal?.message ?? null
  }

  /** Call it with the last row of a commit before the commit is acknowledged to anybody. */
  acknowledge(row: CommittedRow): void {
    this.#acknowledged.unshift({ ...row, acknowledgedAt: new Date() })
    if (this.#acknowledged.length > keptRows) this.#acknowledged.length = keptRows
  }

  /**
   * Checks the server of a new connection.
   *
   * @throws StaleDatabase, and the connection must be closed
   */
  async admit(client: ClientBase): Promise<void> {
    const { timeline } = await this.#check(client)
    this.#clients.set(client, timeline)
    client.once('end', () => this.#clients.delete(client))
  }

  /**
   * Accepts the server of this connection as the one that the schema was moved to, on purpose. It must have what this core has
   * acknowledged. Connections to the server before are refused from now on.
   *
   * @throws StaleDatabase
   */
  async moveTo(client: ClientBase): Promise<void> {
    const place = await readPlace(client)
    const seen = this.#seen
    // A standby that was promoted is of the same cluster: each connection is checked.
    if (!seen || place.systemId === seen.systemId) return
    await this.#requireRows(client, this.#acknowledged, place)
    this.#former.add(seen.systemId)
    this.#former.delete(place.systemId)
    this.#seen = place
  }

  /**
   * Checks the server twice a second, also while no connection is opened.
   *
   * @param pools the next one is used if the one before fails; all of them lead to the same server
   */
  async watch(pools: readonly Pool[], stopping: AbortSignal): Promise<void> {
    const check = new RepeatedCheck(this.#log, 'history')
    while (!stopping.aborted) {
      await this.#lookOnOne(pools).then(
        () => check.succeeded(),
        error => check.failed(error),
      )
      await pause(intervalMs, stopping)
    }
  }

  async #lookOnOne(pools: readonly Pool[]): Promise<void> {
    const errors: unknown[] = []
    for (const pool of pools)
      try {
        return await this.#look(pool)
      } catch (error) {
        if (error instanceof StaleDatabase) throw error
        errors.push(error)
      }
    throw errors.find(isEnded) ?? errors.at(-1)
  }

  async #look(db: Pool): Promise<void> {
    const client = await db.connect()
    try {
      await this.#check(client)
    } catch (error) {
      client.release(error as Error)
      // Other connections may lead to the same server.
      if (error instanceof StaleDatabase) this.#closeConnections(() => true)
      throw error
    }
    client.release()
  }

  async #check(client: ClientBase): Promise<ServerPosition> {
    // Whatever was seen before the server is asked must be in its answer.
    const seen = this.#seen
    try {
      const place = await readPlace(client)
      if (this.#former.has(place.systemId)) throw new Error('the connection leads to the node before a move')
      // It may have moved since, and then this server is the one that it has moved to.
      if (seen?.systemId === this.#seen?.systemId && seen) requireSince(seen, place)
      if (seen && place.timeline > seen.timeline) await this.#requireAcknowledged(client, place)
      this.#accept(place)
      return place
    } catch (error) {
      if (error instanceof StaleDatabase) this.#refuse(error)
      throw error
    }
  }

  async #requireAcknowledged(client: ClientBase, place: ServerPosition): Promise<void> {
    let rows: AcknowledgedRow[]
    do {
      rows = this.#acknowledged.slice()
      await this.#requireRows(client, rows, place)
      // Until connections to the former primary are closed, it can confirm more.
    } while (rows[0] !== this.#acknowledged[0] && place.timeline > this.#seen!.timeline)
  }

  /**
   * A workspace leaves seconds after its last commit, so that clocks may differ a little. If it had left before, and come back, its
   * rows must be there.
   *
   * @throws StaleDatabase if rows are missing, except for those of workspaces that have left since
   */
  async #requireRows(
    client: ClientBase,
    rows: readonly AcknowledgedRow[],
    { timeline }: ServerPosition,
  ): Promise<void> {
    const found = await client.query<{ number: number }>(missingText, [
      rows.map(row => row.table),
      rows.map(row => row.workspaceId),
      rows.map(row => row.position),
      rows.map(row => row.mac.toString('hex')),
    ])
    if (found.rows.length === 0) return
    const missingRows = found.rows.map(({ number }) => rows[number - 1]!)
    const ofWorkspaces = new Set(missingRows.flatMap(({ workspaceId }) => workspaceId ?? []))
    const left = await this.#findLeft(client, [...ofWorkspaces])
    const hasLeftSince = ({ workspaceId, acknowledgedAt }: AcknowledgedRow) => {
      const leftAt = workspaceId && left.get(workspaceId)
      return leftAt && leftAt > acknowledgedAt
    }
    const missing = missingRows.filter(row => !hasLeftSince(row)).length
    if (missing > 0)
      throw new StaleDatabase(
        'lost_commits',
        `timeline ${timeline} lacks ${missing} of the last ${rows.length} commits that this core has acknowledged. ${restart}`,
      )
  }

  #accept(place: ServerPosition): void {
    const seen = this.#seen
    // Another connection may have seen more in the meantime.
    if (seen && place.timeline < seen.timeline) requireSince(seen, place)
    if (!seen || place.timeline > seen.timeline || place.position > seen.position) this.#seen = place
    if (seen && place.timeline > seen.timeline) {
      this.#log.warn({ timeline: place.timeline, before: seen.timeline }, 'another server of PostgreSQL was promoted')
      this.#closeConnections(timeline => timeline < place.timeline)
    }
    if (this.#refusal) this.#log.warn('the database is accepted again')
    this.#refusal = null
  }

  #refuse(refusal: StaleDatabase): void {
    this.refused[refusal.reason]++
    if (this.#refusal?.reason !== refusal.reason) {
      // While a failover is in progress, the address of the primary may lead to a standby.
      const level = refusal.reason === 'standby' ? 'warn' : 'fatal'
      this.#log[level]({ reason: refusal.reason }, `the database is refused: ${refusal.message}`)
    }
    this.#refusal = refusal
  }

  #closeConnections(isStale: (timeline: number) => boolean): void {
    for (const [client, timeline] of this.#clients)
      if (isStale(timeline))
        (client as Client).connection.stream.destroy(new Error('the connection leads to a stale server'))
  }
}

async function readPlace(client: ClientBase): Promise<ServerPosition> {
  const { rows } = await client.query<{ systemId: string; timeline: number | null; position: string | null }>(placeText)
  const { systemId, timeline, position } = rows[0]!
  if (timeline === null || position === null)
    throw new StaleDatabase('standby', 'the server is a standby: DATABASE_URL must lead to the primary')
  return { systemId, timeline, position: BigInt(position) }
}

const restart =
  'To use this one all the same, stop all cores, compare it with a checkpoint, and start them: docs/failover.md'

/** @throws StaleDatabase */
function requireSince(seen: ServerPosition, place: ServerPosition): void {
  const refuse = (reason: RefusalReason, what: string) => {
    throw new StaleDatabase(reason, `${what}. ${restart}`)
  }
  if (place.systemId !== seen.systemId)
    refuse('other_system', `the server is of the cluster ${place.systemId}, and core has used ${seen.systemId}`)
  if (place.timeline < seen.timeline)
    refuse('timeline', `the server is on timeline ${place.timeline}, and core has used timeline ${seen.timeline}`)
  if (place.timeline === seen.timeline && place.position < seen.position)
    refuse(
      'position',
      `the log of the server ends at ${lsn(place.position)}, and core has seen it up to ${lsn(seen.position)}`,
    )
}

/** A position in the write-ahead log, as PostgreSQL writes it. */
function lsn(position: bigint): string {
  return `${(position >> 32n).toString(16)}/${(position & 0xffff_ffffn).toString(16)}`.toUpperCase()
}
