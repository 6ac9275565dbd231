import { expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { createTestDatabase, query } from '../../../../test/setup/database.ts'
import { readSources } from '../../../../tools/checks/sources.ts'
import { migrate } from './migrate.ts'
import { hasUsableSchema, withoutSchema } from './schema.ts'

test('two schemas of one database have a ledger each', async () => {
  const database = await createTestDatabase('template1')
  const cores = await Promise.all(
    ['bucket_1', 'bucket_2'].map(async schema => {
      const inSchema = (url: string) => `${withoutSchema(url)}?schema=${schema}`
      const own = { ...database, ownerUrl: inSchema(database.ownerUrl), serviceUrl: inSchema(database.serviceUrl) }
      expect(await migrate(own.ownerUrl, own.serviceUrl)).toEqual(['0001-initial'])
      expect(await migrate(own.ownerUrl, own.serviceUrl)).toEqual([])
      return openTestCore({ database: own })
    }),
  )
  try {
    const [first, second] = cores as [TestCore, TestCore]
    await pay(first, 3)
    await pay(second, 5)
    expect(await verify(first)).toMatchObject({ ok: true, workspaces: 1, transfers: 4, violations: [] })
    expect(await verify(second)).toMatchObject({ ok: true, workspaces: 1, transfers: 6, violations: [] })
    const tables = await query(withoutSchema(database.ownerUrl), `select from pg_tables where schemaname = 'public'`)
    expect(tables).toEqual([])
    await query(
      database.ownerUrl,
      `begin; set local session_replication_role = replica; update bucket_1.wallet set balance = balance + 1; commit`,
    )
    expect(await verify(first)).toMatchObject({ ok: false })
    expect(await verify(second)).toMatchObject({ ok: true })
  } finally {
    for (const core of cores) await core.close()
  }
})

/** A deposit, and transfers of it. */
async function pay({ as }: TestCore, transfers: number): Promise<void> {
  const { workspaceId } = await as('admin').workspaces.create({ name: 'Test' })
  const create = async (name: string) =>
    (await as('admin').wallets.create({ workspaceId, currency: 'USD', name })).walletId
  const [sourceWalletId, targetWalletId] = [await create('A'), await create('B')]
  await as('admin').wallets.deposit({ workspaceId, walletId: sourceWalletId, amount: '100.00', bizId: 'deposit' })
  for (let number = 1; number <= transfers; number++)
    await as('service').transfers.create({
      workspaceId,
      caller: { requestId: 'test' },
      order: { sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD', bizId: `transfer-${number}` },
    })
}

async function verify({ as }: TestCore) {
  for await (const event of await as('admin').ledger.verify({})) if (event.kind === 'result') return event.report
  throw new Error('the verification gave no result')
}

/** SQL that names a schema. */
const schemaNamed = /\bpublic\.[a-z_$]|'public'|\b(in|on) schema public\b/

test('no statement of core names the schema', async () => {
  const sources = (await readSources()).filter(
    ({ path }) => path.startsWith('services/core/src/') && !path.endsWith('.test.ts'),
  )
  expect(sources.length).toBeGreaterThan(100)
  const naming = sources.filter(({ text }) => schemaNamed.test(text)).map(({ path }) => path)
  expect(naming).toEqual(['services/core/src/database/schema.ts'])
  for (const sql of ['select 1 from public.wallet', `'public'::regnamespace`, 'revoke create on schema public'])
    expect(sql).toMatch(schemaNamed)
})

test.each([
  ['postgresql://core@localhost/wallet', true],
  ['postgresql://core@localhost/wallet?schema=bucket_1', true],
  ['postgresql://core@localhost/wallet?schema=Bucket', false],
  ['postgresql://core@localhost/wallet?schema=1', false],
  ['postgresql://core@localhost/wallet?schema=pg_temp', false],
  ['postgresql://core@localhost/wallet?schema=', false],
  ['postgresql://core@localhost/wallet?schema=a%2Cb', false],
])('the schema of %s can be used: %s', (url, isUsable) => {
  expect(hasUsableSchema(url)).toBe(isUsable)
})
