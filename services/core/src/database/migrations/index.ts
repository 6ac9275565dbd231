import type { MigrationObject } from '@mikro-orm/core'
import { initialMigration } from './0001-initial.ts'

/** In order, by name. A released migration is never edited; the next one is appended. */
const classes = { '0001-initial': initialMigration }

export const migrationNames: readonly string[] = Object.keys(classes)

/** The migrations that create the tables in this schema. */
export function migrations(schema: string): MigrationObject[] {
  return Object.entries(classes).map(([name, classOf]) => ({ name, class: classOf(schema) }))
}
