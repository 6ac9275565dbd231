import type { Pool } from 'pg'
import { migrationNames } from './migrations/names.ts'

/** Whether the database answers and has every migration that this code knows. */
export async function isSchemaCurrent(reads: Pool): Promise<boolean> {
  try {
    const { rows } = await reads.query<{ name: string }>('select name from mikro_orm_migrations')
    const applied = new Set(rows.map(row => row.name))
    return migrationNames.every(name => applied.has(name))
  } catch {
    return false
  }
}
