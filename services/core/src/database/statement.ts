import type { ClientBase, CustomTypesConfig, Pool, QueryConfig, QueryResult } from 'pg'
import pg from 'pg'

/** A pool, or a connection inside a transaction. */
export type Queryable = Pool | ClientBase

/**
 * One SQL statement with bound values, prepared once per connection under its name. MikroORM prepares no statements, so PostgreSQL
 * plans each query of it; for postings and lists, planning would be most of the cost.
 */
export type Statement<Row> = { name: string; text: string; rowMode?: 'array'; row?: Row }

/** PostgreSQL truncates longer names, so two statements could get the same name. */
const longestName = 63

/** The statements of core, by name. Those of lists are composed at run time (see lists/page.ts). */
export const statements = new Map<string, Statement<unknown>>()

/**
 * Defines a statement; `Row` is the shape of its rows.
 *
 * @throws Error if the name is too long, or that of another statement
 */
export function statement<Row = never>(name: string, text: string): Statement<Row> {
  if (Buffer.byteLength(name) > longestName)
    throw new Error(`the statement name "${name}" has more than ${longestName} bytes: shorten it`)
  if (statements.has(name)) throw new Error(`two statements have the name "${name}"`)
  const defined = { name, text }
  statements.set(name, defined)
  return defined
}

/**
 * A statement whose rows are arrays. The driver makes an object of many columns so slowly that it takes longer than everything else
 * that is done with a row.
 */
export function arrayStatement<Row extends unknown[]>(name: string, text: string): Statement<Row> {
  return { ...statement<Row>(name, text), rowMode: 'array' }
}

/** Runs a statement and returns its rows. */
export async function run<Row>(
  db: Queryable,
  { name, text, rowMode }: Statement<Row>,
  values: unknown[],
): Promise<Row[]> {
  const query = { name, text, values, types, rowMode } as QueryConfig
  const result: QueryResult = await (db instanceof pg.Pool ? queryPool(db, query) : db.query(query))
  return result.rows
}

/**
 * As `pool.query`, which closes a connection after any error. This keeps it after some that leave it as it was, because nobody may be able
 * to open another one.
 */
async function queryPool(pool: Pool, query: QueryConfig): Promise<QueryResult> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    return await client.query(query)
  } catch (error) {
    if (!preventsConnections(error) && !isRefused(error)) failure = error as Error
    throw error
  } finally {
    client.release(failure)
  }
}

const tooManyLocks = '53200'
const insufficientPrivilege = '42501'

/** Whether the role may not do that. */
export function isRefused(error: unknown): boolean {
  return (error as { code?: string }).code === insufficientPrivilege
}

/** Whether nobody can open a connection now: PostgreSQL's table of locks is full, or it has no buffer for another page. */
function preventsConnections(error: unknown): boolean {
  return (error as { code?: string }).code === tooManyLocks || isWithoutBuffers(error)
}

/** Whether cursors of other sessions keep a page in each buffer of PostgreSQL. Its SQLSTATE is that of all internal errors. */
export function isWithoutBuffers(error: unknown): boolean {
  return (error as { message?: string }).message === 'no unpinned buffers available'
}

/** The arguments of a database function, by name, and how each follows from the input of a call. */
export type Arguments<Input> = Record<string, (input: Input) => unknown>

/** SQL: the arguments of a call. Their values are `$1` and so on, which `argumentValues` returns in the same order. */
export function namedArguments<Input>(args: Arguments<Input>): string {
  return Object.keys(args)
    .map((name, at) => `${name} => $${at + 1}`)
    .join(', ')
}

export function argumentValues<Input>(args: Arguments<Input>, input: Input): unknown[] {
  return Object.values(args).map(argumentOf => argumentOf(input))
}

const { builtins } = pg.types

/** bigint as number (all of ours are below 2^53), numeric as exact text, timestamps as Date. */
const types: CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === builtins.INT8) return Number
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as CustomTypesConfig

/** A PostgreSQL array literal of values that need no quoting: numbers, UUIDs, amounts, ISO times. */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map(value => value ?? 'null').join(',')}}`
}

/** A value of a column: text, a number, or bytes. */
export type Field = string | number | Uint8Array | null

/** A PostgreSQL array literal of rows of a composite type, each with its fields in order. */
export function rowArray(rows: readonly (readonly Field[])[]): string {
  return `{${rows.map(fields => `"(${fields.map(fieldText).join(',')})"`).join(',')}}`
}

/** Within an array: each quote and backslash is escaped for the row, and then for the array. */
function fieldText(field: Field): string {
  if (field === null) return ''
  if (typeof field === 'number') return String(field)
  if (typeof field === 'string')
    return isPlain.test(field) ? field : `\\"${field.replace(/["\\]/g, String.raw`\\\$&`)}\\"`
  return `\\\\\\\\x${Buffer.from(field.buffer, field.byteOffset, field.length).toString('hex')}`
}

/** Text that needs no quotes in a row or an array. */
const isPlain = /^[\w:.+-]+$/

/** A PostgreSQL array literal of any text. */
export function textArray(values: readonly (string | null)[]): string {
  return `{${values.map(value => (value === null ? 'null' : `"${value.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`
}

/** The text form of a bytea, for JSON. */
export function bytesText(value: Uint8Array): string {
  return `\\x${Buffer.from(value).toString('hex')}`
}

/** A PostgreSQL array literal of bytes. */
export function bytesArray(values: readonly Uint8Array[]): string {
  return `{${values.map(value => `"\\\\x${Buffer.from(value).toString('hex')}"`).join(',')}}`
}

/**
 * A time to compare with those of rows. It is limited to 1970 to 9999: no row is older, and PostgreSQL's range is smaller than
 * Date's.
 */
export function timeText(time: Date): string {
  return new Date(Math.max(0, Math.min(time.getTime(), latestTimeMs))).toISOString()
}

/** The end of the year 9999, the last one that ISO 8601 writes with four digits. */
const latestTimeMs = Date.UTC(10_000, 0, 1) - 1
