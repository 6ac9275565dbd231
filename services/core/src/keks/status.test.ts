import { type KekStatusStep, uuidFromId } from '@workspace-wallet/contract'
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

/** Writes so many API keys as the role of the service could, whose secrets name a key-encryption key that does not exist. */
async function forgeKeys(count: number): Promise<void> {
  const { workspaceId } = await createTenantIn(opened, ['transfer:create'])
  await query(
    opened.database.serviceUrl,
    `insert into api_key (id, workspace_id, owner_user_id, name, status, scopes, ip_allowlist, secret, secret_version, created_at,
       updated_at, access_revision, revision, mac)
     select gen_random_uuid(), $1, 'x', 'x', 'ACTIVE', '{transfer:create}', '{}', 'v1.unknown.x', 1, now(), now(), 0, 1, '\\x01'
     from generate_series(1, $2)`,
    [uuidFromId('workspace', workspaceId), count],
  )
}
/** As docs/operations.md says. */
const deleteForged = () =>
  query(opened.database.ownerUrl, `delete from api_key where split_part(secret, '.', 2) = 'unknown'`)

test('a start takes limited time to check secrets, however many rows were written outside the service', async () => {
  await forgeKeys(600)
  expect(await check()).toEqual({ faults: [], lines: [expect.objectContaining({ level: 'warn' })] })

  const { faults, lines } = await check(0)
  expect(faults).toEqual([])
  expect(lines.map(({ level }) => level)).toEqual(['error', 'warn'])
  expect(lines[1]!.fields!.count).toBeLessThan(600)

  await deleteForged()
  expect(await check(0)).toEqual({ faults: [], lines: [] })
})

test('secrets are counted in steps, so that no call reads many rows', async () => {
  const readSteps = async () => {
    const read = (after?: string) => opened.as('admin').keks.status({ after })
    const steps = [await read()]
    for (let { next } = steps[0]!; next !== null; { next } = steps.at(-1)!) steps.push(await read(next))
    return steps
  }
  const secretsIn = (steps: KekStatusStep[]) =>
    steps.flatMap(({ keks }) => keks).map(({ kek, secrets, onRing }) => ({ kek, secrets, onRing }))
  await createTenantIn(opened, ['transfer:create'])
  const before = secretsIn(await readSteps())
  expect(before).toEqual([{ kek: 'k1', secrets: expect.any(Number), onRing: true }])

  await forgeKeys(250)
  const steps = await readSteps()
  await deleteForged()
  expect(steps.map(({ objects }) => objects)).toEqual([100, 100, expect.any(Number), 0])
  expect(steps.flatMap(({ modified }) => modified)).toHaveLength(250)
  const total = (found: typeof before) => found.reduce((sum, { secrets }) => sum + secrets, 0)
  // `forgeKeys` creates one that is genuine.
  expect(total(secretsIn(steps))).toBe(total(before) + 1)

  await expect(opened.as('admin').keks.status({ after: 'x' })).rejects.toMatchObject({ cause: { code: 'S012' } })
})
