import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTenantIn, openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { query } from '../../../../test/setup/database.ts'
import { faultsOfKeyRing } from './status.ts'

let opened: TestCore
beforeAll(async () => {
  opened = await openTestCore()
})
afterAll(() => opened.close())

/** What a start of core logs. */
async function check(limitMs?: number) {
  const lines: { level: string; text: unknown; fields?: { count: number } }[] = []
  const log = {
    warn: (fields: { count: number }, text: string) => lines.push({ level: 'warn', text, fields }),
    error: (text: string) => lines.push({ level: 'error', text }),
  } as unknown as Parameters<typeof faultsOfKeyRing>[2]
  const { orm, keyRing } = opened.core
  const faults = await faultsOfKeyRing(orm.em.fork(), keyRing, log, limitMs)
  return { faults, lines }
}

test('a start takes limited time to check secrets, however many rows were written outside the service', async () => {
  const { workspaceId } = await createTenantIn(opened, ['transfer:create'])
  await query(
    opened.database.serviceUrl,
    `insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version, created_at,
       updated_at, access_revision, revision, mac)
     select gen_random_uuid(), $1, 'x', 'x', 'ACTIVE', '{transfer:create}', '{}', 'v1.unknown.x', 1, now(), now(), 0, 1, '\\x01'
     from generate_series(1, 600)`,
    [uuidFromId('workspace', workspaceId)],
  )
  expect(await check()).toEqual({ faults: [], lines: [expect.objectContaining({ level: 'warn' })] })

  const { faults, lines } = await check(0)
  expect(faults).toEqual([])
  expect(lines.map(({ level }) => level)).toEqual(['error', 'warn'])
  expect(lines[1]!.fields!.count).toBeLessThan(600)

  // As docs/operations.md says.
  await query(opened.database.ownerUrl, `delete from api_key where split_part(secret, '.', 2) = 'unknown'`)
  expect(await check(0)).toEqual({ faults: [], lines: [] })
})
