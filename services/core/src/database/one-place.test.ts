import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { createTestDatabase } from '../../../../test/setup/database.ts'
import { withConnection } from '../ledger/store/transaction.ts'
import type { Core } from '../trpc/context.ts'
import { TwoPlaces } from './one-place.ts'
import { transact } from './orm.ts'

/**
 * Core with two places checks all its transactions, also in the other tests. Here, transactions that no operation has use a second place.
 */
let opened: TestCore
let own: Core
let other: Core

beforeAll(async () => {
  opened = await openTestCore({ furtherPlaces: [await createTestDatabase()] })
  own = opened.core
  other = opened.places.all.at(-1)!
})
afterAll(() => opened.close())

/** The two kinds of transactions that core has: of the ORM, and on a connection of a pool. */
const begin = {
  administration: (use: () => Promise<unknown>) => transact(own.orm, em => em.execute('select 1').then(use)),
  batch: (use: () => Promise<unknown>) => withConnection(own.reads, client => client.query('begin').then(use)),
}

describe.each(Object.entries(begin))('a transaction of a kind: %s', (_, inTransaction) => {
  test.each<[string, (place: Core) => Promise<unknown>]>([
    ['reads', ({ reads }) => reads.query('select 1')],
    [
      'reads in a list',
      ({ lists }) =>
        lists.read({ cost: 'bounded', workspace: '', statement: { name: 'one', text: 'select 1' }, values: [] }),
    ],
    ['keeps a connection', ({ reads }) => reads.connect()],
    ['begins another transaction', ({ orm }) => transact(orm, em => em.execute('select 1'))],
    [
      'begins another one later',
      async ({ orm }) => {
        await new Promise(resolve => setImmediate(resolve))
        await transact(orm, em => em.execute('select 1'))
      },
    ],
  ])('fails if in another place it %s', async (_, use) => {
    await expect(inTransaction(() => use(other))).rejects.toThrow(TwoPlaces)
  })

  test('may use another connection of its own place, and afterwards whoever began it may use the other one', async () => {
    await inTransaction(() => own.reads.query('select 1'))
    await inTransaction(async () => {}).then(() => other.reads.query('select 1'))
    await expect(inTransaction(() => other.reads.query('select 1'))).rejects.toThrow(`must not use ${other.name}`)
    await transact(other.orm, em => em.execute('select 1'))
  })
})
