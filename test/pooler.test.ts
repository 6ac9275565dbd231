/** What core refuses at start, because it does not work through a connection pooler. Any version of PgBouncer refuses to do it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPgBouncer, type PgBouncerOptions, startPgBouncer } from '../cli/processes/pgbouncer.ts'
import { type System, startSystem } from './setup/system.ts'

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

const { version } = await findPgBouncer()

/** PgBouncer has the role of the service, because roles are shared with other tests, which do not expect another one. Returns what a core says that does not start behind PgBouncer. */
async function refusal(options: PgBouncerOptions, environment: (url: string) => NodeJS.ProcessEnv): Promise<string> {
  const pooler = await startPgBouncer(system.database.serviceUrl, options)
  try {
    const started = system.startCore(environment(pooler.url))
    const error = await started.then(
      () => expect.unreachable('core has started'),
      (error: Error) => error.message,
    )
    return /^core cannot start: .*$/m.exec(error)?.[0] ?? error
  } finally {
    await pooler.stop()
  }
}

const asPooler = (url: string) => ({ DATABASE_POOLER_URL: url })
const replaced = (from: string, to: string) => ({ replace: { [from]: to } })

test('core does not start if DATABASE_URL leads to PgBouncer, and names the setting to use', async () => {
  const asDatabase = (url: string) => ({ DATABASE_URL: `${url}_reads` })
  expect(await refusal({}, asDatabase)).toContain('give DATABASE_URL the address of PostgreSQL')
  const dropping = replaced('pool_mode =', 'ignore_startup_parameters = options\npool_mode =')
  expect(await refusal(dropping, asDatabase)).toContain('give DATABASE_URL the address of PostgreSQL')
})

test('core does not start behind a PgBouncer that keeps no named statements', async () => {
  const without = version < 21 ? {} : replaced('max_prepared_statements = 500', 'max_prepared_statements = 0')
  expect(await refusal(without, asPooler)).toContain('core needs PgBouncer 1.21 or newer')
})

test('core does not start behind a PgBouncer in session mode', async () => {
  expect(await refusal(replaced('pool_mode = transaction', 'pool_mode = session'), asPooler)).toContain(
    'with pool_mode = transaction',
  )
})

test('core does not start behind a PgBouncer that gives each statement another session', async () => {
  expect(await refusal(replaced('pool_mode = transaction', 'pool_mode = statement'), asPooler)).toContain(
    'has pool_mode = statement: core needs transaction',
  )
})

test('core does not start if PgBouncer lacks the database of a pool, and names it', async () => {
  const database = new URL(system.database.serviceUrl).pathname.slice(1)
  expect(await refusal(replaced('wallet_reads', 'other_reads'), asPooler)).toContain(`${database}_reads`)
})
