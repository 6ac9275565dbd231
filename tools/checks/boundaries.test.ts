import { expect, test } from 'vitest'
import { foldersOf, layers, violations } from './boundaries.ts'
import { cycles } from './cycles.ts'
import { importsOf } from './imports.ts'
import { readPaths, readSources, readTexts } from './sources.ts'

test('no import breaks a rule', async () => {
  const sources = await readSources()
  expect(violations(sources)).toEqual([])
  // The check has read the sources.
  expect(sources.flatMap(importsOf).length).toBeGreaterThan(300)
})

test('no files or folders import one another in a cycle', async () => {
  expect(cycles(await readSources())).toEqual([])
})

/** The names in backticks in the first cells of the table that follows a text, in order. */
function tableAfter(page: string, text: string): string[] {
  const [, after] = page.split(text) as [string, string]
  const rows = after.trimStart().split('\n\n')[0]!.split('\n').slice(2)
  return rows.flatMap(row => [...row.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
}

test('docs/architecture.md lists the layers and the folders in their order', async () => {
  const page = (await readTexts()).find(({ path }) => path === 'docs/architecture.md')!.text
  expect(tableAfter(page, 'From bottom to top:')).toEqual(layers)
  expect(tableAfter(page, 'only those above it in this table:')).toEqual(foldersOf['services/core/src'])
  expect(tableAfter(page, 'The gateway, in the same order:')).toEqual(foldersOf['gateway/src'])
})

test('the ordered folders are those that exist', async () => {
  const paths = (await readPaths()).filter(path => path.endsWith('.ts'))
  for (const [base, folders] of Object.entries(foldersOf)) {
    const within = paths.filter(path => path.startsWith(`${base}/`)).map(path => path.slice(base.length + 1).split('/'))
    expect(folders.toSorted()).toEqual(
      [...new Set(within.filter(({ length }) => length > 1).map(([name]) => name!))].sort(),
    )
  }
})

test.each([
  ['gateway/src/http/app.ts', "import { decide } from '../../../services/core/src/ledger/decide/decide.ts'"],
  ['gateway/src/core.ts', "import type { AppRouter } from '../../services/core/src/routers/app-router.ts'"],
  ['gateway/src/auth/keys/key-cache.ts', "import pg from 'pg'"],
  ['services/core/src/http/server.ts', "import express from 'express'"],
  ['gateway/src/internal/app.ts', "import { consoleFolder } from '../../console/build/folder.ts'"],
  ['gateway/console/src/api/client.ts', "import { createCoreClient } from '@workspace-wallet/core-client'"],
  ['gateway/console/src/main.tsx', "import { sign } from '@workspace-wallet/gateway/signing'"],
  ['gateway/console/src/main.tsx', "import { hash } from 'node:crypto'"],
  ['services/core/src/http/server.ts', "import { sign } from '@workspace-wallet/gateway/signing'"],
  [
    'services/core/src/wallets/queries.ts',
    "import { createCoreClient } from '../../../../packages/core-client/src/index.ts'",
  ],
  ['packages/contract/src/money.ts', "import { run } from '../../../services/core/src/database/statement.ts'"],
  ['packages/contract/src/money.ts', "import { readEnvironment } from '../../runtime/src/index.ts'"],
  ['packages/contract/src/money.ts', "import { readEnvironment } from '@workspace-wallet/runtime'"],
  ['packages/runtime/src/log.ts', "import { TracerProvider } from '@opentelemetry/sdk-trace'"],
  ['packages/runtime/src/index.ts', "export * from './tracing/sdk.ts'"],
  ['packages/runtime/src/log.ts', "import type { Locale } from '@workspace-wallet/gateway/locales'"],
  ['services/core/src/compose.ts', "import { createCoreClient } from '@workspace-wallet/core-client'"],
  ['services/courier/src/main.ts', "import { sign } from '@workspace-wallet/gateway/signing'"],
  ['services/core/src/main.ts', "import { payOut } from '@workspace-wallet/example-payouts'"],
  ['packages/contract/src/money.ts', "import { createHash } from 'node:crypto'"],
  ['packages/client/src/signing.ts', "import { createHmac } from 'node:crypto'"],
  ['packages/client/src/errors.ts', "import { errorTable } from '@workspace-wallet/contract'"],
  [
    'packages/core-client/src/batch-link.ts',
    "import { appRouter } from '../../../services/core/src/routers/app-router.ts'",
  ],
  [
    'packages/core-client/src/pending-call.ts',
    "import type { Context } from '../../../services/core/src/trpc/context.ts'",
  ],
  [
    'services/core/src/integrity/repair/repair.ts',
    "import { Decimal } from '../../../../../packages/contract/src/index.ts'",
  ],
  ['services/core/src/wallets/queries.ts', "import { wallets } from '../routers/wallets.ts'"],
  ['services/core/src/wallets/operations.ts', "import { inTransaction } from '../trpc/transactions.ts'"],
  ['services/core/src/routers/wallets.ts', "import { run } from '../database/statement.ts'"],
  ['services/core/src/ledger/store/queries.ts', "import { verifyLedger } from '../../integrity/verify/verify.ts'"],
  ['services/core/src/ledger/decide/draft.ts', "import type { Written } from '../store/write-transfers.ts'"],
  ['services/core/src/ledger/store/write-transfers.ts', "import { postBatch } from '../posting/batch.ts'"],
  ['services/core/src/audit/queries.ts', "import { findWallet } from '../wallets/queries.ts'"],
  ['services/core/src/wallets/queries.ts', "import { openCore } from '../compose.ts'"],
  ['services/core/src/statements/queries.ts', "import { run } from '../database/statement.ts'"],
  ['services/core/src/ledger/decide/decide.ts', "import { run } from '../../database/statement.ts'"],
  ['services/core/src/ledger/decide/decide.ts', "import pg from 'pg'"],
  ['services/core/src/ledger/chain/chain.ts', "import { readFile } from 'node:fs/promises'"],
  ['services/core/src/database/tables/hold.ts', "import { run } from '../statement.ts'"],
  ['services/core/src/holds/sweeper.ts', "import { TRPCError } from '@trpc/server'"],
  ['gateway/src/auth/pipeline.ts', "import { sendFailure } from '../http/envelope.ts'"],
  ['cli/processes/redis.ts', "import { banner } from '../start/banner.ts'"],
  ['services/core/src/main.ts', "import { startSystem } from '../../../test/setup/system.ts'"],
  ['gateway/src/http/app.ts', "const start = await import('../../../cli/start.ts')"],
  ['services/core/src/ledger/chain/chain.ts', "import { createApp } from '../../../../../gateway/src/http/app.ts'"],
  ['packages/runtime/src/log.ts', "import { openCore } from '../../../services/core/src/compose.ts'"],
  ['cli/processes/redis.ts', "import { banner } from '../../cli/start/banner.ts'"],
  ['services/reports/src/main.ts', 'export const isInNoLayer = true'],
  ['gateway/src/reports/list.ts', "import { records } from '../api/records.ts'"],
  ['gateway/src/http/app.ts', 'const level = process.env.LOG_LEVEL'],
  ['services/courier/src/internal-server.ts', 'const server = http.createServer(answer)'],
  ['services/core/src/http/server.ts', 'const server = new Server(answer)'],
  ['gateway/src/main.ts', 'const server = app.listen(0)'],
  ['services/core/src/http/call-batch.ts', 'const { middlewares } = appRouter._def'],
  ['gateway/src/http/app.ts', "import {\n  a,\n  type B,\n} from '../../../services/core/src/main.ts'"],
])('a violation is detected: %s, %s', (path, text) => {
  expect(violations([{ path, text }])).not.toEqual([])
})

test.each([
  [
    'packages/core-client/src/index.ts',
    "import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'",
  ],
  ['gateway/console/src/api/client.ts', "import type { AppRouter } from '@workspace-wallet/core-client'"],
  ['gateway/console/src/main.tsx', "import { localize } from '@workspace-wallet/gateway/locales'"],
  ['test/typed-calls.test.ts', "import { payOut } from '@workspace-wallet/example-payouts'"],
  ['services/core/src/config.ts', 'process.env'],
  ['packages/runtime/src/limited-server.ts', 'export class LimitedServer extends Server {}'],
  ['test/crash.test.ts', "import { startPostgres } from '../cli/processes/postgres.ts'"],
])('an allowed import passes: %s, %s', (path, text) => {
  expect(violations([{ path, text }])).toEqual([])
})

test.each([
  [
    'two files',
    { 'gateway/src/api/a.ts': "import { b } from './b.ts'", 'gateway/src/api/b.ts': "import type { A } from './a.ts'" },
    'gateway/src/api/a.ts -> gateway/src/api/b.ts -> gateway/src/api/a.ts',
  ],
  [
    'two folders',
    {
      'gateway/src/api/a.ts': "import { b } from '../auth/b.ts'",
      'gateway/src/auth/c.ts': "import { d } from '../api/d.ts'",
    },
    'gateway/src/api -> gateway/src/auth -> gateway/src/api',
  ],
  [
    'a folder and one inside it',
    {
      'services/core/src/ledger/a.ts': "import { b } from './posting/b.ts'",
      'services/core/src/ledger/posting/b.ts': "import { c } from '../c.ts'",
    },
    'services/core/src/ledger -> services/core/src/ledger/posting -> services/core/src/ledger',
  ],
  [
    'two folders, through others inside them',
    {
      'services/core/src/ledger/chain/a.ts': "import { b } from '../../audit/b.ts'",
      'services/core/src/audit/c.ts': "import { d } from '../ledger/rows/d.ts'",
    },
    'services/core/src/ledger -> services/core/src/audit -> services/core/src/ledger',
  ],
  [
    'two packages',
    {
      'packages/contract/src/a.ts': "import { b } from '@workspace-wallet/runtime'",
      'packages/runtime/src/b.ts': "import { a } from '@workspace-wallet/contract'",
    },
    'packages/contract/src -> packages/runtime/src -> packages/contract/src',
    'packages/contract -> packages/runtime -> packages/contract',
  ],
])('a cycle is detected: %s', (_, files, ...expected) => {
  const sources = Object.entries(files).map(([path, text]) => ({ path, text }))
  expect(cycles(sources)).toEqual(expected)
})
