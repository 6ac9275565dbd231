import { randomUUID } from 'node:crypto'
import type { CheckpointPart, UploadedCheckpoint } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { createTestDatabase, query, type TestDatabase } from '../../../../test/setup/database.ts'
import { readSources } from '../../../../tools/checks/sources.ts'
import { migrate } from './migrate.ts'
import { hasUsableSchema, withoutSchema } from './schema.ts'

describe('two schemas of one database, as places of one core', () => {
  let opened: TestCore
  const schemas = ['bucket_1', 'bucket_2']
  const paid: Awaited<ReturnType<typeof pay>>[] = []

  beforeAll(async () => {
    const database = await createTestDatabase('template1')
    const inSchema = (url: string, schema: string) => `${withoutSchema(url)}?schema=${schema}`
    const [home, other] = schemas.map(schema => ({
      ...database,
      ownerUrl: inSchema(database.ownerUrl, schema),
      serviceUrl: inSchema(database.serviceUrl, schema),
    })) as [TestDatabase, TestDatabase]
    for (const { ownerUrl, serviceUrl } of [home, other]) {
      expect(await migrate(ownerUrl, serviceUrl)).toEqual(['0001-initial'])
      expect(await migrate(ownerUrl, serviceUrl)).toEqual([])
    }
    opened = await openTestCore({ database: home, furtherPlaces: [other] })
    for (const [place, transfers] of [3, 5].entries()) paid.push(await pay(opened, place, transfers))
  })
  afterAll(() => opened.close())

  const owner = (sql: string) => query(withoutSchema(opened.database.ownerUrl), sql)

  test('have a ledger each', async () => {
    for (const [place, count] of [4, 6].entries())
      expect(await owner(`select count(*)::int from ${schemas[place]}.transfer`)).toEqual([{ count }])
    expect(await owner(`select from pg_tables where schemaname = 'public'`)).toEqual([])
  })

  test('a change of a key in the second one is in force at once', async () => {
    const { order, apiKey, workspaceId } = paid[1]!
    const create = () =>
      opened.as('gateway').transfers.create({ workspaceId, caller: { requestId: 'test', apiKey }, order })
    expect(await create()).toMatchObject({ status: 'COMPLETED' })
    await opened.as('admin').apiKeys.disable({ apiKey })
    await expect(create()).rejects.toMatchObject({ cause: { code: 'GA2021' } })
  })

  test('are sound, and a checkpoint reveals what was put back in time in either one', async () => {
    const { ledger } = opened.as('admin')
    const parts: CheckpointPart[] = []
    for await (const part of await ledger.checkpoint({})) parts.push(part)
    expect(parts.map(({ place }) => place)).toEqual([0, 1])
    /** A verification removes the parts that it has read. */
    const verifyAgainst = async () => {
      const uploadId = randomUUID()
      for (const part of parts) expect(await ledger.uploadCheckpoint({ uploadId, part })).toEqual({ genuine: true })
      return verify(opened, { uploadId, checkpointId: parts[0]!.checkpointId, places: 2 })
    }
    expect(await verifyAgainst()).toMatchObject({
      ok: true,
      violations: [],
      workspaces: 2,
      checkpoint: { wallets: 6, fault: null },
    })
    await owner('set session_replication_role = replica; update bucket_1.ledger set revision = revision - 1')
    await owner('set session_replication_role = replica; update bucket_2.ledger set revision = revision - 1')
    const { violations } = await verifyAgainst()
    const older = violations.filter(({ rule }) => rule === 'checkpoint-revision').map(({ ids }) => ids.workspaceId)
    expect(older.toSorted()).toEqual(paid.map(({ workspaceId }) => workspaceId).toSorted())
  })
})

/** A deposit, and transfers of it. */
async function pay({ as }: TestCore, place: number, transfers: number) {
  const { workspaceId } = await as('admin').workspaces.create({ name: 'Test', place })
  await as('admin').members.add({ workspaceId, userId: 'owner' })
  const scopes = ['transfer:create' as const]
  const { apiKey } = await as('admin').apiKeys.create({ workspaceId, ownerUserId: 'owner', scopes })
  const create = async (name: string) =>
    (await as('admin').wallets.create({ workspaceId, currency: 'USD', name })).walletId
  const [sourceWalletId, targetWalletId] = [await create('A'), await create('B')]
  await as('admin').wallets.deposit({ workspaceId, walletId: sourceWalletId, amount: '100.00', bizId: 'deposit' })
  const order = { sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD', bizId: 'transfer-1' }
  for (let number = 1; number <= transfers; number++)
    await as('service').transfers.create({
      workspaceId,
      caller: { requestId: 'test' },
      order: { ...order, bizId: `transfer-${number}` },
    })
  return { workspaceId, apiKey, order }
}

async function verify({ as }: TestCore, checkpoint: UploadedCheckpoint) {
  for await (const event of await as('admin').ledger.verify({ checkpoint }))
    if (event.kind === 'result') return event.report
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
