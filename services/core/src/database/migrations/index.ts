import type { MigrationObject } from '@mikro-orm/core'
import { initialMigration } from './0001-initial.ts'
import type { migrationNames } from './names.ts'

/** By name. A released migration is never edited; the next one is appended. */
const classes: Record<(typeof migrationNames)[number], typeof initialMigration> = { '0001-initial': initialMigration }

/** @param inSchema puts the name of the schema into a statement */
export function migrations(inSchema: (sql: string) => string): MigrationObject[] {
  return Object.entries(classes).map(([name, classOf]) => ({ name, class: classOf(inSchema) }))
}
