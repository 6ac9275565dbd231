import { uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, query } from './setup/database.ts'
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
  const workspace = uuidFromId('workspace', workspaceId)
  const attacker: pg.Client = await connect(database.serviceUrl)
  // Core may end the session first.
  attacker.on('error', () => {})
  // Core waits until it knows whether this row of the same member is committed.
  await attacker.query(
    `begin; insert into member (workspace_id, user_id, created_at, revision, mac)
     values ('${workspace}', 'mallory', now(), 1, decode(repeat('01', 32), 'hex'))`,
  )
  const added = admin.members.add.mutate({ workspaceId, userId: 'mallory' })
  const text = await until('core waits for the attacker', async () => {
    const found = await query(
      database.serviceUrl,
      `select query from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into "member"%'`,
    )
    return found[0]?.query as string | undefined
  })
  expect(text).toMatch(/ values \(\$1, \$2, \$3, \$4, \$5\)$/)
  await attacker.end().catch(() => {})
  await added
  const { members } = await admin.members.list.query({ workspaceId })
  expect(members).toContainEqual(expect.objectContaining({ userId: 'mallory', isModified: false }))
})
