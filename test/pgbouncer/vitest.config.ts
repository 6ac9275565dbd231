import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

/** Tests that need PgBouncer 1.21 or newer, which Debian 12 does not have: `npm run test:pgbouncer`. */
export default defineConfig({
  test: {
    ...base.test,
    projects: [
      {
        extends: true,
        root: new URL('../..', import.meta.url).pathname,
        test: { name: 'pgbouncer', include: ['test/pgbouncer/*.test.ts'], globalSetup: ['test/setup/global.ts'] },
      },
    ],
  },
})
