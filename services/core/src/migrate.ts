import { ConfigurationError } from '@workspace-wallet/runtime'
import { migrationConfig } from './config.ts'
import { migrate } from './database/migrate.ts'

/** Runs the migration step: `node services/core/src/migrate.ts`. */
try {
  const { MIGRATION_DATABASE_URL, DATABASE_URL } = migrationConfig()
  const report = (sentence: string) => console.error(sentence)
  const applied = await migrate(MIGRATION_DATABASE_URL, DATABASE_URL, undefined, report)
  console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The schema is up to date.')
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`Migration failed: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
