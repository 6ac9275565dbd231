import type { inferRouterInputs } from '@trpc/server'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTenantIn, openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, createTestDatabase, query, type TestDatabase } from '../../../../test/setup/database.ts'
import { findProcedures } from '../../../../test/setup/procedures.ts'
import { until } from '../../../../test/setup/until.ts'
import { callingToken } from '../database/workspace-concurrency-limit.ts'
import type { AppRouter } from '../routers/app-router.ts'
import type { Role } from './service-token.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

async function newTenant() {
  const { workspaceId, apiKey } = await createTenantIn(testCore, ['webhook:manage', 'wallet:read'])
  const list = () =>
    testCore
      .as('gateway')
      .webhooks.list({ workspaceId, caller: { requestId: 'test', apiKey }, page: 0, size: 10, sort: [] })
  return { workspaceId, apiKey, list }
}

test('the calls of one workspace that wait do not delay those of another one through the same gateway', async () => {
  const { calls } = testCore.core
  const [busy, modest] = [await newTenant(), await newTenant()]
  const gate = Promise.withResolvers<void>()
  const slots = Array.from({ length: 16 }, (_, at) => calls.run(`slot ${at}`, () => gate.promise))
  const answered: string[] = []
  const all = Array.from({ length: 100 }, () => busy.list().then(() => answered.push('busy')))
  await until('they wait', () => calls.load.waiting >= 100)
  all.push(modest.list().then(() => answered.push('modest')))
  await until('it waits', () => calls.load.waiting >= 101)
  gate.resolve()
  await Promise.all([...slots, ...all])
  expect(answered.indexOf('modest')).toBeLessThan(50)
})

test('what a viewer or a service lists does not count as listed by the workspace', async () => {
  const { core } = testCore
  const { workspaceId, apiKey } = await newTenant()
  const callers: (string | undefined)[] = []
  const { lists } = core
  const read = lists.read.bind(lists)
  lists.read = query => {
    callers.push(callingToken.getStore())
    return read(query)
  }
  const page = { workspaceId, page: 0, size: 10, sort: [], filter: {} }
  await testCore.as('gateway').wallets.list({ ...page, caller: { requestId: 'test', apiKey } })
  for (const role of ['viewer', 'service'] as const)
    await testCore.as(role).wallets.list({ ...page, caller: { requestId: 'test' } })
  expect(callers).toEqual([undefined, 'viewer:test', 'service:test'])
})

type Inputs = inferRouterInputs<AppRouter>
type Names<Input> = Input extends object ? keyof Input : never
/** The paths of the procedures whose inputs have neither a `workspaceId` nor an `apiKey`. */
type HomePath = {
  [Router in keyof Inputs & string]: {
    [Name in keyof Inputs[Router] & string]: Names<Inputs[Router][Name]> & ('workspaceId' | 'apiKey') extends never
      ? `${Router}.${Name}`
      : never
  }[keyof Inputs[Router] & string]
}[keyof Inputs & string]

test('procedures are of home if their inputs name no workspace and no key', async () => {
  const paths: Record<HomePath, true> = {
    'access.beginNonceGeneration': true,
    'access.changes': true,
    'access.latestNonceGenerations': true,
    'access.lookup': true,
    'access.markUsed': true,
    'access.nonceKey': true,
    'courier.lease': true,
    'courier.report': true,
    'instances.leave': true,
    'instances.report': true,
    'keks.rewrap': true,
    'keks.status': true,
    'ledger.checkpoints': true,
    'ledger.halted': true,
    'ledger.uploadCheckpoint': true,
    'ledger.verifications': true,
    'operators.create': true,
    'operators.disable': true,
    'operators.list': true,
    'operators.rotate': true,
    'receipts.check': true,
    'receipts.keys': true,
    'refusals.report': true,
    'search.find': true,
    'session.whoami': true,
    'system.activity': true,
    'system.recordBackup': true,
    'system.status': true,
    'workspaces.create': true,
    'workspaces.list': true,
  }
  const ofHome = (await findProcedures()).filter(({ isOfHome }) => isOfHome).map(({ path }) => path)
  // The key is a filter of refused calls, which are at home.
  expect(ofHome.toSorted()).toEqual([...Object.keys(paths), 'refusals.list'].toSorted())
})

describe('with several places', () => {
  let second: TestDatabase
  let two: TestCore
  beforeAll(async () => {
    second = await createTestDatabase()
    two = await openTestCore({ furtherPlaces: [second] })
  })
  afterAll(() => two.close())

  test('what belongs to no workspace is at home, also if the caller names a workspace of another place', async () => {
    const admin = two.as('admin')
    const { workspaceId } = await admin.workspaces.create({ name: 'Test', place: 1 })
    const isThere = 'select from workspace where id = $1'
    expect(await query(second.ownerUrl, isThere, [uuidFromId('workspace', workspaceId)])).toHaveLength(1)
    const operator = { name: 'somebody', role: 'viewer' as const, workspaceId }
    await admin.operators.create(operator)
    expect(await query(two.database.ownerUrl, 'select from operator')).toHaveLength(1)
    expect(await query(second.ownerUrl, 'select from operator')).toHaveLength(0)
  })

  test('look-ups of workspaces for one token keep none for another one waiting', async () => {
    const owner = await connect(second.ownerUrl)
    const observer = await connect(second.ownerUrl)
    const waiting = async () => {
      const statement = `select from pg_stat_activity
        where datname = current_database() and application_name = 'core reads' and wait_event_type = 'Lock'`
      return (await observer.query(statement)).rows.length
    }
    try {
      await owner.query('begin; lock table workspace in access exclusive mode')
      const lookUp = (role: Role) =>
        two
          .as(role)
          .wallets.balance({ workspaceId: mintId('workspace'), walletId: mintId('wallet'), caller: { requestId: 'r' } })
          .catch(() => 'failed')
      const answers = [lookUp('viewer')]
      await until('a look-up waits', async () => (await waiting()) === 1)
      answers.push(lookUp('viewer'), lookUp('service'))
      await until('that of the other token runs too', async () => (await waiting()) === 2)
      await owner.query('commit')
      expect(await Promise.all(answers)).toEqual(['failed', 'failed', 'failed'])
    } finally {
      await Promise.all([owner.end(), observer.end()])
    }
  })

  test('a limited number of look-ups for one token wait, and those of another one are made', async () => {
    const token = { role: 'admin', name: 'n' }
    const ofOperator = { ...token, isOperator: true }
    const lookUp = (by: typeof token) => two.places.of('workspace', mintId('workspace'), by)
    const many = Array.from({ length: 5_000 }, () => lookUp(token))
    const other = lookUp(ofOperator)
    const reasons = (await Promise.allSettled([...many, other])).map(outcome =>
      outcome.status === 'rejected' ? outcome.reason : null,
    )
    // One error for all that may not wait. On a slow machine, some that may are late.
    const refusal = reasons.at(-2)
    expect(refusal).toMatchObject({ code: 'S002' })
    expect(reasons.lastIndexOf(refusal)).toBe(4_999)
    expect(reasons.filter(reason => reason === refusal)).toHaveLength(5_000 - 4_096)
    for (const by of [ofOperator, token])
      await until('look-ups are made', async () => (await lookUp(by).catch(() => null)) === two.places.home)
  })

  test('look-ups that a place does not answer count until it does', async () => {
    const owner = await connect(second.ownerUrl)
    const settled: string[] = []
    const lookUp = (role: Role) =>
      two.places.of('workspace', mintId('workspace'), { role, name: 'late' }).then(
        () => settled.push(`${role} ok`),
        () => settled.push(`${role} failed`),
      )
    try {
      await owner.query('begin; lock table workspace in access exclusive mode')
      await Promise.all(Array.from({ length: 4_096 }, () => lookUp('service')))
      expect(new Set(settled.splice(0))).toEqual(new Set(['service failed']))
      // That of the viewer waits for the place.
      await Promise.all([lookUp('viewer'), lookUp('service')])
      expect(settled).toEqual(['service failed', 'viewer failed'])
    } finally {
      await owner.end()
    }
    await until('the place answers again', async () => {
      await lookUp('service')
      return settled.at(-1) === 'service ok'
    })
  })
})
