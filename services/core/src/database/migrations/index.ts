import type { MigrationObject } from '@mikro-orm/core'
import { initialMigration } from './0001-initial.ts'

/** In order, by name. A released migration is never edited; the next one is appended. */
const classes = { '0001-initial': initialMigration }

export const migrationNames: readonly string[] = Object.keys(classes)

/** @param inSchema puts the name of the schema into a statement */
export function migrations(inSchema: (sql: string) => string): MigrationObject[] {
  return Object.entries(classes).map(([name, classOf]) => ({ name, class: classOf(inSchema) }))
}
