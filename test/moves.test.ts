import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Move, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Copier, nothingCopied } from '../cli/admin/move/copy.ts'
import { cancelMove, moveWorkspace } from '../cli/admin/move/move.ts'
import { adminProgram } from './setup/admin-command.ts'
import { type Credentials, call, createPath } from './setup/client.ts'
import { connect, createTestDatabase, execute, query, type TestDatabase } from './setup/database.ts'
import { startReceiver } from './setup/receiver.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createKey, createWallet } from './setup/workspaces.ts'

/** Two cores, each behind a gateway of its own, and two places. */

type Tenant = Credentials & { workspaceId: string; a: string; b: string }

let system: System
let second: TestDatabase
let service: ReturnType<typeof createCoreClient>
let ownerUrls: string[]

beforeAll(async () => {
  second = await createTestDatabase()
  system = await startSystem({
    cores: 2,
    gateways: 2,
    oneCorePerGateway: true,
    coreEnvironment: { DATABASE_URLS: second.serviceUrl },
  })
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  ownerUrls = [system.database.ownerUrl, second.ownerUrl]
})
afterAll(async () => {
  await service.close()
  await system.stop()
  await second.drop()
})

const caller = { requestId: 'test' }
/** Only ends what hangs: a move takes 15 s, and several times as long on a busy machine. */
const waitMs = 300_000
const timeout = 900_000

async function newTenant(place: number): Promise<Tenant> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test', place })
  await admin.members.add.mutate({ workspaceId, userId: 'owner' })
  const credentials = await createKey({ ...system, workspaceId })
  const a = await createWallet({ admin, workspaceId }, { name: 'A', deposits: ['1000.00'] })
  const b = await createWallet({ admin, workspaceId }, { name: 'B' })
  return { ...credentials, a, b }
}

/** A transfer through one of the gateways. */
const pay = ({ a, b, ...credentials }: Tenant, bizId: string, gateway = 0) =>
  call({ ...credentials, baseUrl: system.gateways[gateway]!.url }, 'POST', createPath, {
    bizId,
    sourceWalletId: a,
    targetWalletId: b,
    amount: '0.01',
    currency: 'USD',
  })

/** Pays through both gateways until it is stopped, and repeats what was not answered with success. Returns what was acknowledged. */
function startLoad(tenant: Tenant) {
  const acknowledged: string[] = []
  const refusals: string[] = []
  let isStopped = false
  const loops = [0, 1].map(async gateway => {
    while (!isStopped) {
      const bizId = randomUUID()
      for (;;) {
        const { status, body, headers } = await pay(tenant, bizId, gateway)
        if (status === 200) break
        refusals.push(body.code)
        if (body.code === 'S002') expect(headers.get('retry-after')).toMatch(/^\d+$/)
        else expect(body.code).toBe('S003')
        await sleep(100)
      }
      acknowledged.push(bizId)
      // The service is to be interrupted by the move, not by the load.
      await sleep(100)
    }
  })
  return {
    acknowledged,
    refusals,
    async stop() {
      isStopped = true
      await Promise.all(loops)
    },
  }
}

const idOf = ({ workspaceId }: { workspaceId: string }) => `'${uuidFromId('workspace', workspaceId)}'`

/** The rows of the workspace in a place, by table. */
async function rowsIn(place: number, tenant: { workspaceId: string }): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {}
  for (const table of tables) {
    const column = table === 'workspace' ? 'id' : 'workspace_id'
    const found = await query(
      ownerUrls[place]!,
      `select (to_jsonb(t) - array['access_revision', ${table === 'audit' ? "'id'" : "''"}])::text as row from ${table} t
       where ${column} = ${idOf(tenant)} order by 1`,
    )
    rows[table] = found.map(({ row }) => row as string)
  }
  return rows
}
const tables = [
  'workspace',
  'member',
  'api_key',
  'webhook',
  'spending_limit',
  'wallet',
  'hold',
  'transfer',
  'journal',
  'audit',
] as const

async function expectSound(): Promise<void> {
  const report = await verifyLedger(system)
  expect(report.brokenRules).toEqual([])
  expect(report.ok).toBe(true)
}

/** Of all places, only this one has rows of the workspace. */
async function expectOnlyIn(place: number, tenant: { workspaceId: string }): Promise<void> {
  const other = await rowsIn(1 - place, tenant)
  expect(Object.values(other).flat()).toEqual([])
  expect((await rowsIn(place, tenant)).workspace).toHaveLength(1)
  expect(await system.admin.moves.find.query(tenant)).toMatchObject({ place })
}

async function bizIdsOf(tenant: Tenant): Promise<string[]> {
  const bizIds: string[] = []
  for (const url of ownerUrls) {
    const rows = await query(
      url,
      `select biz_id from transfer where workspace_id = ${idOf(tenant)} and type = 'TRANSFER'`,
    )
    bizIds.push(...rows.map(({ biz_id }) => biz_id as string))
  }
  return bizIds
}

const move = ({ workspaceId }: { workspaceId: string }, place: number) =>
  moveWorkspace(system.admin, { workspaceId, place, ownerUrls })

test(
  'a workspace moves under load, and back: nothing is lost or doubled, and readers of events and webhooks miss nothing',
  async () => {
    const tenant = await newTenant(0)
    const { workspaceId } = tenant
    const receiver = await startReceiver()
    const courier = await system.startCourier({ CORE_URL: system.cores.map(({ url }) => url).join(',') })
    const webhook = { workspaceId, caller, url: receiver.url, bizId: 'hook', types: [] }
    receiver.secrets.push((await service.webhooks.create.mutate(webhook)).secret!)
    const hold = { walletId: tenant.a, amount: '1.00', currency: 'USD' }
    for (const [bizId, expiresInSeconds] of [
      ['soon', 2],
      ['later', 3600],
    ] as const)
      await service.holds.create.mutate({ workspaceId, caller, hold: { ...hold, bizId, expiresInSeconds } })
    const frozen = await createWallet({ ...system, workspaceId }, { name: 'Frozen', deposits: ['5.00'] })
    await system.admin.wallets.changeStatus.mutate({ workspaceId, walletId: frozen, status: 'FROZEN' })
    await system.admin.limits.set.mutate({
      workspaceId,
      subject: { walletId: tenant.a },
      currency: 'USD',
      perDay: '900.00',
    })

    const read: number[] = []
    let isReading = true
    const reading = (async () => {
      while (isReading) {
        const after = read.at(-1) ?? 0
        const { status, body } = await call(tenant, 'GET', `/api/v1/event/query/events/${after}`)
        if (status === 200) read.push(...body.data.content.map(({ position }: { position: number }) => position))
        else expect(body.code).toBe('S002')
        await sleep(20)
      }
    })()

    const load = startLoad(tenant)
    try {
      await until('there are transfers', () => load.acknowledged.length > 20)
      const before = await rowsIn(0, tenant)
      const moved = await move(tenant, 1)
      expect(moved.stoppedMs).toBeGreaterThan(0)
      await expectOnlyIn(1, tenant)
      const after = await rowsIn(1, tenant)
      for (const table of ['transfer', 'journal', 'audit'] as const)
        expect(after[table]).toEqual(expect.arrayContaining(before[table]!))
      expect(after.member).toEqual(before.member)
      expect(after.api_key!.map(row => JSON.parse(row).mac)).toEqual(before.api_key!.map(row => JSON.parse(row).mac))
      const atMove = load.acknowledged.length
      await until('it goes on', () => load.acknowledged.length > atMove + 10)
      await move(tenant, 0)
      await expectOnlyIn(0, tenant)
      const atReturn = load.acknowledged.length
      await until('it goes on', () => load.acknowledged.length > atReturn + 10)
    } finally {
      await load.stop()
    }
    expect(load.refusals).toContain('S002')
    expect((await bizIdsOf(tenant)).sort()).toEqual(load.acknowledged.toSorted())

    const { body: status } = await call(tenant, 'GET', `/api/v1/hold/query/holds/soon`)
    expect(status.data.status).toBe('EXPIRED')
    expect((await call(tenant, 'GET', `/api/v1/hold/query/holds/later`)).body.data.status).toBe('OPEN')
    const [ledger] = await query(ownerUrls[0]!, `select position from ledger where workspace_id = ${idOf(tenant)}`)
    const last = Number(ledger!.position)
    await until('all events are read', () => read.at(-1)! >= last)
    isReading = false
    await reading
    expect(read).toEqual(read.map((_, index) => index + 1))
    // The webhook begins where it was created.
    const [first] = receiver.received
    await until('all events are delivered', () => receiver.received.some(({ event }) => event.position === last))
    const delivered = new Set(receiver.received.map(({ event }) => event.position))
    for (let position = first!.event.position; position <= last; position++) expect(delivered).toContain(position)
    expect(receiver.forged).toEqual([])
    await expectSound()
    const { entries } = await system.admin.audit.list.query({ workspaceId, limit: 500 })
    expect(entries.map(({ action }) => action).filter(action => action.startsWith('workspace.'))).toEqual([
      'workspace.arrive',
      'workspace.leave',
      'workspace.arrive',
      'workspace.leave',
      'workspace.create',
    ])
    for (const url of ownerUrls) {
      const ofPlace = await query(
        url,
        `select action from audit where workspace_id is null and target = '${workspaceId}' order by id`,
      )
      expect(ofPlace.map(({ action }) => action)).toEqual(
        url === ownerUrls[0] ? ['workspace.leave', 'workspace.move'] : ['workspace.move', 'workspace.leave'],
      )
    }
    await courier.stop()
    await receiver.stop()
  },
  timeout,
)

describe('a move that is interrupted goes on with the same command', () => {
  const environment = () => ({
    PATH: process.env.PATH,
    CORE_URL: system.coreUrl,
    CORE_TOKEN: system.adminToken,
    MIGRATION_DATABASE_URL: ownerUrls[0],
    MIGRATION_DATABASE_URLS: ownerUrls[1],
  })
  const commandFor = ({ workspaceId }: Tenant) => [
    ...[adminProgram, 'workspace', 'move', '--json', '--workspace', workspaceId],
    ...['--place', '1'],
  ]
  const run = async (tenant: Tenant) =>
    promisify(execFile)(process.execPath, commandFor(tenant), { env: environment() })

  /** Runs the command until the move is in a phase, and then what interrupts it. */
  async function interrupt(tenant: Tenant, phase: Move['phase'], by: (command: ChildProcess) => Promise<unknown>) {
    const command = spawn(process.execPath, commandFor(tenant), { env: environment(), stdio: 'ignore' })
    const ended = once(command, 'exit')
    const find = () => system.admin.moves.find.query(tenant).catch(() => null)
    await until(`the move is ${phase}`, async () => (await find())?.move?.phase === phase, waitMs)
    await by(command)
    await ended
  }

  const kill = async (command: ChildProcess) => command.kill('SIGKILL')

  async function expectMoved(tenant: Tenant, paid: string[]): Promise<void> {
    expect(JSON.parse((await run(tenant)).stdout)).toMatchObject({ workspaceId: tenant.workspaceId, place: 1 })
    await expectOnlyIn(1, tenant)
    const bizId = randomUUID()
    expect(await pay(tenant, bizId)).toMatchObject({ status: 200 })
    expect((await bizIdsOf(tenant)).sort()).toEqual([...paid, bizId].sort())
    await expectSound()
    // Once more, it finds that there is nothing to do.
    expect(JSON.parse((await run(tenant)).stdout)).toMatchObject({ place: 1, stoppedMs: null })
  }

  test(
    'the command is killed while it copies, while the workspace is stopped, and after it has arrived',
    async () => {
      const tenant = await newTenant(0)
      const paid = [randomUUID(), randomUUID(), randomUUID()]
      await pay(tenant, paid[0]!)
      await interrupt(tenant, 'COPYING', kill)
      expect(await pay(tenant, paid[1]!, 1)).toMatchObject({ status: 200 })
      await interrupt(tenant, 'STOPPED', kill)
      expect((await pay(tenant, paid[2]!)).body.code).toBe('S002')
      expect((await call(tenant, 'GET', `/api/v1/wallets/${tenant.b}`)).body.data.balance).toBe('0.02')
      await expectSound()
      await interrupt(tenant, 'ARRIVED', kill)
      expect(await pay(tenant, paid[2]!)).toMatchObject({ status: 200 })
      await expectSound()
      await expectMoved(tenant, paid)
    },
    timeout,
  )

  test(
    'core is killed, and every session of both databases is ended, while the workspace is stopped',
    async () => {
      const tenant = await newTenant(0)
      const paid = [randomUUID()]
      await pay(tenant, paid[0]!)
      await interrupt(tenant, 'STOPPED', async () => {
        for (const url of ownerUrls)
          await query(
            url,
            'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
          )
      })
      await interrupt(tenant, 'STOPPED', async () => {
        for (const core of system.cores) await core.kill('SIGKILL')
      })
      for (const core of system.cores.slice()) await system.startCore({ CORE_PORT: new URL(core.url).port })
      await until('core answers', () => system.admin.moves.find.query(tenant).catch(() => null))
      await expectMoved(tenant, paid)
    },
    timeout,
  )
})

test(
  'a move that has not arrived can be canceled, and the workspace can move later',
  async () => {
    const tenant = await newTenant(0)
    const { workspaceId } = tenant
    const paid = [randomUUID(), randomUUID(), randomUUID()]
    await pay(tenant, paid[0]!)
    await system.admin.moves.begin.mutate({ workspaceId, place: 1 })
    await cancelMove(system.admin, { workspaceId, ownerUrls })
    expect(await pay(tenant, paid[1]!)).toMatchObject({ status: 200 })
    await system.admin.moves.begin.mutate({ workspaceId, place: 1 })
    await system.admin.moves.stop.mutate({ workspaceId })
    await expect(system.admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'X' })).rejects.toMatchObject(
      {
        data: { appError: { code: 'S002' } },
      },
    )
    await expect(system.admin.members.add.mutate({ workspaceId, userId: 'x' })).rejects.toMatchObject({
      data: { appError: { code: 'S002' } },
    })
    await until('it may arrive', async () => {
      const { now, move } = await system.admin.moves.find.query({ workspaceId })
      return now >= move!.mayArriveAt!
    })
    // Nothing was copied.
    await expect(system.admin.moves.arrive.mutate({ workspaceId })).rejects.toThrow(
      'these tables differ: workspace, ledger',
    )
    await cancelMove(system.admin, { workspaceId, ownerUrls })
    expect(await pay(tenant, paid[2]!)).toMatchObject({ status: 200 })
    await expect(cancelMove(system.admin, { workspaceId, ownerUrls })).rejects.toThrow('does not move')
    await move(tenant, 1)
    await expectOnlyIn(1, tenant)
    expect((await bizIdsOf(tenant)).sort()).toEqual(paid.sort())
    await expectSound()
  },
  timeout,
)

/** Begins a move to the second place, and stops the workspace. Nothing is copied. */
async function stopMove({ workspaceId }: Tenant): Promise<void> {
  await system.admin.moves.begin.mutate({ workspaceId, place: 1 })
  await system.admin.moves.stop.mutate({ workspaceId })
}

const untilItMayArrive = (tenant: Tenant) =>
  until('it may arrive', async () => {
    const { now, move } = await system.admin.moves.find.query(tenant)
    return now >= move!.mayArriveAt!
  })

/**
 * With the password of the service in the second place. With the highest generation, so that core cannot write the next one if it has to be
 * higher, and so that cores look again where the workspace is.
 */
const overwriteMove = (tenant: Tenant) =>
  execute(
    second.serviceUrl,
    `update access_revision set revision = revision + 1;
     update workspace_move set generation = 9223372036854775807, revision = revision + 1, mac = '\\x00',
       access_revision = (select revision from access_revision)
     where workspace_id = ${idOf(tenant)}`,
  )

describe('with the password of the service in the place where a workspace goes', () => {
  test('a session that has the lock of the command is ended', async () => {
    const tenant = await newTenant(0)
    await stopMove(tenant)
    const attacker = await connect(second.serviceUrl)
    attacker.on('error', () => {})
    await attacker.query(
      `select pg_advisory_lock_shared(hashtextextended('move ${uuidFromId('workspace', tenant.workspaceId)}', 0))`,
    )
    await cancelMove(system.admin, { ...tenant, ownerUrls })
    expect(await pay(tenant, randomUUID())).toMatchObject({ status: 200 })
    await attacker.end().catch(() => {})
  })

  test('a copy that is not complete is not used because the row of the move was modified; the move can be canceled', async () => {
    const tenant = await newTenant(0)
    const paid = [randomUUID(), randomUUID()]
    await pay(tenant, paid[0]!)
    await stopMove(tenant)
    await overwriteMove(tenant)
    await untilItMayArrive(tenant)
    await expect(system.admin.moves.arrive.mutate(tenant)).rejects.toThrow('these tables differ')
    expect(await system.admin.moves.find.query(tenant)).toMatchObject({ place: 0, move: { phase: 'STOPPED' } })
    await expect(move(tenant, 1)).rejects.toThrow('was modified outside the service: cancel the move')
    await cancelMove(system.admin, { ...tenant, ownerUrls })
    expect(await pay(tenant, paid[1]!)).toMatchObject({ status: 200 })
    expect((await bizIdsOf(tenant)).sort()).toEqual(paid.sort())
    await expectOnlyIn(0, tenant)
    await expectSound()
  })

  test('a workspace that has arrived does not go back because the row of the move was modified', async () => {
    const tenant = await newTenant(0)
    await stopMove(tenant)
    const ofTenant = `from workspace_move t where workspace_id = ${idOf(tenant)}`
    const [leaving] = await query(ownerUrls[0]!, `select json_agg(t)::text as rows ${ofTenant}`)
    const [source, target] = [await connect(ownerUrls[0]!), await connect(ownerUrls[1]!)]
    const copier = new Copier(source, target, uuidFromId('workspace', tenant.workspaceId)!)
    await copier.copy(nothingCopied)
    await copier.finish()
    await untilItMayArrive(tenant)
    await system.admin.moves.arrive.mutate(tenant)
    // As if core had been killed before it wrote into the first place that the workspace has left.
    await source.query(
      `set session_replication_role = replica; delete ${ofTenant.replace(' t ', ' ')};
       insert into workspace_move select * from json_populate_recordset(null::workspace_move, '${leaving!.rows}')`,
    )
    await overwriteMove(tenant)
    await expect(system.admin.moves.cancel.mutate(tenant)).rejects.toThrow('has arrived, and the row of its move')
    // With the password of the service in the first place as well: nothing is posted to the ledger there.
    await execute(system.database.serviceUrl, `select change_ledger_status(${idOf(tenant)}, 'OPEN', null, '\\x00')`)
    for (const gateway of [0, 1]) expect((await pay(tenant, randomUUID(), gateway)).body.code).toBe('S002')
    expect(await bizIdsOf(tenant)).toEqual([])
    await Promise.all([source.end(), target.end()])
  })
})

test('a workspace that cannot move is refused with the reason', async () => {
  const halted = await newTenant(0)
  await query(
    ownerUrls[0]!,
    `update wallet set balance = balance + 1, revision = revision + 1 where workspace_id = ${idOf(halted)} and name = 'A'`,
  )
  expect((await pay(halted, randomUUID())).body.code).toBe('S002')
  await until('it is halted', async () => (await system.admin.ledger.halted.query()).total > 0)
  await expect(move(halted, 1)).rejects.toThrow('it is halted')
  await system.admin.workspaces.delete.mutate({ workspaceId: halted.workspaceId, force: true })
  await expect(move(halted, 1)).rejects.toThrow('it is deleted')

  const tenant = await newTenant(0)
  await expect(move(tenant, 2)).rejects.toThrow('There is no URL for place 2')
  await expect(system.admin.moves.begin.mutate({ ...tenant, place: 2 })).rejects.toThrow('There is no place 2')
  await expect(system.admin.moves.begin.mutate({ ...tenant, place: 0 })).rejects.toThrow('in place 0 already')
  await expect(system.admin.moves.stop.mutate(tenant)).rejects.toThrow('The move is not begun')
  const leftover = `insert into transfer select (jsonb_populate_record(t, '{"workspace_id": "${uuidFromId('workspace', tenant.workspaceId)}"}')).*
    from transfer t limit 1`
  await execute(ownerUrls[1]!, leftover)
  await expect(move(tenant, 1)).rejects.toThrow('Place 1 has rows of')
  await execute(
    ownerUrls[1]!,
    `set session_replication_role = replica; delete from transfer where workspace_id = ${idOf(tenant)}`,
  )
})

describe('what the owner of the tables of both places can do', () => {
  const copiedTables = ['workspace', 'ledger', 'wallet', 'member', 'api_key']

  /** Removes a copy from the second place. */
  const removeCopy = (tenant: Tenant) =>
    execute(
      ownerUrls[1]!,
      `set session_replication_role = replica; ${[...copiedTables, 'workspace_move']
        .map(table => `delete from ${table} where ${table === 'workspace' ? 'id' : 'workspace_id'} = ${idOf(tenant)}`)
        .join(';')}`,
    )

  /** Copies the rows of a workspace to the other place, as they are. */
  async function copyRows(from: number, to: number, tenant: Tenant): Promise<void> {
    for (const table of copiedTables) {
      const column = table === 'workspace' ? 'id' : 'workspace_id'
      const [found] = await query(
        ownerUrls[from]!,
        `select json_agg(t)::text as rows from ${table} t where ${column} = ${idOf(tenant)}`,
      )
      const rows = (found!.rows as string).replaceAll("'", "''")
      await execute(
        ownerUrls[to]!,
        `set session_replication_role = replica; delete from ${table} where ${column} = ${idOf(tenant)};
         insert into ${table} select * from json_populate_recordset(null::${table}, '${rows}')`,
      )
    }
  }

  test('a copy of a workspace that has never moved is not used, and keeps it from moving', async () => {
    const tenant = await newTenant(0)
    await copyRows(0, 1, tenant)
    // This core knows where the original is.
    await expect(move(tenant, 1)).rejects.toThrow('Place 1 has rows of')
    await pay(tenant, randomUUID())
    const core = createCoreClient({ url: (await system.startCore()).url, token: system.serviceToken })
    const { balance } = await core.wallets.get.query({ workspaceId: tenant.workspaceId, caller, walletId: tenant.b })
    expect(String(balance)).toBe('0.01')
    await core.close()
    await removeCopy(tenant)
  })

  test('a copy with the row of its last move is not taken for a workspace that has moved: the verification names it', async () => {
    const tenant = await newTenant(0)
    await stopMove(tenant)
    await cancelMove(system.admin, { ...tenant, ownerUrls })
    await copyRows(0, 1, tenant)
    await execute(ownerUrls[1]!, `delete from workspace_move where workspace_id = ${idOf(tenant)}`)
    const copied = await query(
      ownerUrls[0]!,
      `select json_agg(t)::text as rows from workspace_move t where workspace_id = ${idOf(tenant)}`,
    )
    await execute(
      ownerUrls[1]!,
      `set session_replication_role = replica;
       insert into workspace_move select * from json_populate_recordset(null::workspace_move, '${copied[0]!.rows}')`,
    )
    const { brokenRules } = await verifyLedger(system)
    expect(brokenRules.map(({ rule }) => rule)).toContain('workspace-place')
    await removeCopy(tenant)
  })

  test('earlier rows, put back where a workspace was, are not used: not even without the row that says that it has left', async () => {
    const tenant = await newTenant(0)
    await move(tenant, 1)
    const readWallet = ({ b, ...credentials }: Tenant) => call(credentials, 'GET', `/api/v1/wallets/${b}`)
    const moves = `from workspace_move t where workspace_id = ${idOf(tenant)}`
    const [kept] = await query(ownerUrls[1]!, `select json_agg(t)::text as rows ${moves}`)
    await overwriteMove(tenant)
    await until('it is unavailable', async () => (await readWallet(tenant)).body.code === 'S002')
    await execute(
      ownerUrls[1]!,
      `set session_replication_role = replica; delete ${moves.replace(' t ', ' ')};
       insert into workspace_move select * from json_populate_recordset(null::workspace_move, '${kept!.rows}')`,
    )
    await until('it is there again', async () => (await readWallet(tenant)).status === 200)
    await copyRows(1, 0, tenant)
    expect(await pay(tenant, randomUUID())).toMatchObject({ status: 200 })
    await execute(ownerUrls[0]!, `delete from workspace_move where workspace_id = ${idOf(tenant)}`)
    const core = createCoreClient({ url: (await system.startCore()).url, token: system.serviceToken })
    const { balance } = await core.wallets.get.query({ workspaceId: tenant.workspaceId, caller, walletId: tenant.b })
    expect(String(balance)).toBe('0.01')
    await core.close()
    // The copied row of a move names another place.
    const [found] = await query(
      ownerUrls[1]!,
      `select json_agg(t)::text as rows from workspace_move t where workspace_id = ${idOf(tenant)}`,
    )
    await execute(
      ownerUrls[0]!,
      `set session_replication_role = replica;
       insert into workspace_move select * from json_populate_recordset(null::workspace_move, '${found!.rows}')`,
    )
    expect(await pay(tenant, randomUUID())).toMatchObject({ status: 200 })
  })

  test('rows of the ledger cannot be removed or put back in time by the role of the service, nor by accident by their owner', async () => {
    const tenant = await newTenant(0)
    const refused = (url: string, sql: string) => expect(execute(url, sql)).rejects
    await refused(ownerUrls[0]!, `delete from transfer where workspace_id = ${idOf(tenant)}`).toThrow('immutable')
    const leaving = `insert into workspace_move values (${idOf(tenant)}, 9, 'LEFT', 0, 1, now(), 0, 1, '')`
    const { serviceUrl } = system.database
    const { workspaces } = await verifyLedger(system)
    await execute(serviceUrl, leaving)
    await refused(serviceUrl, `delete from transfer where workspace_id = ${idOf(tenant)}`).toThrow('permission denied')
    // Nobody but core can write one that counts, and the verification names this one.
    expect(await pay(tenant, randomUUID())).toMatchObject({ status: 200 })
    const report = await verifyLedger(system)
    expect(report.brokenRules.map(({ rule }) => rule)).toContain('move-mac')
    expect(report.workspaces).toBe(workspaces)
    await execute(ownerUrls[0]!, `delete from workspace_move where workspace_id = ${idOf(tenant)}`)
  })
})
