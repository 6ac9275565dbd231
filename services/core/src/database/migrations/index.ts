import type { MigrationObject } from '@mikro-orm/core'
import { Migration0001Ledger } from './0001-ledger.ts'
import { Migration0002Access } from './0002-access.ts'

/** In order. A released migration is never edited; the next one is appended. */
export const migrations: readonly MigrationObject[] = [
  { name: '0001-ledger', class: Migration0001Ledger },
  { name: '0002-access', class: Migration0002Access },
]
