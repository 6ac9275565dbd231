import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { Buckets } from '../limits/buckets.ts'
import type { Rate, Tally } from '../limits/rate.ts'
import { nonceMac } from './generations.ts'
import { nonceLifeMs } from './store.ts'

/** A query of the file. `probe` checks whether it can be written. */
export type NonceQuery = { kind: 'claim' | 'lookup'; apiKey: string; nonce: string } | { kind: 'probe' }
/** Whether the nonce was new, and the state of the key's bucket if there is a rate limit (see Claim). */
export type FileResult = { isNew: boolean; tally?: Tally }

/** A generation of the nonce store. `beganAt` in seconds since the Unix epoch. */
export type Generation = { id: string; beganAt: number }
/** The results of a batch, and the generation for which they are valid. */
export type FileAnswer = { generation: Generation; results: FileResult[] }

export type NonceFileOptions = {
  path: string
  /** The key of the nonce store: see generations.ts. */
  key: string
  /** The rate limit of each API key, if there is one. */
  keyRate: Rate | undefined
}

/** The nonces in the file: their IDs are `first` to `last`, without gaps. Without nonces, `first` is `last + 1`. */
type Content = { generation: Generation; first: number; last: number }

/** What a batch left behind. `files`: inode, size and change time of the file and of its log. */
type State = Content & { files: string }

type Open = Content & {
  database: DatabaseSync
  find: StatementSync
  insert: StatementSync
  deleteExpired: StatementSync
  probe: StatementSync
}

/** Expired nonces that a batch deletes per query. More than it can insert, so that they do not accumulate. */
const deletedPerQuery = 4

/**
 * Nonces in an SQLite file. Every batch of queries is one transaction, which is durable when it returns.
 *
 * SQLite cannot detect that its file was deleted, replaced, or overwritten with an older copy. Therefore the inode, size and
 * change time of the file and its write-ahead log are stored next to it after every batch; no program can set a change time.
 * This state and each row carry a MAC, so that whoever can write the files, but lacks the key, cannot change them unnoticed.
 * If anything differs later, the files are moved aside and a new generation begins (docs/decisions/0007).
 */
export class NonceFile {
  readonly #path: string
  readonly #logPath: string
  readonly #statePath: string
  readonly #key: string
  readonly #buckets: Buckets | undefined
  #open: Open | undefined
  /** The state after the last batch; undefined before the first one. */
  #lastState: State | undefined
  /** The latest time, by the system clock, when `performance.now()` was 0. */
  #timeOriginMs = Date.now()

  constructor({ path, key, keyRate }: NonceFileOptions) {
    this.#path = path
    this.#key = key
    this.#logPath = `${path}-wal`
    this.#statePath = `${path}.state`
    this.#buckets = keyRate && new Buckets(keyRate)
  }

  /** Runs a batch of queries. @throws Error if the file cannot be read or written; the next batch tries again */
  answer(queries: readonly NonceQuery[]): FileAnswer {
    try {
      const open = this.#ensureOpen()
      return { generation: open.generation, results: this.#runInTransaction(open, queries) }
    } catch (error) {
      // Closing the file would write its log into it, which needs space as well.
      if (errorCodeOf(error) !== sqliteFull) this.close()
      else if (this.#open?.database.isTransaction) this.#open.database.exec('rollback')
      throw error
    }
  }

  /** Begins a new generation if this one is current: requests were accepted in another one meanwhile. */
  endGeneration(id: string): void {
    if (this.#open?.generation.id !== id) return
    this.#closeDatabase()
    this.#open = this.#begin()
    this.#storeState(this.#open)
  }

  close(): void {
    const open = this.#open
    if (!open) return
    this.#closeDatabase()
    this.#storeState(open)
  }

  #runInTransaction(open: Open, queries: readonly NonceQuery[]): FileResult[] {
    const { database, generation, find, insert, deleteExpired, probe } = open
    const nowMs = this.#nowMs()
    let { first, last } = open
    const run = (query: NonceQuery): FileResult => {
      if (query.kind === 'probe') {
        probe.run(nowMs)
        return { isNew: true }
      }
      const name = `${query.apiKey} ${query.nonce}`
      if (find.get(name)) return { isNew: false }
      if (query.kind === 'lookup') return { isNew: true }
      const tally = this.#buckets?.take(query.apiKey, nowMs)
      if (tally && tally.waitMs > 0) return { isNew: true, tally }
      last++
      insert.run(last, name, nowMs, this.#rowMac(generation, last, name, nowMs))
      return tally ? { isNew: true, tally } : { isNew: true }
    }
    database.exec('begin')
    const results = queries.map(run)
    const isWriting = queries.some(({ kind }) => kind !== 'lookup')
    // After the system clock was set back, gateways accept the timestamps of older requests again.
    const expiredMs = Math.min(nowMs, Date.now()) - nonceLifeMs
    // The oldest, so the IDs of the others still have no gap.
    if (isWriting) first += Number(deleteExpired.run(queries.length * deletedPerQuery, expiredMs).changes)
    database.exec('commit')
    Object.assign(open, { first, last })
    if (isWriting) this.#storeState(open)
    return results
  }

  #rowMac({ id: generationId }: Generation, id: number, name: string, claimedAtMs: number): string {
    return nonceMac(this.#key, `nonce ${generationId} ${id} ${claimedAtMs} ${name}`)
  }

  /** Milliseconds since the Unix epoch. It follows a system clock that is set forward, and not one that is set back. */
  #nowMs(): number {
    this.#timeOriginMs = Math.max(this.#timeOriginMs, Date.now() - performance.now())
    return Math.floor(this.#timeOriginMs + performance.now())
  }

  #ensureOpen(): Open {
    const state = this.#lastState ?? this.#readStoredState()
    const isUntouched = state !== undefined && state.files === this.#readFiles()
    if (isUntouched && this.#open) return this.#open
    this.#closeDatabase()
    this.#open = (isUntouched && this.#continue(state)) || this.#begin()
    this.#storeState(this.#open)
    return this.#open
  }

  /** Opens the existing file; undefined if it does not contain exactly what the gateway has written. */
  #continue(state: State): Open | undefined {
    const database = this.#openDatabase()
    try {
      if (this.#isGenuine(database, state)) return this.#prepare(database, state)
    } catch (error) {
      database.close()
      if (![sqliteCorrupt, sqliteNotADatabase].includes(errorCodeOf(error))) throw error
      return undefined
    }
    database.close()
    return undefined
  }

  #isGenuine(database: DatabaseSync, { generation, first, last }: State): boolean {
    // A trigger could remove nonces, and a wrong index could hide them.
    if (schemaOf(database) !== expectedSchema()) return false
    if (database.prepare('pragma integrity_check(1)').get()!.integrity_check !== 'ok') return false
    let id = first
    for (const row of database.prepare('select * from nonce order by id').iterate()) {
      const { name, claimed_at: claimedAtMs, mac } = row as { name: string; claimed_at: number; mac: string }
      if (row.id !== id || mac !== this.#rowMac(generation, id, name, claimedAtMs)) return false
      id++
    }
    return id === last + 1
  }

  /** Begins a new generation, in a new file. */
  #begin(): Open {
    if (exists(this.#path)) renameSync(this.#path, `${this.#path}.lost`)
    for (const path of [this.#logPath, `${this.#path}-journal`, this.#statePath]) rmSync(path, { force: true })
    let database: DatabaseSync | undefined
    try {
      // SQLite would create a file that every user may read.
      closeSync(openSync(this.#path, 'wx', 0o600))
      database = this.#openDatabase()
      database.exec(`begin; ${schema}; insert into probe (at) values (0); commit`)
      const generation = { id: randomUUID(), beganAt: Math.floor(Date.now() / 1000) }
      return this.#prepare(database, { generation, first: 1, last: 0 })
    } catch (error) {
      database?.close()
      rmSync(this.#path, { force: true })
      throw error
    }
  }

  #openDatabase(): DatabaseSync {
    const database = new DatabaseSync(this.#path)
    try {
      database.exec('pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full')
      return database
    } catch (error) {
      database.close()
      throw error
    }
  }

  #prepare(database: DatabaseSync, { generation, first, last }: Content): Open {
    const newest = database.prepare('select claimed_at as "claimedAt" from nonce order by id desc limit 1').get()
    // If the system clock was set back, new nonces must still be newer than the existing ones.
    this.#timeOriginMs = Math.max(Date.now(), Number(newest?.claimedAt ?? 0)) - performance.now()
    return {
      database,
      generation,
      first,
      last,
      find: database.prepare('select 1 from nonce where name = ?'),
      insert: database.prepare('insert into nonce (id, name, claimed_at, mac) values (?, ?, ?, ?)'),
      deleteExpired: database.prepare(
        'delete from nonce where id in (select id from nonce order by id limit ?) and claimed_at < ?',
      ),
      probe: database.prepare('update probe set at = ?'),
    }
  }

  #closeDatabase(): void {
    try {
      this.#open?.database.close()
    } catch {
      // Nothing is lost: every answered batch is on disk.
    }
    this.#open = undefined
  }

  /** Inode, size and change time of the file and of its log; undefined if there is no file. */
  #readFiles(): string | undefined {
    const files = [this.#path, this.#logPath].map(path => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found ? `${found.ino}:${found.size}:${found.ctimeNs}` : 'none'
    })
    return files[0] === 'none' ? undefined : files.join(' ')
  }

  /**
   * Stores the state of the files, also for the next start. It is not synced to disk: after a power failure, a new generation
   * begins. It survives a killed process.
   */
  #storeState({ generation, first, last }: Content): void {
    const files = this.#readFiles()
    this.#lastState = files === undefined ? undefined : { files, generation, first, last }
    if (!files) return
    const text = [files, generation.id, generation.beganAt, first, last].join(' ')
    try {
      // A constant length, so that it can be written to a full disk.
      const file = openSync(this.#statePath, constants.O_WRONLY | constants.O_CREAT, 0o600)
      writeSync(file, `${text} ${nonceMac(this.#key, `state ${text}`)}`.padEnd(stateLength))
      closeSync(file)
    } catch {
      // Without a stored state, the next start begins a new generation, which is safe.
    }
  }

  /** Undefined if there is none, or if the gateway did not write it. */
  #readStoredState(): State | undefined {
    if (!exists(this.#statePath)) return undefined
    const stored = readFileSync(this.#statePath, 'utf8').trimEnd()
    const [file, log, id, beganAt, first, last, mac] = stored.split(' ')
    const text = stored.slice(0, stored.lastIndexOf(' '))
    if (mac !== nonceMac(this.#key, `state ${text}`)) return undefined
    const generation = { id: id!, beganAt: Number(beganAt) }
    return { files: `${file} ${log}`, generation, first: Number(first), last: Number(last) }
  }
}

const schema = `
create table probe (at integer not null);
create table nonce (id integer primary key, name text not null unique, claimed_at integer not null, mac text not null)
`

/** The definition of every object in a database. */
function schemaOf(database: DatabaseSync): string {
  return JSON.stringify(database.prepare('select type, name, tbl_name, sql from sqlite_schema order by name').all())
}

function expectedSchema(): string {
  const database = new DatabaseSync(':memory:')
  database.exec(schema)
  const text = schemaOf(database)
  database.close()
  return text
}

/** Longer than any state. */
const stateLength = 511

const sqliteCorrupt = 11
const sqliteFull = 13
const sqliteNotADatabase = 26

/** SQLite's primary result code; 0 for other errors. */
function errorCodeOf(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
