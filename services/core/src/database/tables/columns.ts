import type { p } from '@mikro-orm/core'
import { Decimal, type Id, type IdKind, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { DecimalType, PublicId } from '../types.ts'

/** A value in what a MAC covers: one that has only one JSON serialization. */
export type SignedValue = string | number | null | readonly string[]

/** What makes the properties of entities (see properties.ts). The verifier has no entities, and does not load MikroORM for them. */
export type PropertyParts = { p: typeof p; DecimalType: typeof DecimalType; PublicId: typeof PublicId }

/** A kind of column: how core reads its values, what a MAC covers of them, and what an entity has. */
export type Column<Value = unknown, Property = unknown> = {
  /** Its name in the database, if that is not the name of its property in snake case. */
  name?: string
  /** SQL: the column as `parse` expects it. */
  read(column: string): string
  /**
   * The value of what `read` selects, as the driver returns it, in JSON or as text. Never throws: a damaged value becomes one that
   * equals nothing.
   */
  parse(found: unknown): Value
  /** What a MAC covers of a value. */
  signed(value: Value): SignedValue
  /** The value of a property of an entity. */
  ofEntity(value: unknown): Value
  /** The property of an entity. */
  property(parts: PropertyParts): Property
}

/** A column that is read and signed as it is. */
function plain<Value extends SignedValue, Property>(
  property: (parts: PropertyParts) => Property,
): Column<Value, Property> {
  const same = (value: unknown) => value as Value
  return { read: column => column, parse: same, signed: same, ofEntity: same, property }
}

/** An ID. Entities have the public ID. */
export function uuid<Kind extends IdKind>(kind: Kind) {
  const property = ({ p, PublicId }: PropertyParts) => p.type(new PublicId(kind))
  return { ...plain<Uuid<Kind>, ReturnType<typeof property>>(property), ofEntity: idOf }

  function idOf(id: unknown): Uuid<Kind> {
    return uuidFromId(kind, id as Id<Kind>)
  }
}

export const text = plain<string, ReturnType<typeof p.text>>(({ p }) => p.text())

/** A text of which the database does not check that it is one of these values. */
export function textOf<Value extends string>() {
  const property = ({ p }: PropertyParts) => p.text().$type<Value>()
  return plain<Value, ReturnType<typeof property>>(property)
}

/** One of these texts. A stored row may say something else, until its MAC is checked. */
export function oneOf<const Values extends readonly string[]>(values: Values) {
  const property = ({ p }: PropertyParts) => p.enum(values)
  return plain<Values[number], ReturnType<typeof property>>(property)
}

/** A whole number below 2^53. NaN if it is damaged. */
function number<Property>(property: (parts: PropertyParts) => Property): Column<number, Property> {
  return {
    ...plain<number, Property>(property),
    parse(found) {
      const value = numberOf(found)
      return Number.isSafeInteger(value) ? value : Number.NaN
    },
  }
}

const numberOf = (found: unknown) => (found === null ? Number.NaN : Number(found))

export const bigint = number(({ p }) => p.bigint('number'))
export const integer = number(({ p }) => p.integer())
export const smallint = number(({ p }) => p.smallint())

const decimalProperty = ({ p, DecimalType }: PropertyParts) => p.type(DecimalType)
/** An exact decimal. NaN if it is damaged, and then every sum with it. */
export const decimal: Column<Decimal, ReturnType<typeof decimalProperty>> = {
  read: column => `${column}::text`,
  // Other forms, such as a hexadecimal one in an audit entry that somebody else wrote, take decimal.js quadratic time.
  parse: found => new Decimal(typeof found === 'string' && /^-?\d+(\.\d+)?$/.test(found) ? found : Number.NaN),
  signed: value => value.toFixed(),
  ofEntity: value => value as Decimal,
  property: decimalProperty,
}

/** An exact decimal that core only hands on: its text, with the zeros that were sent. */
export const decimalText: Column<string, ReturnType<typeof decimalProperty>> = {
  ...plain<string, ReturnType<typeof decimalProperty>>(decimalProperty),
  read: column => `${column}::text`,
}

const timeProperty = ({ p }: PropertyParts) => p.datetime(3)
/** A time, which is read in milliseconds: the driver parses the text of a time so slowly that it takes as long as the other columns. */
export const time: Column<Date, ReturnType<typeof timeProperty>> = {
  read: column => `round(date_part('epoch', ${column}) * 1000)`,
  parse: found => new Date(numberOf(found)),
  signed(value) {
    const milliseconds = Number(value)
    // Text for an invalid Date, which JSON would turn into null.
    return Number.isFinite(milliseconds) ? milliseconds : String(value)
  },
  ofEntity: value => value as Date,
  property: timeProperty,
}

const dayProperty = ({ p }: PropertyParts) => p.date()
/** A day, such as 2026-11-22. */
export const day: Column<string, ReturnType<typeof dayProperty>> = {
  ...plain<string, ReturnType<typeof dayProperty>>(dayProperty),
  read: column => `${column}::text`,
}

const bytesProperty = ({ p }: PropertyParts) => p.blob()
/** Bytes, which are read and signed in hex. */
export const bytes: Column<Buffer, ReturnType<typeof bytesProperty>> = {
  read: column => `encode(${column}, 'hex')`,
  parse: found => Buffer.from(String(found ?? ''), 'hex'),
  signed: value => value.toString('hex'),
  ofEntity: value => Buffer.from(value as Uint8Array),
  property: bytesProperty,
}

const jsonProperty = ({ p }: PropertyParts) => p.json<unknown>().columnType('json')
/** JSON, of which a MAC covers the text as it was written. */
export const jsonText: Column<string, ReturnType<typeof jsonProperty>> = {
  ...plain<string, ReturnType<typeof jsonProperty>>(jsonProperty),
  read: column => `${column}::text`,
  ofEntity: value => JSON.stringify(value),
}

/** A list of texts. */
export function list<Item extends string>() {
  const property = ({ p }: PropertyParts) => p.array<Item>()
  return {
    ...plain<readonly Item[], ReturnType<typeof property>>(property),
    read: (column: string) => `to_json(${column})`,
    parse: (found: unknown) => (typeof found === 'string' ? JSON.parse(found) : found) as readonly Item[],
  }
}

/** A column that may be null. */
export function orNull<Value, Property extends { nullable(): unknown }>(
  column: Column<Value, Property>,
): Column<Value | null, ReturnType<Property['nullable']>> {
  return {
    ...column,
    parse: found => (found === null ? null : column.parse(found)),
    signed: value => (value === null ? null : column.signed(value)),
    ofEntity: value => (value === null || value === undefined ? null : column.ofEntity(value)),
    property: parts => column.property(parts).nullable() as ReturnType<Property['nullable']>,
  }
}

/** A column of the primary key. */
export function primary<Value, Property extends { primary(): unknown }>(
  column: Column<Value, Property>,
): Column<Value, ReturnType<Property['primary']>> {
  return { ...column, property: parts => column.property(parts).primary() as ReturnType<Property['primary']> }
}

/** A column that has another name than its property. */
export function named<Value, Property extends { fieldName(name: string): unknown }>(
  name: string,
  column: Column<Value, Property>,
): Column<Value, Property> {
  return { ...column, name, property: parts => column.property(parts).fieldName(name) as Property }
}
