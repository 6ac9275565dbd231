import { randomBytes } from 'node:crypto'
import { packBatch } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashOfToken } from '../services/core/src/operators/tokens.ts'
import { openBatches } from './setup/batches.ts'
import { execute, query } from './setup/database.ts'
import { openConnection, received, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'

/** Operators have tokens of their own, which every core accepts until they expire or the operator is disabled. */

let system: System
const clients: CoreClient[] = []
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 0 })
})
afterAll(async () => {
  await Promise.all(clients.map(client => client.close()))
  await system.stop()
})

function clientOf(token: string, url = system.coreUrl): CoreClient {
  const client = createCoreClient({ url, token })
  clients.push(client)
  return client
}

let names = 0
async function newOperator(role: 'admin' | 'viewer' = 'admin', expiresAt?: Date) {
  const name = `operator${++names}`
  const { token } = await system.admin.operators.create.mutate({ name, role, expiresAt })
  return { name, token, client: clientOf(token) }
}

/** The answer of each core to a token: a status, and the sentence if it is refused. */
async function answersTo(token: string): Promise<[number, string | undefined][]> {
  return Promise.all(
    system.cores.map(async ({ url }) => {
      const response = await fetch(`${url}/trpc/session.whoami`, { headers: { authorization: `Bearer ${token}` } })
      const { error } = (await response.json()) as { error?: { json: { message: string } } }
      return [response.status, error?.json.message] as [number, string | undefined]
    }),
  )
}
const refused = (message: string) => [
  [401, message],
  [401, message],
]
const accepted = [
  [200, undefined],
  [200, undefined],
]
const unknown = 'a known token is required: of a service, or of an operator'

const asService = (sql: string, values: unknown[] = []) => query(system.database.serviceUrl, sql, values)

async function brokenRules(): Promise<string[]> {
  const { brokenRules } = await verifyLedger(system.admin, {})
  return brokenRules.map(({ rule }) => rule)
}

test('an operator acts under their own name, which the audit and whoami show', async () => {
  const { name, client } = await newOperator()
  expect(await client.session.whoami.query()).toEqual({
    actor: `operator:${name}`,
    name,
    role: 'admin',
    expiresAt: null,
  })
  const { workspaceId } = await client.workspaces.create.mutate({ name: 'Made by an operator' })
  const { walletId } = await client.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Main' })
  // What operators freeze, clients cannot unfreeze.
  await client.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' })
  const { content } = await client.events.read.query({ workspaceId, after: 0, caller: { requestId: 'r' } })
  expect(JSON.parse(content).at(-1)).toMatchObject({ type: 'wallet.frozen', data: { by: 'OPERATOR' } })
  const { entries } = await client.audit.list.query({ workspaceId })
  expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set([`operator:${name}`]))
})

test('a service token of the role admin is shown by its name', async () => {
  expect(await system.admin.session.whoami.query()).toEqual({
    actor: 'admin:a',
    name: 'a',
    role: 'admin',
    expiresAt: null,
  })
})

test('a viewer reads, and changes nothing', async () => {
  const { client } = await newOperator('viewer')
  const { workspaceId, wallets } = system
  const caller = { requestId: 'r' }
  expect((await client.wallets.list.query({ workspaceId, caller })).content).toHaveLength(wallets.length)
  expect((await verifyLedger(client, {})).ok).toBe(true)
  const { walletId } = wallets[0]!
  for (const change of [
    () => client.wallets.deposit.mutate({ workspaceId, walletId, amount: '1.00', bizId: 'viewer' }),
    () => client.wallets.changeStatus.mutate({ workspaceId, walletId, status: 'FROZEN' }),
    () => client.operators.create.mutate({ name: 'accomplice', role: 'admin' }),
    () => client.workspaces.create.mutate({ name: 'Mine' }),
  ])
    await expect(change()).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })
  // Nor on behalf of an API key.
  await expect(
    client.wallets.get.query({ workspaceId, walletId, caller: { requestId: 'r', apiKey: system.apiKey } }),
  ).resolves.toMatchObject({ walletId })
})

test('a disabled operator is refused by every core at once, on connections that are open already', async () => {
  const { name, token, client } = await newOperator()
  const other = clientOf(token, system.cores[1]!.url)
  await Promise.all([client.session.whoami.query(), other.session.whoami.query()])
  await system.admin.operators.disable.mutate({ name })
  for (const each of [client, other]) await expect(each.session.whoami.query()).rejects.toThrow('401')
  expect(await answersTo(token)).toEqual(refused(`the operator ${name} is disabled`))
  await expect(system.admin.operators.rotate.mutate({ name })).rejects.toThrow('is disabled: create the operator again')
})

test.each([
  ['disabled', (name: string) => system.admin.operators.disable.mutate({ name })],
  ['given another token', (name: string) => system.admin.operators.rotate.mutate({ name })],
])('a call whose body arrives after its operator was %s is refused', async (_, end) => {
  const { name, token } = await newOperator()
  const late = `late-${name}`
  const core = system.cores[1]!
  const input = { name: late, role: 'admin' } as const
  const body = JSON.stringify({ json: input })
  const socket = await openConnection(core.url)
  const answer = received(socket)
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Connection: 'close' }
  socket.write(requestText('POST', '/trpc/operators.create', headers, [`Content-Length: ${body.length}`]))
  socket.write(body.slice(0, 1))
  const batches = await openBatches(core.url, token)
  const frame = packFrame(frameKinds.batch, 1, packBatch([{ path: 'operators.create', type: 'mutation', input }]))
  const rejected = batches.expect(1)
  batches.socket.write(frame.subarray(0, 20))
  // Tokens are looked up in the order of their requests.
  await clientOf(token, core.url).session.whoami.query()
  await end(name)
  socket.write(body.slice(1))
  batches.socket.write(frame.subarray(20))
  expect(await answer).toMatch(/HTTP\/1\.1 401 /)
  expect((await rejected).status).toBe(401)
  batches.socket.destroy()
  const { operators } = await system.admin.operators.list.query({ limit: 500 })
  expect(operators.find(each => each.name === late)).toBeUndefined()
})

test('a disabled operator can be created again, with another token and role', async () => {
  const { name, token } = await newOperator()
  await system.admin.operators.disable.mutate({ name })
  const again = await system.admin.operators.create.mutate({ name, role: 'viewer' })
  expect(await answersTo(token)).toEqual(refused(unknown))
  expect(await clientOf(again.token).session.whoami.query()).toMatchObject({ name, role: 'viewer' })
  await expect(system.admin.operators.create.mutate({ name, role: 'admin' })).rejects.toThrow('There is an operator')
})

test('a rotation ends the old token at once, and keeps the expiry unless another is given', async () => {
  const expiresAt = new Date(Date.now() + 3600_000)
  const { name, token } = await newOperator('admin', expiresAt)
  const rotated = await system.admin.operators.rotate.mutate({ name })
  expect(rotated.expiresAt).toEqual(expiresAt)
  expect(await answersTo(token)).toEqual(refused(unknown))
  expect(await answersTo(rotated.token)).toEqual(accepted)
  expect(await system.admin.operators.rotate.mutate({ name, expiresAt: null })).toMatchObject({ expiresAt: null })
})

test('an expired token is refused', async () => {
  const { name, token } = await newOperator('admin', new Date(Date.now() + 3600_000))
  expect(await answersTo(token)).toEqual(accepted)
  const past = new Date(Date.now() - 1000)
  for (const change of [
    () => system.admin.operators.create.mutate({ name: 'late', role: 'admin', expiresAt: past }),
    () => system.admin.operators.rotate.mutate({ name, expiresAt: past }),
  ])
    await expect(change()).rejects.toThrow('The expiry is in the past')
  const soon = await newOperator('viewer', new Date(Date.now() + 2000))
  await expect
    .poll(() => answersTo(soon.token), { timeout: 20_000 })
    .toEqual(refused(`the token of the operator ${soon.name} has expired`))
})

test('tokens are shown once: no row, list or audit entry has them', async () => {
  const { name, token } = await newOperator()
  const rows = await asService('select * from operator')
  const { operators } = await system.admin.operators.list.query({})
  expect(operators.find(each => each.name === name)).toMatchObject({
    role: 'admin',
    status: 'ACTIVE',
    isModified: false,
  })
  const { entries } = await system.admin.audit.list.query({ target: name })
  expect(entries).toMatchObject([{ action: 'operator.create', workspaceId: null, after: { role: 'admin' } }])
  const output = system.cores.map(core => core.output()).join('')
  for (const shown of [JSON.stringify(rows), JSON.stringify(operators), JSON.stringify(entries), output])
    expect(shown).not.toContain(token)
  expect(JSON.stringify(entries)).not.toContain(hashOfToken(token).toString('hex'))
})

test('every change of an operator is in the audit, with the state before and after', async () => {
  const { name } = await newOperator('viewer')
  const { expiresAt } = await system.admin.operators.rotate.mutate({ name, expiresAt: new Date('2099-01-01') })
  await system.admin.operators.disable.mutate({ name })
  const { entries } = await system.admin.audit.list.query({ target: name })
  const created = { role: 'viewer', status: 'ACTIVE', tokenVersion: 1, expiresAt: null }
  const rotated = { ...created, tokenVersion: 2, expiresAt: expiresAt!.toISOString() }
  const by = { actor: 'admin:a', workspaceId: null, target: name }
  expect(entries).toMatchObject([
    { ...by, action: 'operator.disable', before: rotated, after: { ...rotated, status: 'DISABLED' } },
    { ...by, action: 'operator.rotate', before: created, after: rotated },
    { ...by, action: 'operator.create', before: null, after: created },
  ])
})

test('the reasons of changes of operators are in the audit', async () => {
  const name = `operator${++names}`
  await system.admin.operators.create.mutate({ name, role: 'viewer', reason: 'an auditor' })
  await system.admin.operators.rotate.mutate({ name, reason: 'a lost token' })
  await system.admin.operators.disable.mutate({ name, reason: 'has left' })
  const { entries } = await system.admin.audit.list.query({ target: name })
  expect(entries.map(({ reason }) => reason)).toEqual(['has left', 'a lost token', 'an auditor'])
  expect(await brokenRules()).toEqual([])
})

test('operators are listed page by page', async () => {
  await newOperator()
  const all = await system.admin.operators.list.query({ limit: 500 })
  const found = []
  for (let after: string | undefined; ; ) {
    const page = await system.admin.operators.list.query({ after, limit: 1 })
    found.push(...page.operators)
    if (page.next === null) break
    after = page.next
  }
  expect(found).toEqual(all.operators)
})

test.each(['Ada', 'ada lovelace', '', '-ada', 'ädä', 'a'.repeat(65), 'a:b'])(
  '"%s" is no name of an operator',
  async name => {
    await expect(system.admin.operators.create.mutate({ name, role: 'admin' })).rejects.toMatchObject({
      data: { code: 'BAD_REQUEST' },
    })
  },
)

describe('somebody with the role of the service', () => {
  const columns = 'name, role, status, token_hash, token_version, created_at, updated_at, revision, mac'

  test('creates no operator: a forged row grants nothing, and is reported', async () => {
    // The token of an operator whose row is gone would have a valid checksum. The hash alone does not make it valid.
    const { name, token } = await newOperator()
    await asService(`
      insert into operator (${columns})
      select 'eve', 'admin', 'ACTIVE', decode(repeat('07', 32), 'hex'), 1, now(), now(), 1, mac from operator
      where name = '${name}'`)
    await asService(`update operator set token_hash = $1, revision = revision + 1 where name = '${name}'`, [
      randomBytes(32),
    ])
    await asService(`update operator set token_hash = $1, revision = revision + 1 where name = 'eve'`, [
      hashOfToken(token),
    ])
    expect(await answersTo(token)).toEqual(refused(unknown))
    const { operators } = await system.admin.operators.list.query({})
    expect(operators.filter(each => each.isModified).map(each => each.name)).toEqual(['eve', name])
    expect(await brokenRules()).toEqual(['operator-mac', 'operator-audit'])
    const metrics = await Promise.all(system.cores.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
    expect(metrics.join()).toMatch(/core_modified_rows_total\{table="operator"\} [1-9]/)
    await expect(system.admin.operators.rotate.mutate({ name })).rejects.toThrow('was modified outside the service')
    for (const each of ['eve', name]) await system.admin.operators.disable.mutate({ name: each })
    expect(await brokenRules()).toEqual([])
  })

  test.each([
    ['a disabled operator cannot be enabled', `status = 'ACTIVE'`],
    ['a viewer cannot become an administrator', `role = 'admin', status = 'ACTIVE'`],
    ['an expiry cannot be removed', `expires_at = null, status = 'ACTIVE'`],
  ])('%s', async (_, change) => {
    const { name, token } = await newOperator('viewer', new Date(Date.now() + 3600_000))
    const [before] = await asService(`select mac from operator where name = '${name}'`)
    await system.admin.operators.disable.mutate({ name })
    const mac = `decode('${(before!.mac as Buffer).toString('hex')}', 'hex')`
    await expect(asService(`update operator set ${change} where name = '${name}'`)).rejects.toThrow('is refused')
    await expect(
      asService(`update operator set ${change}, revision = 1, mac = ${mac} where name = '${name}'`),
    ).rejects.toThrow('is refused')
    await asService(`update operator set ${change}, revision = revision + 1, mac = ${mac} where name = '${name}'`)
    expect(await answersTo(token)).toEqual(refused(unknown))
    await system.admin.operators.disable.mutate({ name })
  })

  test('does not keep a name from an operator, whatever the version of the token says', async () => {
    const { name } = await newOperator()
    await asService(`update operator set token_version = 2147483647, revision = revision + 1 where name = '${name}'`)
    const { token } = await system.admin.operators.create.mutate({ name, role: 'viewer' })
    expect(await answersTo(token)).toEqual(accepted)
    expect(await brokenRules()).toEqual([])
    const rotated = await system.admin.operators.rotate.mutate({ name })
    expect(await answersTo(rotated.token)).toEqual(accepted)
    expect(await answersTo(token)).toEqual(refused(unknown))
  })

  test('an operator cannot be deleted or renamed', async () => {
    const { name } = await newOperator()
    for (const sql of [
      `delete from operator where name = '${name}'`,
      'truncate operator',
      `update operator set name = 'eve', revision = revision + 1 where name = '${name}'`,
    ])
      await expect(asService(sql), sql).rejects.toThrow('permission denied')
  })

  test('the row of an earlier token, which its owner restores, is in contradiction to the audit', async () => {
    const { name } = await newOperator()
    const asOwner = (sql: string) => execute(system.database.ownerUrl, sql)
    await asOwner(`create table kept as select * from operator where name = '${name}'`)
    await system.admin.operators.disable.mutate({ name })
    await asOwner(`
      set session_replication_role = replica;
      delete from operator where name = '${name}'; insert into operator select * from kept; drop table kept`)
    expect(await brokenRules()).toEqual(['operator-audit'])
    await system.admin.operators.disable.mutate({ name })
    expect(await brokenRules()).toEqual([])
  })
})

test('guessed tokens are refused without a look-up in the database', async () => {
  await execute(system.database.ownerUrl, 'alter table operator rename to operator_away')
  const guessed = `opr_${randomBytes(41).toString('base64url')}`
  const answers = await answersTo(guessed)
  await execute(system.database.ownerUrl, 'alter table operator_away rename to operator')
  expect(answers).toEqual(refused(unknown))
})
