import { verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from './setup/admin-command.ts'
import { execute } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { createTenant } from './setup/workspaces.ts'

/** What an operator looks at first, and what core keeps of verifications, checkpoints and backups. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

const days = (count: number) => new Date(Date.now() + count * 86_400_000)

test('shows versions; test/instances.test.ts has the programs that run', async () => {
  const { versions, now } = await system.admin.system.status.query()
  expect(versions).toEqual({
    core: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    node: process.version,
    postgresql: expect.stringMatching(/^18\./),
    schema: ['0001-initial'],
  })
  expect(now).toBeInstanceOf(Date)
})

test('keeps verifications, also of one workspace and with what they found', async () => {
  const { admin, workspaceId } = system
  expect((await admin.system.status.query()).lastVerification).toBeNull()
  await verifyLedger(admin, {})
  const { verifications } = await admin.ledger.verifications.query({})
  expect(verifications).toEqual([
    {
      id: expect.any(Number),
      at: expect.any(Date),
      startedAt: expect.any(Date),
      actor: 'admin:a',
      workspaceId: null,
      isGenuine: true,
      kind: 'WHOLE',
      ok: true,
      workspaces: expect.any(Number),
      wallets: expect.any(Number),
      transfers: 3,
      flows: 6,
      brokenRules: [],
      checkpointId: null,
    },
  ])
  await execute(system.database.ownerUrl, `update wallet set name = 'Mine' where name = 'Travel'`)
  await verifyLedger(admin, { workspaceId })
  const brokenRules = [
    { rule: 'wallet-mac', violations: 1 },
    { rule: 'wallet-audit', violations: 1 },
  ]
  const first = await admin.ledger.verifications.query({ limit: 1 })
  expect(first.verifications).toMatchObject([{ ok: false, workspaceId, brokenRules, isGenuine: true }])
  const rest = await admin.ledger.verifications.query({ limit: 1, before: first.next! })
  expect(rest).toEqual({ verifications, next: null })
  expect((await admin.system.status.query()).lastVerification).toEqual(verifications[0])
  await execute(system.database.ownerUrl, `update wallet set name = 'Travel' where name = 'Mine'`)
})

test('keeps exports of checkpoints, and backups', async () => {
  const { admin } = system
  const parts = []
  for await (const part of await admin.ledger.checkpoint.query({})) parts.push(part)
  const { checkpointId, takenAt } = parts[0]!
  const { checkpoints } = await admin.ledger.checkpoints.query({})
  expect(checkpoints).toMatchObject([
    { checkpointId, actor: 'admin:a', workspaceId: null, isGenuine: true, wallets: 5 },
  ])
  expect(checkpoints[0]!.takenAt).toEqual(new Date(takenAt))
  await admin.system.recordBackup.mutate({ name: 'wallet.tar', bytes: 4096 })
  const { lastCheckpoint, lastBackup } = await admin.system.status.query()
  expect(lastCheckpoint).toEqual(checkpoints[0])
  expect(lastBackup).toMatchObject({ name: 'wallet.tar', bytes: 4096, actor: 'admin:a', isGenuine: true })
})

test('a verification or backup that somebody has written into the audit is shown as forged', async () => {
  const forge = (action: string, after: string) =>
    execute(
      system.database.serviceUrl,
      `insert into audit (at, actor, action, workspace_id, target, after, position, mac)
       select now(), 'admin:a', '${action}', null, 'all workspaces', '${after}', position + 1, mac
       from lock_audit(array['00000000-0000-0000-0000-000000000000'::uuid])`,
    )
  await forge('ledger.verify', '{"ok": true, "flows": 6}')
  await forge('system.backup', '["not", "ours"]')
  await forge('ledger.checkpoint', '7')
  const { lastVerification, lastBackup, lastCheckpoint } = await system.admin.system.status.query()
  expect(lastVerification).toMatchObject({ ok: false, isGenuine: false, flows: 0, brokenRules: [] })
  expect(lastBackup).toMatchObject({ isGenuine: false, bytes: 0 })
  expect(lastCheckpoint).toMatchObject({ isGenuine: false, wallets: 0 })
})

test('shows keys and tokens that expire within 30 days, and keys that were not used for 90', async () => {
  const { admin } = system
  const [soon, later, unused, expired] = [
    await createTenant(system, { expiresAt: days(29) }),
    await createTenant(system, { expiresAt: days(31) }),
    await createTenant(system),
    await createTenant(system),
  ]
  await admin.apiKeys.setExpiry.mutate({ apiKey: expired.apiKey, expiresAt: new Date(0) })
  const disabled = await createTenant(system, { expiresAt: days(5) })
  await admin.apiKeys.disable.mutate(disabled)
  await admin.operators.create.mutate({ name: 'soon', role: 'viewer', expiresAt: days(3) })
  await admin.operators.create.mutate({ name: 'later', role: 'viewer', expiresAt: days(60) })
  const { expiringKeys, expiringOperators, unusedKeys } = (await admin.system.status.query()).credentials!
  expect(expiringKeys).toMatchObject([{ apiKey: soon.apiKey, workspaceId: soon.workspaceId, ownerUserId: 'owner' }])
  expect(expiringOperators).toMatchObject([{ name: 'soon' }])
  expect(unusedKeys).toEqual([])
  for (const { apiKey } of [later, unused, disabled])
    expect(expiringKeys.map(each => each.apiKey)).not.toContain(apiKey)
})

/** The role of the service forges operators that expire before every genuine one. */
function forgeOperators(prefix: string, count: number): Promise<unknown> {
  return execute(
    system.database.serviceUrl,
    `insert into operator (name, role, status, token_hash, token_version, expires_at, created_at, updated_at, revision, mac)
     select '${prefix}' || n, 'viewer', 'ACTIVE', sha256(convert_to('${prefix}' || n, 'UTF8')), 1,
       now() + interval '1 day' + interval '1 millisecond' * (n / 700), now(), now(), 1, sha256('\\x00')
     from generate_series(1, ${count}) n`,
  )
}

test('forged operators hide no genuine one that expires', async () => {
  await forgeOperators('some-', 1_700)
  const { credentials } = await system.admin.system.status.query()
  expect(credentials?.expiringOperators).toMatchObject([{ name: 'soon' }])
})

test('with too many forged operators, says so in their place, and shows all the rest', async () => {
  const { credentials: _, now: __, ...rest } = await system.admin.system.status.query()
  await forgeOperators('many-', 100_000)
  const { credentials, ...others } = await system.admin.system.status.query()
  expect(credentials).toBeNull()
  expect(Object.keys(others)).toEqual(['now', ...Object.keys(rest)])
  expect(others).toMatchObject({ versions: rest.versions, halted: rest.halted, lastBackup: rest.lastBackup })
  const { stdout } = await runAdmin(system, 'system status')
  expect(stdout).toMatch(/^Core \d.*^Core could not find in time .* Run ledger verify, which names them\.$/ms)
  await execute(system.database.ownerUrl, `delete from operator where name like 'some-%' or name like 'many-%'`)
  const repaired = await system.admin.system.status.query()
  expect(repaired.credentials?.expiringOperators).toMatchObject([{ name: 'soon' }])
})

test('shows halted workspaces', async () => {
  const { workspaceId } = await createTenant(system)
  await execute(
    system.database.ownerUrl,
    `update ledger set status = 'HALTED', halt_reason = 'a test', revision = revision + 1
     where workspace_id = (select id from workspace order by created_at desc limit 1)`,
  )
  expect((await system.admin.system.status.query()).halted).toEqual([{ workspaceId, reason: 'a test' }])
})
