import type { KeyObject } from 'node:crypto'
import { type Log, pause } from '@workspace-wallet/runtime'
import pg, { type Client, type ClientBase, type Pool } from 'pg'
import { isEnded, RepeatedCheck } from './repeated-check.ts'
import { markOf } from './session-marks.ts'
import { isRefused, isWithoutBuffers, run, statement } from './statement.ts'

/** Shorter than core waits for a lock, so that the lock is free before a call gives up. */
const intervalMs = 500
/** Whoever was ended may have connected again at once. */
const afterEndMs = 20
/** A session that is busy within one expression ends only after it. */
const defaultEndingMs = 5_000
/** A session of another role is logged when it has blocked a core for this long: a migration does so for a moment. */
const loggedAfterMs = 1_000
/** Younger sessions are not counted as foreign: core marks its own a few round trips after their start. */
const unmarkedMs = 5_000
/**
 * All sessions of a server share one table of locks, with 64 for each by default; when it is full, statements fail. If sessions that
 * no core has opened hold more than `mostForeignLocks` together, those with more than their share are ended.
 */
const mostForeignLocks = 1_000
const shareOfLocks = 64
/**
 * How long a session that no core has opened may keep PostgreSQL from removing rows that were replaced. Each posting replaces three
 * rows, and each look-up of one of them passes all its versions that were not removed.
 */
const defaultKeptMs = 5 * 60_000
/**
 * How long a session that no core has opened may stay in this database. If its owner allows temporary tables, PostgreSQL reuses no
 * transaction IDs as long as a session has one. Another session can use up half of them in this time.
 */
const defaultStayMs = 30 * 60_000
/**
 * How long a session may take to start after it has logged in. Its owner can delay that (`post_auth_delay`), by a minute when measured.
 * Meanwhile it keeps rows that were replaced, and PostgreSQL tells nobody whose it is. Core gives up its own after two seconds (see
 * pool.ts).
 */
const defaultStartingMs = 5_000

/** What every role may see of a session. */
export type BlockingSession = { pid: number; role: string; application: string }

type Session = BlockingSession & {
  hasRoleOfCore: boolean
  /** Null if the session is of another role, or does not use the network. */
  address: string | null
  startedAt: string
  ageMs: number
  /** The keys of the advisory locks that it holds. */
  marks: string[]
  /** The pids of the sessions that wait for it. */
  blocks: number[]
  /**
   * Whether it has been holding a lock on a table, or on rows of it, for five seconds. Core skips locked webhooks: it would never wait
   * for this session, and never deliver their events.
   */
  hasLocked: boolean
  /** Whether it holds such a lock now. */
  holdsLock: boolean
  /** The transaction from which on PostgreSQL keeps rows that were replaced, because of this session. */
  oldest: string | null
  /** Whether its transaction has more than 64 subtransactions, for which every snapshot of the server has to look on disk. */
  hasOverflowed: boolean
  /** Whether it is in the database of core. */
  isHere: boolean
  isVacuum: boolean
}

type EndedSession = Pick<Session, 'pid' | 'application' | 'address' | 'startedAt'>

/** Since when, by `performance.now()`. */
type Noted<Of extends Pick<Session, 'pid' | 'startedAt'>> = { session: Of; sinceMs: number; isLogged: boolean }

const findSessionsStatement = statement<Session>(
  'find-sessions',
  `with lock as materialized (select * from pg_locks),
     blocking as materialized (
       select blocker.pid, array_agg(waiting.pid) as waiting
       from (select distinct pid from lock where not granted) waiting, unnest(pg_blocking_pids(waiting.pid)) blocker (pid)
       where waiting.pid in (select pid from pg_stat_activity where datname = current_database())
       group by blocker.pid),
     locking as materialized (
       select l.pid from lock l join pg_class c on c.oid = l.relation
       where l.locktype = 'relation' and l.granted and l.mode <> 'AccessShareLock'
         and l.database = (select oid from pg_database where datname = current_database())
         and c.relnamespace = current_schema()::regnamespace),
     overflowed as materialized (
       select pg_stat_get_backend_pid(id) as pid from pg_stat_get_backend_idset() id
       where (pg_stat_get_backend_subxact(id)).subxact_overflowed)
   select a.pid, coalesce(a.usename, a.backend_type) as role, a.usename is not distinct from session_user as "hasRoleOfCore",
     coalesce(a.application_name, '') as application, host(a.client_addr) || ':' || a.client_port as address,
     coalesce(a.backend_start::text, '') as "startedAt",
     coalesce(extract(epoch from clock_timestamp() - a.backend_start) * 1000, 0)::float8 as "ageMs",
     array(select ((l.classid::bigint << 32) | l.objid::bigint)::text from lock l
       where l.pid = a.pid and l.locktype = 'advisory' and l.objsubid = 1 and l.granted) as marks,
     coalesce((select waiting from blocking where blocking.pid = a.pid), '{}') as blocks,
     coalesce(a.xact_start < clock_timestamp() - interval '5 s', false)
       and a.pid in (select pid from locking) as "hasLocked",
     a.pid in (select pid from locking) as "holdsLock",
     -- A snapshot counts for its own database, and a transaction for all of them.
     coalesce(case when a.datname = current_database() then a.backend_xmin end, a.backend_xid)::text as oldest,
     a.pid in (select pid from overflowed) as "hasOverflowed",
     a.datname is not distinct from current_database() as "isHere",
     a.pid in (select pid from pg_stat_progress_vacuum) as "isVacuum"
   from pg_stat_activity a
   -- In all databases: a session can also lock the role itself, which a migration changes.
   where a.pid <> pg_backend_pid() and (a.usename = session_user or a.pid in (select pid from blocking))`,
)

type Holder = EndedSession & { marks: string[] | null; locks: number; hasSnapshot: boolean }

/**
 * Sessions of the service's role in all databases of the server that have more than their share of the table of locks, or a snapshot,
 * without which no session keeps a page in a buffer. This and the statement that ends sessions read no table and no view, which they
 * would have to lock: they also run when that table is full. A session that has run them before needs no page to run them again,
 * unless a change of the catalog has made PostgreSQL drop its plans.
 */
const findHoldersStatement = statement<Holder>(
  'find-holders',
  `with lock as materialized (
     select pid, count(*)::integer as locks,
       array_agg(((classid::bigint << 32) | objid::bigint)::text)
         filter (where locktype = 'advisory' and objsubid = 1 and granted) as marks
     from pg_lock_status() where not fastpath group by pid)
   select a.pid, coalesce(a.application_name, '') as application, host(a.client_addr) || ':' || a.client_port as address,
     a.backend_start::text as "startedAt", l.marks, coalesce(l.locks, 0) as locks,
     coalesce(a.backend_xmin, a.backend_xid) is not null as "hasSnapshot"
   from pg_stat_get_activity(null) a left join lock l on l.pid = a.pid
   where a.usesysid = $1 and a.pid <> pg_backend_pid()
     and (l.locks > ${shareOfLocks} or coalesce(a.backend_xmin, a.backend_xid) is not null)`,
)

const findRoleStatement = statement<{ role: number }>('find-role', 'select session_user::regrole::oid as role')

/** Tells sessions to end, all at once: those that share a row with others would otherwise take turns. */
const endSessionsStatement = statement<{ pid: number; isTold: boolean }>(
  'end-sessions',
  `select a.pid, pg_terminate_backend(a.pid) as "isTold"
   from unnest($1::integer[], $2::timestamptz[]) session (pid, started), pg_stat_get_activity(session.pid) a
   where a.backend_start = session.started and a.usesysid = $3`,
)

/**
 * Runs on a new connection what a look needs while cursors of other sessions keep a page in each buffer of PostgreSQL. Nobody can open
 * a connection then, nor run anything else for the first time.
 */
export async function prepareLook(client: ClientBase): Promise<void> {
  await run(client, findHoldersStatement, [0])
  await run(client, endSessionsStatement, [[], [], 0])
}

type StartingSession = { pid: number; transaction: string }

/**
 * Sessions of any role that have logged in to this database, which they lock until they have started. Core may not see when they began.
 * No other session gets the same pid with the same transaction, until the server is restarted.
 */
const findStartingStatement = statement<StartingSession>(
  'find-starting-sessions',
  `select l.pid, l.virtualtransaction as transaction from pg_lock_status() l
   where l.locktype = 'object' and l.classid = 'pg_database'::regclass
     and l.objid = (select oid from pg_database where datname = current_database())
     and l.pid in (select a.pid from pg_stat_get_activity(null) a where a.datid is null)`,
)

const endStartingStatement = statement<{ isTold: boolean }>(
  'end-starting-session',
  'select pg_terminate_backend($1) as "isTold"',
)

type PreparedTransaction = { name: string; database: string; isHere: boolean }

const findPreparedStatement = statement<PreparedTransaction>(
  'find-prepared-transactions',
  `select gid as name, database, database = current_database() as "isHere" from pg_prepared_xacts where owner = session_user`,
)

/**
 * Sessions that no core has opened. Whoever has the password of the service's role can hold any lock that core needs, and keep PostgreSQL
 * from what it does in the background; so core ends such sessions of its own role. Those of other roles that block a core it can only name.
 */
export class ForeignSessions {
  /** Opens one connection, which it keeps: it must not wait for one when all others wait for locks. */
  readonly #own: Pool
  /**
   * Used in turn if the own connection fails: whoever ends that session again and again would have to find and end another one in the
   * milliseconds for which it looks.
   */
  readonly #others: readonly Pool[]
  /** The pool of this look. */
  #db: Pool
  readonly #ownCheck: RepeatedCheck
  readonly #check: RepeatedCheck
  readonly #chainKey: KeyObject
  readonly #log: Log
  /** By pid and start: sessions of other roles that block cores, and since when, by `performance.now()`. */
  #blocking = new Map<string, Noted<Session>>()
  /** By pid and start: sessions that were told to end, and since when. */
  readonly #ending = new Map<string, Noted<EndedSession>>()
  /**
   * By `oldest`: since when a session that no core has opened has it, by `performance.now()`. Not by session: one can pass it on to
   * another (`pg_export_snapshot`).
   */
  #kept = new Map<string, number>()
  /**
   * Since when there has always been a session that no core has opened with a snapshot or a transaction in this database. Several in turn
   * keep PostgreSQL from removing rows of the pages at which their cursors are.
   */
  #alwaysKeptSinceMs: number | undefined
  /** By pid and transaction: since when core finds sessions that start. Infinity once it has told one to end, or may not, as those of other roles. */
  #starting = new Map<string, number>()
  readonly #keptMs: number
  readonly #stayMs: number
  readonly #startingMs: number
  readonly #endingMs: number
  /** The names of prepared transactions in other databases, each of which is logged once. */
  #prepared = new Set<string>()
  /** Whether a statement of this core has failed since the last look because PostgreSQL had no buffer for a page. */
  #lacksBuffers = false
  /** The OID of the service's role. */
  #role: number | undefined
  /** How many foreign sessions this core has ended, and how many it found last. */
  ended = 0
  found = 0

  constructor(
    own: Pool,
    chainKey: KeyObject,
    log: Log,
    {
      keptMs = defaultKeptMs,
      stayMs = defaultStayMs,
      startingMs = defaultStartingMs,
      endingMs = defaultEndingMs,
      others = [],
    }: { keptMs?: number; stayMs?: number; startingMs?: number; endingMs?: number; others?: readonly Pool[] } = {},
  ) {
    this.#own = own
    this.#others = others
    this.#db = own
    this.#ownCheck = new RepeatedCheck(log, 'foreign sessions, on the own connection')
    this.#check = new RepeatedCheck(log, 'foreign sessions')
    this.#chainKey = chainKey
    this.#log = log
    this.#keptMs = keptMs
    this.#stayMs = stayMs
    this.#startingMs = startingMs
    this.#endingMs = endingMs
  }

  /** Notes when statements of this pool fail because PostgreSQL has no buffer for a page. The look itself may not need another page. */
  watchErrors(pool: Pool): void {
    pool.on('connect', client => {
      ;(client as unknown as Client).connection.on('errorMessage', (error: unknown) => {
        this.#lacksBuffers ||= isWithoutBuffers(error)
      })
    })
  }

  /** Looks for foreign sessions twice a second, and soon again after it has ended some. */
  async watch(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const { ended } = this
      await this.look().catch(() => {})
      await pause(this.ended > ended ? afterEndMs : intervalMs, stopping)
    }
  }

  /** Call it when the schema has moved to another server, where the service's role has another OID. */
  forgetRole(): void {
    this.#role = undefined
  }

  /** How long ago they were looked for successfully. */
  get lookAgeMs(): number {
    return this.#check.ageMs
  }

  /**
   * Ends those that keep others from working or stay too long, and notes those that it may not end.
   *
   * @throws the error of the last connection, if it fails on all of them
   */
  async look(): Promise<void> {
    const errors: unknown[] = []
    for (const pool of [this.#own, ...this.#others]) {
      this.#db = pool
      try {
        await this.#lookOnce()
      } catch (error) {
        errors.push(error)
        continue
      }
      if (pool === this.#own) this.#ownCheck.succeeded()
      else this.#ownCheck.failed(errors[0], { isAnswering: true })
      this.#check.succeeded()
      return
    }
    const error = errors.find(isEnded) ?? errors.at(-1)
    this.#check.failed(error)
    throw error
  }

  async #lookOnce(): Promise<void> {
    this.#role ??= (await run(this.#db, findRoleStatement, []))[0]!.role
    const holders = await run(this.#db, findHoldersStatement, [this.#role])
    const foreignHolders = holders.filter(holder => !this.#isMarked(holder))
    const locking = foreignHolders.filter(({ locks }) => locks > shareOfLocks)
    const isTableFull = locking.reduce((sum, { locks }) => sum + locks, 0) > mostForeignLocks
    const lacksBuffers = this.#lacksBuffers
    await this.#end(
      foreignHolders.filter(
        holder => (isTableFull && locking.includes(holder)) || (lacksBuffers && holder.hasSnapshot),
      ),
    )
    if (lacksBuffers) this.#lacksBuffers = false
    const sessions = await run(this.#db, findSessionsStatement, [])
    const ours = sessions.filter(({ hasRoleOfCore }) => hasRoleOfCore)
    const foreign = ours.filter(session => !this.#isMarked(session))
    this.found = foreign.filter(({ isHere, ageMs }) => isHere && ageMs > unmarkedMs).length
    const keeping = this.#findKeeping(foreign)
    for (const id of this.#ending.keys()) if (!foreign.some(session => idOf(session) === id)) this.#ending.delete(id)
    // PostgreSQL lets more sessions share a row while somebody waits for it, and names only one of them as the one who blocks.
    const isBlocking = foreign.some(({ blocks }) => blocks.length > 0)
    const cores = new Set(ours.filter(session => !foreign.includes(session)).map(({ pid }) => pid))
    const blockingOthers = sessions.filter(
      ({ hasRoleOfCore, blocks }) => !hasRoleOfCore && blocks.some(pid => cores.has(pid)),
    )
    // A vacuum waits for a page at which a cursor is, while core waits for the vacuum. PostgreSQL does not say whose cursor it is.
    const isVacuumBlocking = blockingOthers.some(({ isVacuum }) => isVacuum)
    const mayBlockVacuum = ({ isHere, oldest }: Session) => isVacuumBlocking && isHere && oldest !== null
    await this.#end(
      foreign.filter(
        session =>
          session.blocks.length > 0 ||
          (isBlocking && session.holdsLock) ||
          session.hasLocked ||
          session.hasOverflowed ||
          mayBlockVacuum(session) ||
          (session.isHere && session.ageMs > this.#stayMs) ||
          keeping.includes(session),
      ),
    )
    await this.#endStarting()
    await this.#rollBackPrepared()
    this.#note(blockingOthers)
  }

  /** The sessions of other roles that block cores now, for an operator; empty without any. */
  describeBlocking(): string {
    const described = Array.from(this.#blocking.values(), ({ session }) => describeSession(session))
    const pids = Array.from(this.#blocking.values(), ({ session }) => `select pg_terminate_backend(${session.pid});`)
    return described.length === 0 ? '' : `${described.join(', ')}. To end it, run as a superuser: ${pids.join(' ')}`
  }

  #isMarked(session: Pick<Session, 'pid' | 'startedAt'> & { marks: string[] | null }): boolean {
    return session.marks?.includes(markOf(this.#chainKey, session)) ?? false
  }

  #findKeeping(foreign: readonly Session[]): Session[] {
    const nowMs = performance.now()
    const sinceMs = ({ oldest }: Session) => this.#kept.get(oldest!) ?? nowMs
    const reading = foreign.filter(({ oldest }) => oldest !== null)
    this.#kept = new Map(reading.map(session => [session.oldest!, sinceMs(session)]))
    this.#alwaysKeptSinceMs = reading.some(({ isHere }) => isHere) ? (this.#alwaysKeptSinceMs ?? nowMs) : undefined
    const areInTurn = nowMs - (this.#alwaysKeptSinceMs ?? nowMs) >= this.#keptMs
    return reading.filter(session => nowMs - sinceMs(session) >= this.#keptMs || (areInTurn && session.isHere))
  }

  async #end(sessions: readonly EndedSession[]): Promise<void> {
    const [pids, starts] = [sessions.map(({ pid }) => pid), sessions.map(({ startedAt }) => startedAt)]
    // Also without any: if PostgreSQL has dropped its plan of the statement, it reads pages to make another one.
    const results = await run(this.#db, endSessionsStatement, [pids, starts, this.#role])
    if (sessions.length === 0) return
    const told = new Set(results.filter(({ isTold }) => isTold).map(({ pid }) => pid))
    const nowMs = performance.now()
    const ended = sessions
      .filter(session => told.has(session.pid) && !this.#ending.has(idOf(session)))
      .map(({ pid, application, address, startedAt }) => ({ pid, application, address, startedAt }))
    for (const session of ended) this.#ending.set(idOf(session), { session, sinceMs: nowMs, isLogged: false })
    this.#noteEnded(ended)
    for (const each of this.#ending.values()) {
      if (each.isLogged || nowMs - each.sinceMs < this.#endingMs) continue
      each.isLogged = true
      this.#log.error(
        each.session,
        'a session does not end, because PostgreSQL cannot interrupt what it does. To end it, run kill -9 with its pid on the server of PostgreSQL, which then recovers as after a crash',
      )
    }
  }

  #noteEnded(sessions: readonly object[]): void {
    this.ended += sessions.length
    if (sessions.length === 0) return
    this.#log.error(
      { sessions },
      "core ends sessions of the service's role that no core has opened, because they kept others from working or stayed too long: change the password of the role",
    )
  }

  async #endStarting(): Promise<void> {
    const found = await run(this.#db, findStartingStatement, [])
    const nowMs = performance.now()
    const idOf = ({ pid, transaction }: StartingSession) => `${pid} ${transaction}`
    this.#starting = new Map(found.map(idOf).map(id => [id, this.#starting.get(id) ?? nowMs]))
    const ended: object[] = []
    try {
      for (const session of found) {
        if (nowMs - this.#starting.get(idOf(session))! < this.#startingMs) continue
        const [result] = await run(this.#db, endStartingStatement, [session.pid]).catch(error => {
          if (isRefused(error)) return []
          throw error
        })
        this.#starting.set(idOf(session), Number.POSITIVE_INFINITY)
        if (result?.isTold) ended.push({ pid: session.pid, state: 'starting' })
      }
    } finally {
      this.found += ended.length
      this.#noteEnded(ended)
    }
  }

  /** Core prepares no transactions. One that somebody else has prepared holds its locks without a session. */
  async #rollBackPrepared(): Promise<void> {
    const found = await run(this.#db, findPreparedStatement, [])
    this.#notePrepared(found.filter(({ isHere }) => !isHere))
    for (const { name, isHere } of found) {
      if (!isHere) continue
      // Another core may do the same at this moment.
      const hasEnded = await this.#db.query(`rollback prepared ${pg.escapeLiteral(name)}`).catch(() => null)
      if (!hasEnded) continue
      this.#log.error(
        { transaction: name },
        "a prepared transaction of the service's role was rolled back: change the password of the role",
      )
    }
  }

  /** A transaction is rolled back in its own database only. */
  #notePrepared(elsewhere: readonly PreparedTransaction[]): void {
    for (const { name, database } of elsewhere) {
      if (this.#prepared.has(name)) continue
      this.#log.error(
        { transaction: name, database },
        "a prepared transaction of the service's role in another database holds locks and keeps replaced rows: run rollback prepared there, and change the password of the role",
      )
    }
    this.#prepared = new Set(elsewhere.map(({ name }) => name))
  }

  #note(sessions: readonly Session[]): void {
    const nowMs = performance.now()
    const blocking = new Map<string, Noted<Session>>()
    for (const session of sessions) {
      const id = idOf(session)
      const known = this.#blocking.get(id) ?? { session, sinceMs: nowMs, isLogged: false }
      blocking.set(id, known)
      if (known.isLogged || nowMs - known.sinceMs < loggedAfterMs) continue
      known.isLogged = true
      const { pid, role, application } = session
      this.#log.warn({ pid, role, application }, 'a session of another role blocks core, which may not end it')
    }
    this.#blocking = blocking
  }
}

/** PostgreSQL uses pids again. */
function idOf({ pid, startedAt }: Pick<Session, 'pid' | 'startedAt'>): string {
  return `${pid} ${startedAt}`
}

export function describeSession({ pid, role, application }: BlockingSession): string {
  return `process ${pid} (role ${role}, application "${application}")`
}
