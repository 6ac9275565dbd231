import { DatabaseSync } from 'node:sqlite'

/**
 * - `cursor`: the last event that is booked.
 * - `wallet` and `entry`: the books. An entry is what one event did to one wallet, in cents: below zero when money left.
 * - `command`: what the shop wants of the wallet service. The body is stored before it is sent, and never changes, so it can
 *   be sent again after any crash. PENDING: must be sent. SENT: got a response. DONE: its event is booked. REJECTED: has no effect.
 */
const schema = `
  create table if not exists cursor (
    id integer primary key check (id = 1), position integer not null, event_id text);
  insert or ignore into cursor values (1, 0, null);
  create table if not exists setting (name text primary key, value text not null);
  create table if not exists wallet (
    wallet_id text primary key, biz_id text not null unique, balance integer not null default 0);
  create table if not exists entry (
    position integer not null, wallet_id text not null references wallet, cents integer not null, booked_at text not null,
    primary key (position, wallet_id));
  create table if not exists customer (customer_id text primary key, name text not null);
  create table if not exists orders (
    order_id text primary key, customer_id text not null references customer, cents integer not null,
    status text not null default 'PLACED', captured integer not null default 0, refunded integer not null default 0);
  create table if not exists command (
    number integer primary key, biz_id text not null unique, kind text not null, order_id text references orders,
    cents integer not null, body text not null, state text not null default 'PENDING', code text);
  create index if not exists pending on command (number) where state = 'PENDING';
`

type Value = string | bigint | null
export type Row = Record<string, Value>

/** SQLite, with integers as bigint. */
export class Database {
  readonly #database: DatabaseSync

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readBigInts: true, timeout: 10_000 })
    this.#database.exec(`pragma journal_mode = wal; ${schema}`)
  }

  /** All or nothing, also if the process is killed. */
  transaction<Result>(run: () => Result): Result {
    this.#database.exec('begin immediate')
    try {
      const result = run()
      this.#database.exec('commit')
      return result
    } catch (error) {
      this.#database.exec('rollback')
      throw error
    }
  }

  all(sql: string, ...values: Value[]): Row[] {
    return this.#database.prepare(sql).all(...values) as Row[]
  }

  first(sql: string, ...values: Value[]): Row | undefined {
    return this.all(sql, ...values)[0]
  }

  /** Returns the number of rows that were changed. */
  run(sql: string, ...values: Value[]): number {
    return Number(this.#database.prepare(sql).run(...values).changes)
  }
}
