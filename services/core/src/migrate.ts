import { ConfigurationError } from '@workspace-wallet/runtime'
import { migrationConfig } from './config.ts'
import { migrate } from './database/migrate.ts'

/** Runs the migration step, in all places: `node services/core/src/migrate.ts`. */
try {
  const { MIGRATION_DATABASE_URL, DATABASE_URL, MIGRATION_DATABASE_URLS, DATABASE_URLS } = migrationConfig()
  if (MIGRATION_DATABASE_URLS.length !== DATABASE_URLS.length)
    throw new ConfigurationError([
      'MIGRATION_DATABASE_URLS: it needs one URL for each of DATABASE_URLS, in the same order',
    ])
  const report = (sentence: string) => console.error(sentence)
  const places = [
    [MIGRATION_DATABASE_URL, DATABASE_URL] as const,
    ...MIGRATION_DATABASE_URLS.map(serviceOf(DATABASE_URLS)),
  ]
  for (const [index, [ownerUrl, serviceUrl]] of places.entries()) {
    const applied = await migrate(ownerUrl, serviceUrl, undefined, report)
    const where = places.length > 1 ? `Place ${index}: ` : ''
    console.log(where + (applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'The schema is up to date.'))
  }
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`Migration failed: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

function serviceOf(urls: readonly string[]) {
  return (ownerUrl: string, index: number) => [ownerUrl, urls[index]!] as const
}
