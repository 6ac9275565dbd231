import { randomUUID } from 'node:crypto'
import { type Id, uuidFromId, type VerifyReport, verificationKinds } from '@workspace-wallet/contract'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { execute, query } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'
import { recordAction, writeActions } from '../audit/record.ts'
import { transact } from '../database/orm.ts'
import { requireChainKey } from '../ledger/chain/chain-key.ts'
import { findGenuineRecords } from './genuine-records.ts'
import { findLastVerifications, recordVerification } from './records.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
  // As a core does when it starts: it writes which key the ledger has.
  await requireChainKey(testCore.core.reads, testCore.chainKey)
})
afterAll(() => testCore.close())

const read = (what: string) => readSeries(`core_last_${what}_timestamp_seconds`)

/** NaN if there is none. */
async function readSeries(series: string): Promise<number> {
  const text = await testCore.core.metrics.registry.metrics()
  const line = text.split('\n').find(each => each.startsWith(`${series} `))
  return Number(line?.slice(series.length))
}

async function isRecorded(action: string): Promise<number> {
  const [row] = await query(
    testCore.database.ownerUrl,
    'select extract(epoch from max(at))::float8 as at from audit where action = $1 and workspace_id is null',
    [action],
  )
  return row!.at as number
}

test('the last verification, checkpoint and backup of all workspaces are those of the audit', async () => {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  for await (const _ of await admin.ledger.verify({ workspaceId }));
  for await (const _ of await admin.ledger.checkpoint({ workspaceId }));
  expect([await read('verification'), await read('checkpoint'), await read('backup')]).toEqual([0, 0, 0])

  for await (const _ of await admin.ledger.verify({}));
  for await (const _ of await admin.ledger.checkpoint({}));
  await admin.system.recordBackup({ name: 'wallet.tar', bytes: 1 })
  const actions = { verification: 'ledger.verify', checkpoint: 'ledger.checkpoint', backup: 'system.backup' }
  for (const [what, action] of Object.entries(actions)) {
    const at = await isRecorded(action)
    await until(`the ${what} is that of the audit`, async () => (await read(what)) === at)
  }
})

test('a checkpoint file that does not exist makes no ledger unsound', async () => {
  const viewer = testCore.as('viewer')
  const checkpointId = randomUUID()
  const checkpoint = { uploadId: randomUUID(), checkpointId, places: 1 }
  let report: VerifyReport | undefined
  for await (const event of await viewer.ledger.verify({ checkpoint }))
    if (event.kind === 'result') report = event.report
  const fault = report?.checkpoint?.fault
  expect(report).toMatchObject({ ok: false, brokenRules: [], checkpoint: { fault: expect.any(String) } })

  const [row] = await query(
    testCore.database.ownerUrl,
    `select after from audit where action = 'ledger.verify' order by id desc limit 1`,
  )
  expect(row).toMatchObject({ after: { ok: true, checkpointId, checkpointFault: fault } })
  const at = await isRecorded('ledger.verify')
  await until('the verification is in the metrics', async () => (await read('verification')) === at)
  expect(await readSeries('core_verification_sound{kind="whole"}')).toBe(1)
  // It is not shown as one that compared the ledger with that checkpoint.
  const { verifications } = await viewer.ledger.verifications({ limit: 1 })
  expect(verifications).toMatchObject([{ ok: true, checkpointId: null }])
})

test('a record that the service did not write does not count', async () => {
  const before = await read('backup')
  await query(
    testCore.database.serviceUrl,
    `insert into audit (at, actor, action, target, after, position, mac)
     select clock_timestamp(), 'nobody', 'system.backup', 'forged', '{}', position + 1, ''
     from audit where workspace_id is null order by position desc limit 1`,
  )
  expect(await isRecorded('system.backup')).toBeGreaterThan(before)
  expect(await read('backup')).toBe(before)
})

/** What many verifications and checkpoints of one workspace leave, which any viewer may ask for: actions with valid MACs. */
async function recordMany(workspaceId: Id<'workspace'>): Promise<void> {
  const counts = { workspaces: 1, wallets: 0, transfers: 0, flows: 0, holds: 0, journalEntries: 0 }
  const report = { ok: true, ...counts, brokenRules: [], violations: [], notes: [] }
  const actor = 'operator:viewer'
  await transact(testCore.core.orm, async em => {
    for (let count = 0; count < 60; count++) {
      for (const kind of verificationKinds)
        recordVerification(em, actor, { workspaceId, startedAt: new Date(), kind }, report)
      const after = { takenAt: new Date().toISOString(), wallets: 0 }
      recordAction(em, { actor, action: 'ledger.checkpoint', workspaceId, target: randomUUID(), after })
    }
    await writeActions(em, testCore.chainKey, { requestId: null, reason: null })
  })
}

test('no number of verifications and checkpoints of one workspace hides those of all workspaces', async () => {
  const admin = testCore.as('admin')
  const damaged = await admin.workspaces.create({ name: 'Test' })
  const empty = await admin.workspaces.create({ name: 'Empty' })
  const id = uuidFromId('workspace', damaged.workspaceId as Id<'workspace'>)
  await execute(
    testCore.database.ownerUrl,
    `update workspace set name = 'Changed', revision = revision + 1 where id = '${id}'`,
  )
  for await (const _ of await admin.ledger.verify({}));
  for await (const _ of await admin.ledger.checkpoint({}));
  const figures = async () => ({
    sound: await readSeries('core_verification_sound{kind="whole"}'),
    verification: await read('verification'),
    checkpoint: await read('checkpoint'),
  })
  const [verification, checkpoint] = [await isRecorded('ledger.verify'), await isRecorded('ledger.checkpoint')]
  await until('the verification is in the metrics', async () => (await read('verification')) === verification)
  const lastOf = async () => {
    const { lastVerification, lastWholeVerification, lastCheckpoint } = await admin.system.status()
    return { lastVerification, lastWholeVerification, lastCheckpoint }
  }
  const last = await lastOf()
  expect(last).toMatchObject({
    lastVerification: { workspaceId: null, ok: false },
    lastWholeVerification: { workspaceId: null, ok: false },
    lastCheckpoint: { workspaceId: null },
  })

  await recordMany(empty.workspaceId as Id<'workspace'>)
  expect(await figures()).toEqual({ sound: 0, verification, checkpoint })
  expect(await lastOf()).toEqual(last)
})

test('no number of records that the service did not write hides the last one that it wrote', async () => {
  const { database, core } = testCore
  await query(database.ownerUrl, `set session_replication_role = replica; update chain_key set fingerprint = '\\x01'`)
  for await (const _ of await testCore.as('admin').ledger.verify({}));
  const at = await isRecorded('ledger.verify')
  const figures = async () => {
    const text = await core.metrics.registry.metrics()
    const names = ['core_verification_timestamp_seconds', 'core_verification_sound']
    return names.map(name => Number(new RegExp(`^${name}{kind="whole"} (.*)$`, 'm').exec(text)?.[1]))
  }
  await until('the verification is in the figures', async () => (await read('verification')) === at)
  expect(await figures()).toEqual([at, 0])
  await query(
    database.serviceUrl,
    `insert into audit (at, actor, action, target, after, position, mac)
     select now, 'core', 'ledger.verify', 'all workspaces', '{"ok":true}', position + n, '\\x01'
     from lock_audit(array['00000000-0000-0000-0000-000000000000'::uuid]), generate_series(1, 1000) n order by n`,
  )
  expect(await isRecorded('ledger.verify')).toBeGreaterThan(at)
  // As a core that was just started, and as one that has read it before.
  for (const reads of [new pg.Pool({ connectionString: database.serviceUrl }), core.reads]) {
    const { whole } = await findLastVerifications({ reads, chainKey: core.chainKey })
    expect(whole).toMatchObject({ ok: false, endedAt: new Date(at * 1000) })
    if (reads !== core.reads) await reads.end()
  }
  const records = await findGenuineRecords(core, ['ledger.verify'])
  expect(records[0]!.at).toEqual(new Date(at * 1000))

  for await (const _ of await testCore.as('admin').ledger.verify({}));
  const next = await findLastVerifications(core)
  expect(next.whole!.endedAt.getTime()).toBeGreaterThan(at * 1000)
})
