import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{packages,services,gateway,cli,tools,test,examples}/**/*.test.ts'],
    globalSetup: ['test/setup/global.ts'],
    environment: 'node',
    // Processes, not threads: tests start servers, send signals and read environments.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
  },
})
