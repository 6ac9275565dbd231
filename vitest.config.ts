import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { nodeOptions } from './test/setup/node-options.ts'
import { testFiles } from './test/setup/projects.ts'

// Threads and programs that unit tests start strip types and compile anew without it. The tests of `system` have a directory of
// their own (test/setup/global.ts).
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node')

const { unit, system, buckets } = testFiles()
/** Of the tests of tables in another schema than `public`. */
const schema = 'bucket_1'

export default defineConfig({
  test: {
    projects: [
      // They share what a worker has loaded: loading takes longer than most of them.
      { extends: true, test: { name: 'unit', include: unit, isolate: false } },
      { extends: true, test: { name: 'system', include: system, globalSetup: ['test/setup/global.ts'] } },
      {
        extends: true,
        test: {
          name: 'buckets',
          include: buckets,
          globalSetup: ['test/setup/global.ts'],
          env: { TEST_SCHEMA: schema, TEST_PLACES: '2', PGOPTIONS: `-c search_path=${schema},pg_temp` },
        },
      },
    ],
    environment: 'node',
    // Processes, not threads: tests start servers, send signals and read environments.
    pool: 'forks',
    execArgv: nodeOptions,
    // More than two processors have work for: tests often wait for time-outs and for programs that start.
    maxWorkers: 3,
    // These only end what hangs: on a busy machine, a test may take many times as long as usual. What a test waits for has a
    // deadline of two minutes, after which the error names it (test/setup/until.ts, cli/processes/program.ts).
    testTimeout: 300_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
  },
})
