import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { Buckets } from '../limits/buckets.ts'
import type { Rate, Tally } from '../limits/rate.ts'
import { nonceLifeMs } from './store.ts'

/** What is asked of the file; `probe` only shows whether it can be written. */
export type Question = { kind: 'claim' | 'look'; apiKey: string; nonce: string } | { kind: 'probe' }
/** Whether the nonce was new, and how its key's bucket stands where that is limited (see Claim). */
export type FileAnswer = { isNew: boolean; tally?: Tally }

/** A generation of the nonce store. `beganAt` in seconds since the Unix epoch. */
export type Generation = { id: string; beganAt: number }
export type FileAnswers = { generation: Generation; answers: FileAnswer[] }

export type NonceFileOptions = {
  path: string
  /** The limit on requests under one key, if there is one. */
  keyRate: Rate | undefined
}

type Open = {
  database: DatabaseSync
  generation: Generation
  find: StatementSync
  insert: StatementSync
  sweep: StatementSync
  probe: StatementSync
}

/** Expired nonces that one batch deletes for each that it may insert: more than come, so that none pile up. */
const sweptPerQuestion = 4

/**
 * Nonces in an SQLite file. Every batch of questions is one transaction, durable when it returns.
 *
 * What SQLite cannot notice is that its file was deleted, replaced, or overwritten with an older copy. So the inode, size
 * and change time of the file and its log are noted beside it after every batch (nobody can set a change time): files that
 * are not as they were left are put aside, and a new generation begins. See docs/decisions.
 */
export class NonceFile {
  readonly #path: string
  readonly #logPath: string
  readonly #notePath: string
  readonly #buckets: Buckets | undefined
  #open: Open | undefined
  /** The state of the files as the last batch left them; undefined before the first. */
  #leftState: string | undefined
  /** What `performance.now()` is added to: a clock that a new system time does not move. */
  #epochMs = Date.now()

  constructor({ path, keyRate }: NonceFileOptions) {
    this.#path = path
    this.#logPath = `${path}-wal`
    this.#notePath = `${path}.state`
    this.#buckets = keyRate && new Buckets(keyRate)
  }

  /** @throws Error when the file cannot be read or written; the next batch tries again */
  answer(questions: readonly Question[]): FileAnswers {
    try {
      const open = this.#ensureOpen()
      return { generation: open.generation, answers: this.#inTransaction(open, questions) }
    } catch (error) {
      // Closing it moves what is in its log, for which there is no space either.
      if (errorCodeOf(error) !== sqliteFull) this.close()
      else if (this.#open?.database.isTransaction) this.#open.database.exec('rollback')
      throw error
    }
  }

  close(): void {
    if (!this.#open) return
    this.#giveUp()
    this.#noteState()
  }

  #inTransaction({ database, find, insert, sweep, probe }: Open, questions: readonly Question[]): FileAnswer[] {
    const nowMs = this.#nowMs()
    const answerTo = (question: Question): FileAnswer => {
      if (question.kind === 'probe') {
        probe.run(nowMs)
        return { isNew: true }
      }
      const name = `${question.apiKey} ${question.nonce}`
      if (find.get(name)) return { isNew: false }
      if (question.kind === 'look') return { isNew: true }
      const tally = this.#buckets?.take(question.apiKey, nowMs)
      if (tally && tally.waitMs > 0) return { isNew: true, tally }
      insert.run(name, nowMs)
      return tally ? { isNew: true, tally } : { isNew: true }
    }
    database.exec('begin')
    const answers = questions.map(answerTo)
    const isWriting = questions.some(({ kind }) => kind !== 'look')
    if (isWriting) sweep.run(questions.length * sweptPerQuestion, nowMs - nonceLifeMs)
    database.exec('commit')
    if (isWriting) this.#noteState()
    return answers
  }

  /** Milliseconds since the Unix epoch when the file was opened; from then on they only pass. */
  #nowMs(): number {
    return Math.floor(this.#epochMs + performance.now())
  }

  #ensureOpen(): Open {
    const state = this.#readState()
    const isUntouched = state !== undefined && state === (this.#leftState ?? this.#readNote())
    if (isUntouched && this.#open) return this.#open
    this.#giveUp()
    this.#open = (isUntouched && this.#openKept()) || this.#begin()
    this.#noteState()
    return this.#open
  }

  /** Goes on in the generation that the file holds; undefined when SQLite finds it damaged. */
  #openKept(): Open | undefined {
    try {
      return this.#openDatabase()
    } catch (error) {
      if (![sqliteCorrupt, sqliteNotADatabase].includes(errorCodeOf(error))) throw error
      return undefined
    }
  }

  /** Begins a new generation, in a new file. */
  #begin(): Open {
    if (isThere(this.#path)) renameSync(this.#path, `${this.#path}.lost`)
    for (const path of [this.#logPath, `${this.#path}-journal`, this.#notePath]) rmSync(path, { force: true })
    try {
      // What SQLite creates by itself anybody may read.
      closeSync(openSync(this.#path, 'wx', 0o600))
      return this.#openDatabase({ id: randomUUID(), beganAt: Math.floor(Date.now() / 1000) })
    } catch (error) {
      this.#giveUp()
      rmSync(this.#path, { force: true })
      throw error
    }
  }

  /** @param begins to be written into a file that is new */
  #openDatabase(begins?: Generation): Open {
    const database = new DatabaseSync(this.#path)
    try {
      database.exec('pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full')
      if (begins) {
        database.exec(schema)
        database
          .prepare('insert into generation (id, began_at, probed_at) values (?, ?, 0)')
          .run(begins.id, begins.beganAt)
        database.exec('commit')
      }
      const { id, beganAt } = database.prepare('select id, began_at as "beganAt" from generation').get()!
      const newest = database.prepare('select claimed_at as "claimedAt" from nonce order by id desc limit 1').get()
      // A system clock that was set back must not make new nonces older than those that are there.
      this.#epochMs = Math.max(Date.now(), Number(newest?.claimedAt ?? 0)) - performance.now()
      return {
        database,
        generation: { id: String(id), beganAt: Number(beganAt) },
        find: database.prepare('select 1 from nonce where name = ?'),
        insert: database.prepare('insert into nonce (name, claimed_at) values (?, ?)'),
        sweep: database.prepare(
          'delete from nonce where id in (select id from nonce order by id limit ?) and claimed_at < ?',
        ),
        probe: database.prepare('update generation set probed_at = ?'),
      }
    } catch (error) {
      database.close()
      throw error
    }
  }

  #giveUp(): void {
    try {
      this.#open?.database.close()
    } catch {
      // What was answered is on the disk already.
    }
    this.#open = undefined
  }

  /** Inode, size and change time of the file and of its log; undefined when there is no file. */
  #readState(): string | undefined {
    const states = [this.#path, this.#logPath].map(path => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found ? `${found.ino}:${found.size}:${found.ctimeNs}` : 'none'
    })
    return states[0] === 'none' ? undefined : states.join(' ')
  }

  /**
   * Notes how the files were left, for the next start too. The note is not forced to the disk, so a power failure costs the
   * generation; a process that is killed leaves the note.
   */
  #noteState(): void {
    this.#leftState = this.#readState()
    if (!this.#leftState) return
    try {
      // Neither longer nor shorter than before: it needs no space that a full disk does not have.
      const note = openSync(this.#notePath, constants.O_WRONLY | constants.O_CREAT, 0o600)
      writeSync(note, this.#leftState.padEnd(noteLength))
      closeSync(note)
    } catch {
      // Without a note the next start begins a new generation, which is safe.
    }
  }

  #readNote(): string | undefined {
    return isThere(this.#notePath) ? readFileSync(this.#notePath, 'utf8').trimEnd() : undefined
  }
}

const schema = `
begin;
create table generation (id text not null, began_at integer not null, probed_at integer not null);
create table nonce (id integer primary key, name text not null unique, claimed_at integer not null);
`

/** Longer than any state. */
const noteLength = 255

const sqliteCorrupt = 11
const sqliteFull = 13
const sqliteNotADatabase = 26

/** SQLite's primary result code; 0 of any other error. */
function errorCodeOf(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
