import type { MigrationObject } from '@mikro-orm/core'
import { Migration0001Initial } from './0001-initial.ts'

/** In order. A released migration is never edited; the next one is appended. */
export const migrations: readonly MigrationObject[] = [{ name: '0001-initial', class: Migration0001Initial }]
