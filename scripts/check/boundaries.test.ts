import { expect, test } from 'vitest'
import { importsOf, violations } from './boundaries.ts'
import { readSources } from './sources.ts'

test('every import of the tree keeps the rules', async () => {
  const sources = await readSources()
  expect(violations(sources)).toEqual([])
  // The check reads what it claims to read.
  expect(sources.flatMap(importsOf).length).toBeGreaterThan(300)
})

test.each([
  ['gateway/src/app.ts', "import { decide } from '../../services/core/src/ledger/decide.ts'"],
  ['gateway/src/app.ts', "import type { AppRouter } from '@workspace-wallet/core/router'"],
  ['gateway/src/core.ts', "import { appRouter } from '@workspace-wallet/core/router'"],
  ['gateway/src/keys/directory.ts', "import pg from 'pg'"],
  ['services/core/src/http/server.ts', "import express from 'express'"],
  ['services/core/src/http/server.ts', "import { sign } from '@workspace-wallet/gateway/signing'"],
  ['services/core/contract/money.ts', "import { run } from '../src/db/statement.ts'"],
  ['services/core/client/batch-link.ts', "import { appRouter } from '../src/router.ts'"],
  ['services/core/client/call.ts', "import type { Context } from '../src/trpc/context.ts'"],
  ['services/core/src/wallets/queries.ts', "import { wallets } from './procedures.ts'"],
  ['services/core/src/wallets/procedures.ts', "import { run } from '../db/statement.ts'"],
  ['services/core/src/main.ts', "import { startSystem } from '../../../test/setup/system.ts'"],
  ['gateway/src/app.ts', "const scripts = await import('../../scripts/start.ts')"],
  ['gateway/src/app.ts', 'const level = process.env.LOG_LEVEL'],
  ['services/core/src/http/call-batch.ts', 'const { procedures } = appRouter._def'],
  ['services/core/src/wallets/operations.ts', "import type { Context } from '../trpc/context.ts'"],
  ['gateway/src/app.ts', "import {\n  a,\n  type B,\n} from '../../services/core/src/main.ts'"],
])('a planted violation is found: %s, %s', (path, text) => {
  expect(violations([{ path, text }])).toHaveLength(1)
})

test.each([
  ['gateway/src/core.ts', "import type { AppRouter } from '@workspace-wallet/core/router'"],
  ['services/core/client/index.ts', "import type { AppRouter } from '../src/router.ts'"],
  ['services/core/src/config.ts', 'process.env'],
  ['test/crash.test.ts', "import { startPostgres } from '../scripts/embedded/postgres.ts'"],
])('what is allowed passes: %s, %s', (path, text) => {
  expect(violations([{ path, text }])).toEqual([])
})
