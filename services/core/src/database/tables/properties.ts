import { p } from '@mikro-orm/core'
import { DecimalType, PublicId } from '../types.ts'
import type { Columns } from './table.ts'

const parts = { p, DecimalType, PublicId }

/** The properties of an entity with these columns. */
export function propertiesOf<Of extends Columns>(
  columns: Of,
): { [Name in keyof Of]: ReturnType<Of[Name]['property']> } {
  const properties = Object.entries(columns).map(([property, column]) => [property, column.property(parts)])
  return Object.fromEntries(properties) as { [Name in keyof Of]: ReturnType<Of[Name]['property']> }
}
