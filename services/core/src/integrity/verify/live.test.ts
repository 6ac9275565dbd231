import { TRPCClientError } from '@trpc/client'
import { mintId, type VerifyReport } from '@workspace-wallet/contract'
import { type CoreClient, CoreUnreachable, createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { retryUnavailable } from '../../../../../cli/processes/retry.ts'
import { query as queryDatabase } from '../../../../../test/setup/database.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'
import { createWallet, createWorkspace } from '../../../../../test/setup/workspaces.ts'

// Verifies a core in its own process through its API, while it posts.
let system: System
let admin: CoreClient
let service: CoreClient

beforeAll(async () => {
  system = await startSystem({ waitsForLocks: true, gateways: 0 })
  admin = system.admin
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
})
afterAll(async () => {
  await service.close()
  await system.stop()
})

const caller = { requestId: 'test' }

async function newWorkspace(wallets: number): Promise<{ workspaceId: string; wallets: string[] }> {
  const workspaceId = await createWorkspace({ admin })
  const walletIds: string[] = []
  for (let count = 0; count < wallets; count++) {
    walletIds.push(await createWallet({ admin, workspaceId }, { deposits: ['1000.00'] }))
  }
  return { workspaceId, wallets: walletIds }
}

function pay(workspaceId: string, sourceWalletId: string, targetWalletId: string, amount: string) {
  const order = { sourceWalletId, targetWalletId, amount, currency: 'USD' }
  return retryUnavailable(() => service.transfers.create.mutate({ workspaceId, caller, order }))
}

const verify = (client: CoreClient, workspaceId?: string) => verifyLedger(client, { workspaceId })

async function allOf<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = []
  for await (const event of events) all.push(event)
  return all
}

function query(sql: string): Promise<Record<string, unknown>[]> {
  return queryDatabase(system.database.ownerUrl, sql)
}

/** Locks a table during an action, so that every statement that reads it waits. */
async function withLocked(table: 'transfer' | 'wallet', action: () => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: system.database.ownerUrl })
  await client.connect()
  try {
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    await action()
  } finally {
    await client.end()
  }
}

function connectionsOf(name: string): Promise<Record<string, unknown>[]> {
  const { ownerUrl } = system.database
  return query(
    `select pid, wait_event_type as wait from pg_stat_activity
     where application_name = '${name}' and datname = '${nameOf(ownerUrl)}'`,
  )
}

function waitsForLock(name = 'core verify'): Promise<unknown> {
  return until(`${name} waits for the lock`, async () =>
    (await connectionsOf(name)).some(({ wait }) => wait === 'Lock'),
  )
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1)
}

/** The error that a call fails with. */
async function failureOf(call: Promise<unknown>): Promise<TRPCClientError<never>> {
  const outcome: unknown = await call.catch(error => error)
  expect(outcome).toBeInstanceOf(TRPCClientError)
  return outcome as TRPCClientError<never>
}

/** False for a core that still runs the previous verification. */
function isAdminError(error: TRPCClientError<never>): false {
  expect(appErrorOf(error)).toMatchObject({ kind: 'admin', code: 'NOT_ALLOWED' })
  return false
}

const appErrorOf = (error: TRPCClientError<never>) => (error.data as { appError?: unknown } | undefined)?.appError

test('verifying a live system while it posts reports no violations', async () => {
  const workspaces = [await newWorkspace(4), await newWorkspace(4), await newWorkspace(4)]
  let posted = 0
  let isPosting = true
  const posters = workspaces.flatMap(({ workspaceId, wallets }) =>
    Array.from({ length: 2 }, async (_, at) => {
      for (let turn = at; isPosting; turn++) {
        await pay(workspaceId, wallets[turn % 4]!, wallets[(turn + 1 + (turn % 3)) % 4]!, '0.01')
        posted++
      }
    }),
  )
  const administrator = (async () => {
    while (isPosting) {
      const { workspaceId, wallets } = await newWorkspace(1)
      const freeze = { workspaceId, walletId: wallets[0]!, status: 'FROZEN' as const }
      await retryUnavailable(() => admin.wallets.changeStatus.mutate(freeze))
    }
  })()

  const reports: VerifyReport[] = []
  for (let run = 0; run < 4; run++) {
    const before = posted
    reports.push(await verify(admin))
    await until('postings continue', () => posted > before)
  }
  isPosting = false
  await Promise.all([...posters, administrator])
  reports.push(await verify(admin))

  for (const report of reports) expect(report).toMatchObject({ ok: true, violations: [], brokenRules: [] })
  const flows = reports.map(report => report.flows)
  expect(flows).toEqual(flows.toSorted((a, b) => a - b))
  expect(reports.at(-1)!.transfers).toBeGreaterThan(posted)
  expect(reports.at(-1)!.flows).toBe(2 * reports.at(-1)!.transfers)
})

test('a verification reports its progress, then its result', async () => {
  const events = await allOf(await admin.ledger.verify.query({}))
  expect(events.at(-1)).toMatchObject({ kind: 'result', report: { ok: true } })
  for (const event of events.slice(0, -1)) {
    expect(event.kind).toBe('progress')
    expect(event.kind === 'progress' && event.flows <= event.totalFlows).toBe(true)
  }
})

test('verifies a single workspace; an unknown workspace is NOT_FOUND', async () => {
  const { workspaceId, wallets } = await newWorkspace(2)
  await pay(workspaceId, wallets[0]!, wallets[1]!, '1.00')
  expect(await verify(admin, workspaceId)).toEqual({
    ok: true,
    workspaces: 1,
    wallets: 3,
    transfers: 3,
    flows: 6,
    holds: 0,
    journalEntries: 2,
    violations: [],
    brokenRules: [],
    notes: [],
  })
  for (const unknown of [mintId('workspace'), 'nonsense'])
    expect(appErrorOf(await failureOf(verify(admin, unknown)))).toMatchObject({ kind: 'admin', code: 'NOT_FOUND' })
})

test('only an admin token may verify the ledger or take a checkpoint', async () => {
  expect((await failureOf(verify(service))).data).toMatchObject({ code: 'FORBIDDEN' })
  expect((await failureOf(service.ledger.checkpoint.query({}).then(allOf))).data).toMatchObject({ code: 'FORBIDDEN' })
})

test('a verification whose caller disconnects stops in the middle of a statement and closes its connection', async () => {
  await withLocked('transfer', async () => {
    const leave = new AbortController()
    const reading = admin.ledger.verify.query({}, { signal: leave.signal }).then(allOf)
    const stopped = expect(reading).rejects.toThrow('aborted')
    await waitsForLock()
    leave.abort()
    await stopped
    await until('its connection is closed', async () => (await connectionsOf('core verify')).length === 0)
  })
  await until('core is free for the next one', () => verify(admin).then(({ ok }) => ok, isAdminError))
})

test('a checkpoint whose caller disconnects stops in the middle of a statement and closes its connection', () =>
  withLocked('wallet', async () => {
    const leave = new AbortController()
    const reading = admin.ledger.checkpoint.query({}, { signal: leave.signal }).then(allOf)
    const stopped = expect(reading).rejects.toThrow('aborted')
    await waitsForLock('core checkpoint')
    leave.abort()
    await stopped
    await until('its connection is closed', async () => (await connectionsOf('core checkpoint')).length === 0)
  }))

test('a core runs one verification at a time and refuses a second one', async () => {
  let first: Promise<VerifyReport> | undefined
  await withLocked('transfer', async () => {
    first = verify(admin)
    await waitsForLock()
    expect(appErrorOf(await failureOf(verify(admin)))).toMatchObject({ kind: 'admin', code: 'NOT_ALLOWED' })
  })
  expect((await first)!.ok).toBe(true)
  expect((await verify(admin)).ok).toBe(true)
})

test('a verification that loses the database fails with S002 and can be run again', async () => {
  await withLocked('transfer', async () => {
    const failure = failureOf(verify(admin))
    await waitsForLock()
    await query(`select pg_terminate_backend(${(await connectionsOf('core verify'))[0]!.pid})`)
    expect(appErrorOf(await failure)).toMatchObject({ kind: 'domain', code: 'S002' })
  })
  expect((await verify(admin)).ok).toBe(true)
})

test('the caller of a killed core gets an error; with two cores, the next call goes to the other one', async () => {
  const doomed = await system.startCore()
  const client = createCoreClient({ url: [doomed.url, system.coreUrl], token: system.adminToken })
  await withLocked('transfer', async () => {
    const failure = failureOf(verify(client))
    await waitsForLock()
    await doomed.kill('SIGKILL')
    expect((await failure).cause).toBeInstanceOf(CoreUnreachable)
    await until('its connection is closed', async () => (await connectionsOf('core verify')).length === 0)
  })
  expect((await verify(client)).ok).toBe(true)
  await client.close()
})
