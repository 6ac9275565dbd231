import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { raw } from '@mikro-orm/postgresql'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, query, type TestDatabase } from '../../../../test/setup/database.ts'
import { entities } from '../entities.ts'
import { Operator } from '../operators/entities.ts'
import { Member, Workspace } from '../workspaces/entities.ts'
import { type Em, kyselyOf, type Orm, openOrm, transact } from './orm.ts'
import { runIn } from './run.ts'
import { statement } from './statement.ts'

/** Who has the same role sees the text of each statement in `pg_stat_activity`, and must not see values in it. */

let database: TestDatabase
let orm: Orm
beforeAll(async () => {
  database = await createTestDatabase()
  const chainKey = createSecretKey(randomBytes(32))
  orm = await openOrm(database.serviceUrl, { name: 'test', max: 2, entities, chainKey })
})
afterAll(async () => {
  await orm?.close(true)
  await database?.drop()
})

/** The text of the last statement of a transaction, as another session of its role sees it. */
async function textOf(action: (em: Em) => Promise<unknown>): Promise<string> {
  return transact(orm, async em => {
    const [{ pid }] = await em.execute<[{ pid: number }]>('select pg_backend_pid() as pid')
    await action(em)
    const found = await query(database.serviceUrl, `select query from pg_stat_activity where pid = ${pid}`)
    return found[0]!.query as string
  })
}

const operator = () => ({
  name: randomUUID(),
  role: 'admin' as const,
  status: 'ACTIVE' as const,
  tokenHash: randomBytes(32),
  tokenVersion: 1,
  createdAt: new Date(),
  updatedAt: new Date(),
})
const withTag = statement<{ tag: string }>('find-tag', `select $1 as tag where $2 = 'b'`)

test.each<[string, (em: Em) => Promise<unknown>, RegExp]>([
  ['a look-up by text', em => em.findOne(Operator, { name: 'ivan' }), /"name" = \$1 limit 1$/],
  [
    'a look-up by bytes and time',
    em => em.findOne(Operator, { tokenHash: randomBytes(32), createdAt: { $lt: new Date() } }),
    /= \$1 and .+ < \$2 limit 1$/,
  ],
  ['a look-up by several names', em => em.find(Operator, { name: { $in: ['ivan', 'judy'] } }), /in \(\$1, \$2\)$/],
  [
    'an insert',
    em => em.persist(em.create(Operator, operator())).flush(),
    /^insert into "operator" .+ values \(\$1, \$2, \$3, \$4, 1, /,
  ],
  [
    'an update',
    async em => {
      const found = em.create(Operator, operator())
      await em.persist(found).flush()
      found.status = 'DISABLED'
      await em.flush()
    },
    /^update "operator" set "status" = \$1, "revision" = \$2, "mac" = \$3 where "name" = \$4$/,
  ],
  ['SQL', em => em.execute('select ?::jsonb as found where ? = 1', [{ tag: 'a' }, 1]), /^select \$1::jsonb .+ 1 = 1$/],
  ['SQL in SQL', em => em.execute('select ?', [raw('upper(?)', ['a'])]), /^select upper\(\$1\)$/],
  ['a statement', em => runIn(em)(withTag, ['a', 'b']), /^select \$1 as tag where \$2 = 'b'$/],
  [
    'a query of Kysely',
    em => kyselyOf(em, Operator).selectFrom('Operator').select('role').where('name', '=', 'ivan').execute(),
    /"name" = \$1$/,
  ],
])('%s has no values in its text', async (_, action, expected) => {
  expect(await textOf(action)).toMatch(expected)
})

test('values arrive as they are', async () => {
  const texts = [`'`, '\\', '?', '$1', '??', '\\?', '\u{1f600}', " E'\\\\'"]
  const [found] = await orm.em.fork().execute(
    `select array[${texts.map(() => '?').join(', ')}] as texts, ?::bytea as bytes, ?::timestamptz as time, ?::jsonb as json,
       ?::bigint as large, ? as number, ? as yes, ?::text as nothing, 5 in (?) as listed`,
    [...texts, Buffer.of(0, 92, 255), new Date(0), { a: ["'"] }, 2n ** 62n, 1.5, true, null, [4, 5]],
  )
  expect(found).toMatchObject({
    texts,
    bytes: Buffer.of(0, 92, 255),
    json: { a: ["'"] },
    large: String(2n ** 62n),
    number: '1.5',
    yes: true,
    nothing: null,
    listed: true,
  })
  expect(new Date(found!.time as string).getTime()).toBe(0)
})

test('several rows are written with one statement', async () => {
  const workspaceId = mintId('workspace')
  const now = new Date()
  const text = await textOf(async em => {
    em.create(Workspace, { id: workspaceId, name: 'w', createdIn: 0, createdAt: now, updatedAt: now })
    await em.flush()
    for (const userId of ['ivan', 'judy']) em.create(Member, { workspaceId, userId, createdAt: now })
    await em.flush()
  })
  expect(text).toMatch(/^insert into "member" .+ values \(\$1, .+\), \(\$\d, .+\)$/)
  const members = await query(
    database.serviceUrl,
    `select user_id from member where workspace_id = '${uuidFromId('workspace', workspaceId)}' order by user_id`,
  )
  expect(members).toEqual([{ user_id: 'ivan' }, { user_id: 'judy' }])
})
