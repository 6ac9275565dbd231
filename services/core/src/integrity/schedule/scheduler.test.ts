import { createLog } from '@workspace-wallet/runtime'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { connect, query } from '../../../../../test/setup/database.ts'
import { startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'
import { requireChainKey } from '../../ledger/chain/chain-key.ts'
import { removeEnds } from './queries.ts'
import { runIfDue } from './scheduler.ts'

const recorded = `select action, actor, after ->> 'ok' as ok from audit where action like 'ledger.verify%' order by id`
const sound = (action: string) => ({ action, actor: 'core', ok: 'true' })
/** A verification is due as soon as it may be. */
const always = { everyMs: 1, wholeEveryMs: 86_400_000 }

async function withCore(use: (testCore: TestCore, run: () => Promise<boolean>) => Promise<void>): Promise<void> {
  const testCore = await openTestCore()
  const { core } = testCore
  // As a core does when it starts: it writes which key the ledger has.
  await requireChainKey(core.reads, core.chainKey)
  await testCore.as('admin').workspaces.create({ name: 'Test' })
  const parts = { ...core, log: createLog('test', 'silent').log }
  try {
    await use(testCore, () => runIfDue(parts, always, new AbortController().signal))
  } finally {
    await testCore.close()
  }
}

/** Waits until a verification is due again, and runs it. */
function runNext(run: () => Promise<boolean>, ownerUrl: string): Promise<unknown> {
  return until('the next verification has ended', async () => {
    const before = (await query(ownerUrl, recorded)).length
    await run()
    return (await query(ownerUrl, recorded)).length > before
  })
}

test('the first verification is whole, and the next one continues it', () =>
  withCore(async ({ database, as }, run) => {
    await runNext(run, database.ownerUrl)
    await as('admin').workspaces.create({ name: 'Another' })
    await runNext(run, database.ownerUrl)
    expect(await query(database.ownerUrl, recorded)).toEqual([
      sound('ledger.verify'),
      sound('ledger.verify-incremental'),
    ])
    const { verifications } = await as('admin').ledger.verifications({ limit: 10 })
    expect(verifications).toMatchObject([
      { kind: 'INCREMENTAL', ok: true, actor: 'core', isGenuine: true },
      { kind: 'WHOLE', ok: true, actor: 'core', isGenuine: true },
    ])
    const status = await as('admin').system.status()
    expect(status).toMatchObject({
      lastVerification: { kind: 'INCREMENTAL' },
      lastWholeVerification: { kind: 'WHOLE' },
    })
  }))

test('one verification runs at a time', () =>
  withCore(async ({ database }, run) => {
    await Promise.all([run(), run(), run()])
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify')])
  }))

test('a session that no core has opened cannot keep the lock', () =>
  withCore(async ({ database }, run) => {
    const foreign = new pg.Client({ connectionString: database.serviceUrl })
    foreign.on('error', () => {})
    await foreign.connect()
    await foreign.query('select pg_advisory_lock(1447381577, 1)')
    await run()
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify')])
    await expect(foreign.query('select 1')).rejects.toThrow()
  }))

test("results that the service's role writes do not count, and what it removes makes the next verification a whole one", () =>
  withCore(async ({ database }, run) => {
    const forged = `{"ok": true, "startedAt": "${new Date().toISOString()}", "ends": "${'0'.repeat(64)}"}`
    const service = await connect(database.serviceUrl)
    const forge = () =>
      service.query(
        `select lock_audit('{00000000-0000-0000-0000-000000000000}');
         insert into audit (at, actor, action, target, after, position, mac)
         select clock_timestamp(), 'core', 'ledger.verify', 'all workspaces', '${forged}', position + 1, ''
         from audit_head where workspace_id = '00000000-0000-0000-0000-000000000000'`,
      )
    await runNext(run, database.ownerUrl)
    await service.query('delete from verified_ledger')
    await runNext(run, database.ownerUrl)
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify'), sound('ledger.verify')])

    await forge()
    await runNext(run, database.ownerUrl)
    await service.end()
    expect(await query(database.ownerUrl, recorded)).toEqual([
      sound('ledger.verify'),
      sound('ledger.verify'),
      sound('ledger.verify'),
      // It finds the forged entry.
      { action: 'ledger.verify-incremental', actor: 'core', ok: 'false' },
    ])
  }))

test("with any number of rows that the service's role adds, the next verification is a whole one", () =>
  withCore(async ({ database }, run) => {
    await runNext(run, database.ownerUrl)
    const service = await connect(database.serviceUrl)
    // Core ends a session of this role that works for many seconds.
    for (let part = 0; part < 10; part++)
      await service.query(
        `insert into verified_ledger
         select gen_random_uuid(), 1, 1, null, mac, 1, mac, mac, mac from generate_series(1, 50000), sha256('') mac`,
      )
    await service.end()
    await runNext(run, database.ownerUrl)
    await runNext(run, database.ownerUrl)
    expect(await query(database.ownerUrl, recorded)).toEqual([
      sound('ledger.verify'),
      sound('ledger.verify'),
      sound('ledger.verify-incremental'),
    ])
  }))

test('removing rows that somebody adds all the time ends with an error, and at once when core stops', () =>
  withCore(async ({ database, core }) => {
    await query(
      database.ownerUrl,
      `insert into verified_ledger
       select gen_random_uuid(), 1, 1, null, mac, 1, mac, mac, mac from generate_series(1, 150001), sha256('') mac`,
    )
    const { signal } = new AbortController()
    await expect(removeEnds(core.reads, signal, 0)).rejects.toThrow('as fast as core removes them')
    await expect(removeEnds(core.reads, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
    await removeEnds(core.reads, signal)
    expect(await query(database.ownerUrl, 'select from verified_ledger')).toEqual([])
    await expect(removeEnds(core.reads, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  }))

test("a session of the service's role that adds the same rows at the same time does not keep a result from the audit", () =>
  withCore(async ({ database }, run) => {
    const [workspace] = await query(database.ownerUrl, 'select id from workspace')
    // It adds the row of the workspace, and commits while core waits for it.
    const service = await connect(database.serviceUrl)
    // Core may end the session first, on a slow machine.
    service.on('error', () => {})
    const observer = await connect(database.ownerUrl)
    await service.query('begin')
    await service.query(
      `insert into verified_ledger values ('${workspace!.id}', 0, 0, null, '', 0, '', '', '') on conflict do nothing`,
    )
    let isEnded = false
    const running = runNext(run, database.ownerUrl).finally(() => {
      isEnded = true
    })
    running.catch(() => {})
    await until('core waits for the session, or has ended it', async () => {
      const { rows } = await observer.query(
        `select from pg_locks where relation = 'verified_ledger'::regclass and not granted
         union all select from pg_stat_activity where wait_event = 'transactionid' and query like '%verified_ledger%'`,
      )
      return isEnded || rows.length > 0
    })
    await service.query('commit').catch(() => {})
    await running
    await Promise.all([service.end().catch(() => {}), observer.end()])
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify')])
  }))

test('a sound result is recorded even if where it ended cannot be written, and the next verification is a whole one', () =>
  withCore(async ({ database }, run) => {
    // Core does not end a session of the owner. It waits for the lock until its statement times out.
    const owner = await connect(database.ownerUrl)
    await owner.query('begin; lock table verified_ledger in row exclusive mode')
    await runNext(run, database.ownerUrl)
    await owner.query('rollback')
    await owner.end()
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify')])
    await runNext(run, database.ownerUrl)
    expect(await query(database.ownerUrl, recorded)).toEqual([sound('ledger.verify'), sound('ledger.verify')])
  }))

test('a verification that a killed core could not end is run by another core', async () => {
  const system = await startSystem({
    gateways: 0,
    waitsForLocks: true,
    coreEnvironment: { VERIFY_EVERY_MINUTES: '60' },
  })
  const { ownerUrl } = system.database
  const owner = await connect(ownerUrl)
  try {
    await owner.query('begin; lock table transfer in access exclusive mode')
    const waiting = `select pid from pg_stat_activity where application_name = 'core verify' and wait_event_type = 'Lock'`
    await until('the verification waits', async () => (await query(ownerUrl, waiting)).length > 0)
    await system.cores[0]!.kill('SIGKILL')
    await system.startCore()
    await owner.query('rollback')
    await until('the other core has verified', async () => (await query(ownerUrl, recorded)).length > 0)
    expect(await query(ownerUrl, recorded)).toEqual([sound('ledger.verify')])
  } finally {
    await owner.end()
    await system.stop()
  }
}, 120_000)
