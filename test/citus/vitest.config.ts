import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'
import { testFiles } from '../setup/projects.ts'

/**
 * `CITUS_URL=… npm run test:citus` runs the tests of `buckets` in buckets of a Citus cluster: docs/scale.md. Each file has a database of
 * its own there.
 */
const env = {
  TEST_SCHEMA: 'bucket_1',
  // A worker refuses to create what it would have to create on the other nodes.
  PGOPTIONS: '-c search_path=bucket_1,pg_temp -c citus.enable_ddl_propagation=off',
}

/**
 * Tests whose owner alters tables and rows in ways that Citus refuses on a worker. Each verification of the others compares the catalog
 * of the bucket.
 */
const notOnCitus = /\/(lists|incremental|catalog|verify)\.test\.ts$/
const include = testFiles().buckets.filter(path => !notOnCitus.test(path))

const { projects: _, ...test } = base.test!

export default mergeConfig(
  defineConfig({ test }),
  defineConfig({ test: { include, globalSetup: ['test/setup/global.ts'], env, maxWorkers: 1 } }),
)
