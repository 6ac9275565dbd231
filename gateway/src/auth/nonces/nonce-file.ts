import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { Buckets } from '../limits/buckets.ts'
import type { Rate, Tally } from '../limits/rate.ts'
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
  /** The rate limit of each API key, if there is one. */
  keyRate: Rate | undefined
}

type Open = {
  database: DatabaseSync
  generation: Generation
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
 * If they differ later, the files are moved aside and a new generation begins (docs/decisions/0007).
 */
export class NonceFile {
  readonly #path: string
  readonly #logPath: string
  readonly #statePath: string
  readonly #buckets: Buckets | undefined
  #open: Open | undefined
  /** The state of the files after the last batch; undefined before the first one. */
  #lastState: string | undefined
  /** The time when `performance.now()` was 0. The sum is a clock that changes of the system time do not affect. */
  #timeOriginMs = Date.now()

  constructor({ path, keyRate }: NonceFileOptions) {
    this.#path = path
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

  close(): void {
    if (!this.#open) return
    this.#closeDatabase()
    this.#storeState()
  }

  #runInTransaction(
    { database, find, insert, deleteExpired, probe }: Open,
    queries: readonly NonceQuery[],
  ): FileResult[] {
    const nowMs = this.#nowMs()
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
      insert.run(name, nowMs)
      return tally ? { isNew: true, tally } : { isNew: true }
    }
    database.exec('begin')
    const results = queries.map(run)
    const isWriting = queries.some(({ kind }) => kind !== 'lookup')
    if (isWriting) deleteExpired.run(queries.length * deletedPerQuery, nowMs - nonceLifeMs)
    database.exec('commit')
    if (isWriting) this.#storeState()
    return results
  }

  /** Milliseconds since the Unix epoch, monotonic since the file was opened. */
  #nowMs(): number {
    return Math.floor(this.#timeOriginMs + performance.now())
  }

  #ensureOpen(): Open {
    const state = this.#readState()
    const isUntouched = state !== undefined && state === (this.#lastState ?? this.#readStoredState())
    if (isUntouched && this.#open) return this.#open
    this.#closeDatabase()
    this.#open = (isUntouched && this.#openExisting()) || this.#begin()
    this.#storeState()
    return this.#open
  }

  /** Continues the generation in the file; undefined if SQLite finds the file damaged. */
  #openExisting(): Open | undefined {
    try {
      return this.#openDatabase()
    } catch (error) {
      if (![sqliteCorrupt, sqliteNotADatabase].includes(errorCodeOf(error))) throw error
      return undefined
    }
  }

  /** Begins a new generation, in a new file. */
  #begin(): Open {
    if (exists(this.#path)) renameSync(this.#path, `${this.#path}.lost`)
    for (const path of [this.#logPath, `${this.#path}-journal`, this.#statePath]) rmSync(path, { force: true })
    try {
      // SQLite would create a file that every user may read.
      closeSync(openSync(this.#path, 'wx', 0o600))
      return this.#openDatabase({ id: randomUUID(), beganAt: Math.floor(Date.now() / 1000) })
    } catch (error) {
      this.#closeDatabase()
      rmSync(this.#path, { force: true })
      throw error
    }
  }

  /** @param newGeneration written to a new file */
  #openDatabase(newGeneration?: Generation): Open {
    const database = new DatabaseSync(this.#path)
    try {
      database.exec('pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full')
      if (newGeneration) {
        database.exec(schema)
        database
          .prepare('insert into generation (id, began_at, probed_at) values (?, ?, 0)')
          .run(newGeneration.id, newGeneration.beganAt)
        database.exec('commit')
      }
      const { id, beganAt } = database.prepare('select id, began_at as "beganAt" from generation').get()!
      const newest = database.prepare('select claimed_at as "claimedAt" from nonce order by id desc limit 1').get()
      // If the system clock was set back, new nonces must still be newer than the existing ones.
      this.#timeOriginMs = Math.max(Date.now(), Number(newest?.claimedAt ?? 0)) - performance.now()
      return {
        database,
        generation: { id: String(id), beganAt: Number(beganAt) },
        find: database.prepare('select 1 from nonce where name = ?'),
        insert: database.prepare('insert into nonce (name, claimed_at) values (?, ?)'),
        deleteExpired: database.prepare(
          'delete from nonce where id in (select id from nonce order by id limit ?) and claimed_at < ?',
        ),
        probe: database.prepare('update generation set probed_at = ?'),
      }
    } catch (error) {
      database.close()
      throw error
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
  #readState(): string | undefined {
    const states = [this.#path, this.#logPath].map(path => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found ? `${found.ino}:${found.size}:${found.ctimeNs}` : 'none'
    })
    return states[0] === 'none' ? undefined : states.join(' ')
  }

  /**
   * Stores the state of the files, also for the next start. It is not synced to disk: after a power failure, a new generation
   * begins. It survives a killed process.
   */
  #storeState(): void {
    this.#lastState = this.#readState()
    if (!this.#lastState) return
    try {
      // A constant length, so that it can be written to a full disk.
      const file = openSync(this.#statePath, constants.O_WRONLY | constants.O_CREAT, 0o600)
      writeSync(file, this.#lastState.padEnd(stateLength))
      closeSync(file)
    } catch {
      // Without a stored state, the next start begins a new generation, which is safe.
    }
  }

  #readStoredState(): string | undefined {
    return exists(this.#statePath) ? readFileSync(this.#statePath, 'utf8').trimEnd() : undefined
  }
}

const schema = `
begin;
create table generation (id text not null, began_at integer not null, probed_at integer not null);
create table nonce (id integer primary key, name text not null unique, claimed_at integer not null);
`

/** Longer than any state. */
const stateLength = 255

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
