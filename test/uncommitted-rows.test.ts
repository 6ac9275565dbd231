import { afterAll, beforeAll, expect, test } from 'vitest'
import { holdWrites, query } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/**
 * An attacker has DATABASE_URL, reads what core has signed and not committed yet, and ends its session. The attacker could then write
 * the row alone, or its entry in the audit alone, and both would be genuine.
 */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

test('whoever has the role of the service cannot read what core signs before it is committed', async () => {
  const { workspaceId, admin, database } = system
  // Whoever has the role of the service may read what all its sessions do.
  const release = await holdWrites(database.ownerUrl, { table: 'member', event: 'insert' })
  const added = admin.members.add.mutate({ workspaceId, userId: 'mallory' })
  const text = await until('core waits', async () => {
    const found = await query(
      database.serviceUrl,
      `select query from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into "member"%'`,
    )
    return found[0]?.query as string | undefined
  })
  expect(text).toMatch(/ values \(\$1, \$2, \$3, \$4, \$5\)$/)
  await release()
  await added
  const { members } = await admin.members.list.query({ workspaceId })
  expect(members).toContainEqual(expect.objectContaining({ userId: 'mallory', isModified: false }))
})
