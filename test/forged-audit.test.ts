import { uuidFromId } from '@workspace-wallet/contract'
import { verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAdmin } from './setup/admin-command.ts'
import { connect, execute, query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'

/**
 * An attacker has the role of the service, and appends entries to the audit log, which nobody can remove. They must not keep operators
 * from reading it, core from working, or the verification from finding anything.
 */

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

type Forged = {
  action: string
  json: string
  workspace?: string | null
  target?: string
  before?: string | null
  count?: number
  requestId?: string
  actor?: string
}

/** Appends entries whose state after, and before if it is not given, is this JSON. `#` in a target is the number of the entry, from 1. */
async function forge({
  action,
  json,
  workspace,
  target,
  before = json,
  count = 1,
  requestId,
  actor,
}: Forged): Promise<void> {
  const id = workspace === undefined ? uuidFromId('workspace', system.workspaceId) : workspace
  await query(
    system.database.serviceUrl,
    `with head as (select * from lock_audit(array[coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')]))
     insert into audit (at, actor, action, workspace_id, target, before, after, request_id, position, mac)
     select now, coalesce($8, 'operator:ada'), $2, $1, replace($3, '#', n::text), $7::json, $4::json, $6, position + n,
       decode(repeat('01', 32), 'hex')
     from head, generate_series(1, $5) n order by n`,
    [id, action, target ?? system.apiKey, json, count, requestId, before, actor],
  )
}

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
/** As long as the table allows, and as many values as possible. */
const manyValues = `[${'{},'.repeat(87_000)}{}]`

test('an entry that is not genuine is marked, and its JSON is not read', async () => {
  const { admin } = system
  await forge({ action: 'key.disable', json: nested(10_000) })
  const { entries } = await admin.audit.list.query({ limit: 2 })
  const [forged, before] = entries
  expect(forged).toMatchObject({ action: 'key.disable', isGenuine: false, before: null, after: null })
  expect(before).toMatchObject({ isGenuine: true, after: expect.any(Object) })
})

test('hundreds of entries with millions of values are listed', async () => {
  const { admin } = system
  const requestId = 'req_forged'
  for (const action of ['ledger.verify', 'ledger.checkpoint', 'system.backup'])
    await forge({ action, json: manyValues, workspace: null, count: 100, requestId })
  const { entries } = await admin.audit.list.query({ limit: 500, requestId })
  expect(entries).toHaveLength(300)
  for (const { isGenuine, before, after } of entries) expect([isGenuine, before, after]).toEqual([false, null, null])
  const { verifications } = await admin.ledger.verifications.query({ limit: 500 })
  expect(verifications.map(({ isGenuine }) => isGenuine)).toEqual(Array(100).fill(false))
  const { lastVerification, lastCheckpoint, lastBackup } = await admin.system.status.query()
  for (const last of [lastVerification, lastCheckpoint, lastBackup]) expect(last).toMatchObject({ isGenuine: false })
  const { found } = await admin.search.find.query({ text: requestId })
  expect(found.map(({ kind }) => kind)).toEqual(Array(20).fill('audit'))
})

test('no entry keeps the verification from its end, or from what it would find', async () => {
  const { admin } = system
  const unreadable = '{"toString": 1, "valueOf": 1}'
  const limit = (fields: string) => `{"currency":"USD",${fields}}`
  const forged: [string, string][] = [
    ['wallet.deposit', '{"transferId":"\\u0000"}'],
    ['wallet.deposit', '{"transferId":"\\ud800"}'],
    ['limit.set', '{"currency":"\\u0000"}'],
    ['limit.set', `{"currency":${unreadable}}`],
    ['limit.set', limit(`"countedFrom":${unreadable}`)],
    ['limit.set', limit(`"position":${unreadable}`)],
    ['limit.set', limit(`"perDay":${unreadable}`)],
    ['limit.set', limit(`"perDay":${nested(10_000)}`)],
    // decimal.js takes minutes for this.
    ['limit.set', limit(`"perDay":"0x${'f'.repeat(250_000)}"`)],
    ['key.create', nested(10_000)],
    ['wallet.create', '5'],
    ['webhook.create', 'null'],
  ]
  for (const [action, json] of forged) await forge({ action, json })
  await forge({ action: 'key.create', json: manyValues, count: 300 })
  // What only the checks after these entries find.
  const asOwner = (sql: string) => execute(system.database.ownerUrl, `set session_replication_role = replica; ${sql}`)
  await asOwner('update ledger set hold_count = hold_count + 1, limit_count = limit_count + 1')
  const rules = (await verifyLedger(admin, {})).brokenRules.map(({ rule }) => rule)
  await asOwner('update ledger set hold_count = hold_count - 1, limit_count = limit_count - 1')
  expect(rules).toEqual(expect.arrayContaining(['audit-chain', 'ledger-hold-count', 'ledger-limit-count']))
  expect(rules).not.toContain('database-read')
})

test('no entry hides what a row that its owner has reset to an earlier state would show', async () => {
  const { admin, database } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Reset' })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })
  const workspace = uuidFromId('workspace', workspaceId)
  const limit = { workspaceId, subject: { walletId }, currency: 'USD' }
  await admin.members.add.mutate({ workspaceId, userId: 'eve' })
  await admin.limits.set.mutate({ ...limit, perDay: '10.00' })
  await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '8.00', bizId: 'in' })
  const owner = await connect(database.ownerUrl)
  await owner.query('set session_replication_role = replica')
  const keep = (table: string) =>
    owner.query(`create temp table kept_${table} as select * from ${table} where workspace_id = '${workspace}'`)
  const reset = (table: string) =>
    owner.query(`
      delete from ${table} where workspace_id = '${workspace}';
      insert into ${table} select * from kept_${table}`)
  await keep('member')
  await keep('spending_limit')
  await admin.members.remove.mutate({ workspaceId, userId: 'eve' })
  await admin.limits.set.mutate({ ...limit, perDay: '5.00' })
  for (const table of ['member', 'spending_limit']) await reset(table)
  // Less than the limit that is stored, and more than the one that was set last.
  await admin.wallets.withdraw.mutate({ workspaceId, walletId, amount: '6.00', bizId: 'out' })
  await owner.end()
  const rules = async () => (await verifyLedger(admin, { workspaceId })).brokenRules.map(({ rule }) => rule)
  const found = await rules()
  expect(found).toEqual(expect.arrayContaining(['member-audit', 'limit-audit', 'limit-exceeded']))

  await forge({ workspace, action: 'member.add', target: 'eve', json: '{}' })
  const state = { currency: 'USD', perTransfer: null, perDay: '10.00', countedFrom: 1, position: 1 }
  await forge({ workspace, action: 'limit.set', target: walletId, json: JSON.stringify(state) })
  await forge({ workspace, action: 'limit.clear', target: walletId, json: '{"currency":"USD"}' })
  expect(new Set(await rules())).toEqual(new Set([...found, 'audit-chain']))
})

test('an entry, a workspace, a ledger or a move with the nil UUID, which stands for no workspace, is refused', async () => {
  const nil = '00000000-0000-0000-0000-000000000000'
  await expect(forge({ action: 'ledger.verify', json: '{}', workspace: nil })).rejects.toMatchObject({ code: '23514' })
  const insert = query(
    system.database.serviceUrl,
    `insert into workspace (id, name, created_at, updated_at, revision, mac) values ($1, 'x', now(), now(), 1, '')`,
    [nil],
  )
  await expect(insert).rejects.toMatchObject({ code: '23514' })
  // As a workspace that moves, it would keep all actions on no workspace from the audit, such as disabling an operator.
  const open = query(system.database.serviceUrl, `select open_ledger($1, date_trunc('milliseconds', now()), '\\x00')`, [
    nil,
  ])
  await expect(open).rejects.toMatchObject({ code: '23514' })
  const move = query(
    system.database.serviceUrl,
    `insert into workspace_move values ($1, 1, 'LEFT', 0, 1, now(), 0, 1, '\\x00')`,
    [nil],
  )
  await expect(move).rejects.toMatchObject({ code: '23514' })
  await verifyLedger(system.admin, {})
  expect((await system.admin.system.status.query()).lastVerification).toMatchObject({ isGenuine: true })
})

test('any number of limits that were never set do not fill the memory of a verification', async () => {
  const { workspaceId } = await system.admin.workspaces.create.mutate({ name: 'Many limits' })
  const amount = '9'.repeat(130_000)
  const json = `{"currency":"USD","perTransfer":"${amount}","perDay":"${amount}","position":1,"countedFrom":1}`
  const workspace = uuidFromId('workspace', workspaceId)
  // A core ends a session that holds locks for longer.
  for (let at = 0; at < 5; at++)
    await forge({ workspace, action: 'limit.set', target: `ak_${at}_#`, before: null, json, count: 200 })
  const { brokenRules } = await verifyLedger(system.admin, { workspaceId })
  expect(brokenRules).toEqual([{ rule: 'audit-chain', violations: 1000 }])
})

describe('no stored text controls the terminal of whoever runs', () => {
  /** A terminal shows this line instead of the one that the text is in. */
  const lie = 'Ledger     OPEN'
  const text = `x\r\u001b[2K${lie}\u009b8m\n${lie}`
  const shown = `x\uFFFD\uFFFD[2K${lie}\uFFFD8m\uFFFD${lie}`

  test.each([
    ['system status', ''],
    ['workspace show', '--workspace'],
  ])('%s', async (name, flag) => {
    const { workspaceId } = await system.admin.workspaces.create.mutate({ name: 'Halted' })
    await forge({ action: 'ledger.verify', json: '{}', workspace: null, before: null, actor: text })
    await execute(
      system.database.serviceUrl,
      `select change_ledger_status('${uuidFromId('workspace', workspaceId)}', 'HALTED', '${text}', '\\x01')`,
    )
    const line = flag === '' ? name : `${name} ${flag} ${workspaceId}`
    const { stdout } = await runAdmin(system, line)
    expect(stdout).toContain(shown)
    expect(stdout).not.toMatch(/[^\P{Cc}\n]/u)
    expect(stdout.split('\n')).not.toContain(lie)
    const json = await runAdmin(system, `${line} --json`)
    expect(json.stdout.trimEnd()).not.toMatch(/\p{Cc}/u)
    expect(JSON.stringify(JSON.parse(json.stdout))).toContain(JSON.stringify(text).slice(1, -1))
  })
})
