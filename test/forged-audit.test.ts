import { uuidFromId } from '@workspace-wallet/contract'
import { verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { execute, query } from './setup/database.ts'
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

type Forged = { action: string; json: string; workspace?: string | null; count?: number; requestId?: string }

/** Appends entries whose state before and after is this JSON. */
async function forge({ action, json, workspace, count = 1, requestId }: Forged): Promise<void> {
  const id = workspace === undefined ? uuidFromId('workspace', system.workspaceId) : workspace
  await query(
    system.database.serviceUrl,
    `with head as (select * from lock_audit(array[coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')]))
     insert into audit (at, actor, action, workspace_id, target, before, after, request_id, position, mac)
     select now, 'operator:ada', $2, $1, $3, $4::json, $4::json, $6, position + n, decode(repeat('01', 32), 'hex')
     from head, generate_series(1, $5) n order by n`,
    [id, action, system.apiKey, json, count, requestId],
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

test('an entry or a workspace with the nil UUID, which stands for no workspace, is refused', async () => {
  const nil = '00000000-0000-0000-0000-000000000000'
  await expect(forge({ action: 'ledger.verify', json: '{}', workspace: nil })).rejects.toMatchObject({ code: '23514' })
  const insert = query(
    system.database.serviceUrl,
    `insert into workspace (id, name, created_at, updated_at, revision, mac) values ($1, 'x', now(), now(), 1, '')`,
    [nil],
  )
  await expect(insert).rejects.toMatchObject({ code: '23514' })
  await verifyLedger(system.admin, {})
  expect((await system.admin.system.status.query()).lastVerification).toMatchObject({ isGenuine: true })
})
