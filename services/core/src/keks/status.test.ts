import { type KekStatusStep, uuidFromId } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
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
  const lines: unknown[][] = []
  const log = { warn: (...line: unknown[]) => lines.push(line) } as unknown as Log
  const { orm, keyRing } = opened.core
  const faults = await faultsOfKeyRing(orm.em.fork(), keyRing, log, limitMs)
  return { faults, lines }
}

/** Writes so many API keys as the role of the service could, whose secrets name a key-encryption key, by default one that does not exist. */
async function forgeKeys(count: number, kek = 'unknown'): Promise<void> {
  const { workspaceId } = await createTenantIn(opened, ['transfer:create'])
  await query(
    opened.database.serviceUrl,
    `insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version, created_at,
       updated_at, access_revision, revision, mac)
     select gen_random_uuid(), $1, 'x', 'x', 'ACTIVE', '{transfer:create}', '{}', $3, 1, now(), now(), 0, 1, '\\x01'
     from generate_series(1, $2)`,
    [uuidFromId('workspace', workspaceId), count, `v1.${kek}.x`],
  )
}
/** As docs/operations.md says. */
const deleteForged = (kek = 'unknown') =>
  query(opened.database.ownerUrl, `delete from api_key where split_part(secret, '.', 2) = '${kek}' and mac = '\\x01'`)

test('a start takes limited time to check secrets, however many rows were written outside the service', async () => {
  await forgeKeys(600)
  const modified = [{ count: 600, rows: expect.any(Array) }, expect.stringContaining('rows were modified outside')]
  expect(await check()).toEqual({ faults: [], lines: [modified] })
  const tooLong = ['not all secrets were checked at this start: reading all API keys and webhooks takes too long']
  expect(await check(0)).toEqual({ faults: [], lines: [tooLong] })

  await deleteForged()
  expect(await check()).toEqual({ faults: [], lines: [] })
})

test('secrets are counted in steps, so that no call reads many rows', async () => {
  const readSteps = async () => {
    const read = (after?: string) => opened.as('admin').keks.status({ after })
    const steps = [await read()]
    for (let { next } = steps[0]!; next !== null; { next } = steps.at(-1)!) steps.push(await read(next))
    return steps
  }
  const countsIn = (steps: KekStatusStep[]) => steps.flatMap(({ keks }) => keks)
  await createTenantIn(opened, ['transfer:create'])
  const before = countsIn(await readSteps())
  expect(before).toEqual([{ kek: 'k1', secrets: expect.any(Number), onRing: true }])

  await forgeKeys(250)
  const steps = await readSteps()
  await deleteForged()
  expect(steps.map(({ objects }) => objects)).toEqual([100, 100, expect.any(Number), 0])
  expect(steps.flatMap(({ modified }) => modified)).toHaveLength(250)
  const total = (found: typeof before) => found.reduce((sum, { secrets }) => sum + secrets, 0)
  // `forgeKeys` creates one that is genuine.
  expect(total(countsIn(steps))).toBe(total(before) + 1)

  await expect(opened.as('admin').keks.status({ after: 'x' })).rejects.toMatchObject({ cause: { code: 'S012' } })
})

test('no step reads many rows that it leaves as they are', async () => {
  await forgeKeys(6_000, 'k1')
  const rewrap = (after?: string) => opened.as('admin').keks.rewrap({ to: 'k1', after })
  const first = await rewrap()
  expect(first).toEqual({ rewrapped: 0, unreadable: [], next: expect.any(String) })
  const read = 'select count(*)::int as rows from api_key where id <= $1'
  expect(await query(opened.database.ownerUrl, read, [uuidFromId('apiKey', first.next!)])).toEqual([{ rows: 5_000 }])
  // The rest of the API keys, then all webhooks.
  const second = await rewrap(first.next!)
  expect(await rewrap(second.next!)).toEqual({ rewrapped: 0, unreadable: [], next: null })
  await deleteForged('k1')
})
