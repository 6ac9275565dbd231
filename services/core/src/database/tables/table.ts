import { createHmac, type KeyObject } from 'node:crypto'
import { bytes, type Column, type SignedValue } from './columns.ts'

/**
 * Every row that decides about money or access has a MAC, so that somebody who can write to the database but does not have the chain
 * key cannot write a row that core accepts. Each update must raise the row's `revision` by one, which PostgreSQL enforces, so an
 * earlier row cannot be restored together with its MAC.
 *
 * A file of this folder defines such a table: its columns, in the order in which the MAC covers all of them, its row and its MAC.
 * Entities, lists of columns in SQL, and what `ledger verify` reads are derived from the columns.
 */
export const signedTables = [
  'api_key',
  'hold',
  'ledger',
  'member',
  'operator',
  'spending_limit',
  'wallet',
  'webhook',
  'workspace',
  'workspace_move',
] as const
export type SignedTable = (typeof signedTables)[number]

/** A row with its MAC. */
export type WithMac<Row> = Row & { mac: Buffer }

/** The columns and the MAC: what is read of a stored row. */
export function withMac<Of extends Columns>(columns: Of) {
  return { ...columns, mac: bytes }
}

/** The columns of a table by the name of their property, in the order in which a MAC covers them. */
export type Columns = Record<string, Column>
/** A row in memory. */
export type RowOf<Of extends Columns> = { [Name in keyof Of]: Of[Name] extends Column<infer Value> ? Value : never }
/** A row as `selectColumns` and `jsonOf` read it. */
export type FoundRow<Of extends Columns> = Record<keyof Of, unknown>

const nameOf = (property: string, { name }: Column) => name ?? property.replace(/[A-Z]/g, '_$&').toLowerCase()

/** The names of columns in the database, by the names of their properties. */
export function columnNames<Of extends Columns>(columns: Of): Record<keyof Of, string> {
  const names = Object.entries(columns).map(([property, column]) => [property, nameOf(property, column)])
  return Object.fromEntries(names) as Record<keyof Of, string>
}

/** SQL: a column of the rows `alias` as `parse` expects it. */
export function readColumn(property: string, column: Column, alias: string): string {
  return column.read(`${alias}.${nameOf(property, column)}`)
}

/** The values of a row by the names of their columns. */
export function byColumn<Of extends Columns>(columns: Of, row: RowOf<Of>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [nameOf(name, column), row[name]]))
}

/** SQL: the columns of the rows `alias`, each under the name of its property. `rowFrom` reads them. */
export function selectColumns(columns: Columns, alias: string): string {
  return Object.entries(columns)
    .map(([property, column]) => `${readColumn(property, column, alias)} as "${property}"`)
    .join(', ')
}

/** SQL: a row `alias` as JSON, for statements that read it beside other rows. `rowFrom` reads it. */
export function jsonOf(columns: Columns, alias: string): string {
  const values = Object.entries(columns).map(
    ([property, column]) => `'${property}', ${readColumn(property, column, alias)}`,
  )
  return `json_build_object(${values.join(', ')})`
}

/** The row of what `selectColumns` or `jsonOf` has read. Further columns are left out. */
export function rowFrom<Of extends Columns>(columns: Of, found: FoundRow<Of>): RowOf<Of> {
  const row: Record<string, unknown> = {}
  for (const property in columns) row[property] = columns[property]!.parse(found[property])
  return row as RowOf<Of>
}

/** Reads rows that are arrays with the values of these names, in order. */
export function arrayReader<Of extends Columns>(
  columns: Of,
  names: readonly string[],
): (found: readonly unknown[]) => RowOf<Of> {
  const parts = Object.entries(columns).map(([property, column]) => ({
    property,
    column,
    place: names.indexOf(property),
  }))
  return found => {
    const row: Record<string, unknown> = {}
    for (const { property, column, place } of parts) row[property] = column.parse(found[place])
    return row as RowOf<Of>
  }
}

/** The row of an entity that has these properties. */
export function rowOfEntity<Of extends Columns>(columns: Of, entity: { [Name in keyof Of]?: unknown }): RowOf<Of> {
  const row: Record<string, unknown> = {}
  for (const property in columns) row[property] = columns[property]!.ofEntity(entity[property])
  return row as RowOf<Of>
}

/**
 * HMAC-SHA256 under the chain key. The content begins with the name of the table, which no other content under this key begins with
 * (see ledger/chain/chain.ts and integrity/checkpoints/checkpoint.ts), so a MAC of another kind or table is not valid.
 */
export function rowMac<Of extends Columns>(key: KeyObject, table: SignedTable, columns: Of, row: RowOf<Of>): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([`${table} row`, ...signedValues(columns, row)]))
    .digest()
}

/** What a MAC covers of a row: every column, in order. */
export function signedValues<Of extends Columns>(columns: Of, row: RowOf<Of>): SignedValue[] {
  const values: SignedValue[] = []
  for (const property in columns) values.push(columns[property]!.signed(row[property]))
  return values
}
