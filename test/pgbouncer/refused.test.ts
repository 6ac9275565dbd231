/** What core refuses at start behind a PgBouncer that keeps named statements. test/pooler.test.ts has the rest. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPgBouncer } from '../../cli/processes/pgbouncer.ts'
import { execute } from '../setup/database.ts'
import { type System, startSystem } from '../setup/system.ts'

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

async function refusal(target: string, replace: Record<string, string> = {}): Promise<string> {
  const pooler = await startPgBouncer(target, { replace })
  try {
    return await system.startCore({ DATABASE_POOLER_URL: pooler.url }).then(
      () => expect.unreachable('core has started'),
      (error: Error) => error.message,
    )
  } finally {
    await pooler.stop()
  }
}

test('core does not start behind a PgBouncer with the role of DATABASE_URL', async () => {
  expect(await refusal(system.database.serviceUrl)).toContain(
    'core cannot start: The pooler connects to PostgreSQL with the role of DATABASE_URL, wallet_service: give it a role of its own',
  )
})

test('core does not start behind a PgBouncer that does not set its settings, and names them', async () => {
  const password = randomUUID()
  await execute(
    system.database.ownerUrl,
    `create role wallet_pooler_2 login password '${password}' in role wallet_service`,
  )
  const target = Object.assign(new URL(system.database.serviceUrl), { username: 'wallet_pooler_2', password }).href
  try {
    expect(await refusal(target, { 'public.set_session': 'length' })).toMatch(
      /core cannot start: .*enable_seqscan is "on", .*check connect_query/,
    )
    // The settings of one pool for another.
    expect(await refusal(target, { "(''ledger'')": "(''reads'')" })).toMatch(
      /core cannot start: .*\(statement_timeout is "10s"\)/,
    )
  } finally {
    await execute(system.database.ownerUrl, 'drop role wallet_pooler_2')
  }
})
