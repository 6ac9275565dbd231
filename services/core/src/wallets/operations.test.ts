import { randomUUID } from 'node:crypto'
import {
  type CreateWalletInput,
  idFromUuid,
  type Uuid,
  uuidFromId,
  type WalletStatus,
} from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, execute, query } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'
import { emptyJournalHead, type JournalEntry, journalMac } from '../ledger/chain/journal.ts'

// Each test has its own workspace. The role `service` acts as a client does, `admin` is an operator.
let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const caller = { requestId: 'request ?1', address: '203.0.113.9' }
const admin = () => testCore.as('admin')
const client = () => testCore.as('service')
const ownerUrl = () => testCore.database.ownerUrl
const newWorkspace = async () => (await admin().workspaces.create({ name: 'Test' })).workspaceId
const damage = (sql: string) => execute(ownerUrl(), `set session_replication_role = replica; ${sql}`)

type Given = Pick<CreateWalletInput, 'workspaceId'> & Partial<CreateWalletInput>
const create = (given: Given) =>
  client().wallets.create({ caller, currency: 'USD', name: 'Main ?', ...given, bizId: given.bizId ?? 'main' })
const createByOperator = (given: Given) => admin().wallets.create({ currency: 'USD', name: 'Main ?', ...given })

type Target = { workspaceId: string; walletId: string }
const change = ({ workspaceId, walletId }: Target, status: WalletStatus) =>
  client().wallets.changeStatus({ workspaceId, walletId, caller, status })

/** The code of the error, or 'ok'. */
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'ok',
    error => (error as { cause?: { code?: string } }).cause?.code ?? String(error),
  )

/** The journal of a workspace, after a check of its chain of MACs and of the head in the ledger. */
async function journalOf(workspaceId: string): Promise<JournalEntry[]> {
  const rows = (await query(
    ownerUrl(),
    `select j.workspace_id as "workspaceId", j.position::int, j.order_count::int as "orderCount", j.id, j.type,
       j.wallet_id as "walletId", j.hold_id as "holdId", j.captured, j.remaining, j.status, j.actor,
       j.request_id as "requestId", j.client_address as "clientAddress", j.created_at as "createdAt", j.mac,
       l.journal_head as head
     from journal j join ledger l using (workspace_id) where workspace_id = $1 order by position`,
    [uuidFromId('workspace', workspaceId)],
  )) as (JournalEntry & { mac: Buffer; head: Buffer })[]
  let previous: Buffer = emptyJournalHead
  for (const { mac, head: _, ...entry } of rows) {
    expect(journalMac(testCore.chainKey, entry, previous).equals(mac), entry.type).toBe(true)
    previous = mac
  }
  expect(rows.at(-1)?.head.equals(previous) ?? true).toBe(true)
  return rows
}

const eventsOf = async ({ workspaceId }: Pick<Target, 'workspaceId'>) =>
  (await journalOf(workspaceId)).map(({ position, type, status, actor }) => [position, type, status, actor])

/** The positions of all events, and that of the ledger. */
async function positionsOf(workspaceId: string): Promise<{ positions: number[]; last: number }> {
  const workspace = uuidFromId('workspace', workspaceId)
  const rows = await query(
    ownerUrl(),
    `select position::int from transfer where workspace_id = $1
     union all select position::int from journal where workspace_id = $1 order by 1`,
    [workspace],
  )
  const [ledger] = await query(ownerUrl(), 'select position::int from ledger where workspace_id = $1', [workspace])
  return { positions: rows.map(({ position }) => position as number), last: ledger!.position as number }
}

const actionsOf = async (target: string) =>
  (await admin().audit.list({ target, limit: 100 })).entries
    .toReversed()
    .map(({ actor, action, before, after }) => ({ actor, action, before, after }))

describe('a create', () => {
  test('makes an empty wallet with its bizId, an event and an audit entry; the hidden wallet has no event', async () => {
    const workspaceId = await newWorkspace()
    const wallet = await create({ workspaceId })
    expect(wallet).toMatchObject({ bizId: 'main', name: 'Main ?', currency: 'USD', status: 'ACTIVE' })
    expect(wallet.balance.isZero()).toBe(true)
    const { walletId, createdAt } = wallet
    expect(await client().wallets.get({ workspaceId, walletId, caller })).toEqual(wallet)
    expect((await client().wallets.list({ workspaceId, caller })).content).toEqual([wallet])
    expect(await journalOf(workspaceId)).toEqual([
      {
        workspaceId: uuidFromId('workspace', workspaceId),
        position: 1,
        orderCount: 0,
        id: expect.any(String),
        type: 'wallet.created',
        walletId: uuidFromId('wallet', walletId),
        holdId: null,
        captured: null,
        remaining: null,
        status: 'ACTIVE',
        actor: 'service:test',
        requestId: caller.requestId,
        clientAddress: caller.address,
        createdAt,
        mac: expect.any(Buffer),
        head: expect.any(Buffer),
      },
    ])
    const after = { currency: 'USD', name: 'Main ?', bizId: 'main' }
    expect(await actionsOf(walletId)).toEqual([{ actor: 'service:test', action: 'wallet.create', before: null, after }])
  })

  test('by an operator needs no bizId and no request ID', async () => {
    const workspaceId = await newWorkspace()
    const wallets = [await createByOperator({ workspaceId }), await createByOperator({ workspaceId })]
    expect(wallets.map(({ bizId }) => bizId)).toEqual([null, null])
    const named = await createByOperator({ workspaceId, bizId: 'named' })
    expect(await createByOperator({ workspaceId, bizId: 'named' })).toEqual(named)
    const [event, ...others] = await journalOf(workspaceId)
    expect(event).toMatchObject({ actor: 'admin:test', requestId: expect.stringMatching(/./), clientAddress: null })
    expect(others).toHaveLength(2)
  })

  test('is replayed if currency and name are equal, and answers the wallet as it is now; otherwise T005', async () => {
    const workspaceId = await newWorkspace()
    const wallet = { ...(await create({ workspaceId })), workspaceId }
    expect(await create({ workspaceId })).toEqual(await client().wallets.get({ ...wallet, caller }))
    await change(wallet, 'CLOSED')
    expect(await create({ workspaceId })).toMatchObject({ walletId: wallet.walletId, status: 'CLOSED' })
    for (const differing of [{ name: 'Other' }, { currency: 'EUR' }]) {
      const conflict = create({ workspaceId, ...differing })
      await expect(conflict).rejects.toMatchObject({ cause: { code: 'T005', details: { bizId: 'main' } } })
    }
    expect(await eventsOf(wallet)).toEqual([
      [1, 'wallet.created', 'ACTIVE', 'service:test'],
      [2, 'wallet.closed', 'CLOSED', 'service:test'],
    ])
  })

  test('shares its bizIds with no other workspace, and not with transfers', async () => {
    const [ours, theirs] = [await newWorkspace(), await newWorkspace()]
    const wallets = [await create({ workspaceId: ours }), await create({ workspaceId: theirs, name: 'Theirs' })]
    expect(wallets.map(({ bizId }) => bizId)).toEqual(['main', 'main'])
    const { walletId } = wallets[0]!
    const deposit = { workspaceId: ours, walletId, amount: '1.00', bizId: 'main' }
    expect((await admin().wallets.deposit(deposit)).bizId).toBe('main')
  })

  test('that is sent many times at once makes one wallet; of different ones, the first', async () => {
    const workspaceId = await newWorkspace()
    const same = await Promise.all(Array.from({ length: 8 }, () => create({ workspaceId })))
    expect(new Set(same.map(({ walletId }) => walletId)).size).toBe(1)
    const names = ['a', 'b', 'c', 'd']
    const codes = await Promise.all(names.map(name => codeOf(create({ workspaceId, name, bizId: 'raced' }))))
    expect(codes.sort()).toEqual(['T005', 'T005', 'T005', 'ok'])
    expect(await eventsOf({ workspaceId })).toHaveLength(2)
    expect((await client().wallets.list({ workspaceId, caller })).page.totalElements).toBe(2)
  })
})

describe('a change of status', () => {
  type State = 'ACTIVE' | 'FROZEN by client' | 'FROZEN by operator' | 'CLOSED'
  type Expected = Record<`${'client' | 'operator'} ${WalletStatus}`, string>

  /** What each side gets for each new status: the event that the change adds, 'none', or the code of the refusal. */
  const states: [State, money: boolean, Expected][] = [
    [
      'ACTIVE',
      false,
      {
        'client ACTIVE': 'none',
        'client FROZEN': 'wallet.frozen',
        'client CLOSED': 'wallet.closed',
        'operator ACTIVE': 'none',
        'operator FROZEN': 'wallet.frozen',
        'operator CLOSED': 'wallet.closed',
      },
    ],
    [
      'ACTIVE',
      true,
      {
        'client ACTIVE': 'none',
        'client FROZEN': 'wallet.frozen',
        'client CLOSED': 'W003',
        'operator ACTIVE': 'none',
        'operator FROZEN': 'wallet.frozen',
        'operator CLOSED': 'WALLET_HOLDS_MONEY',
      },
    ],
    [
      'FROZEN by client',
      false,
      {
        'client ACTIVE': 'wallet.unfrozen',
        'client FROZEN': 'none',
        'client CLOSED': 'wallet.closed',
        'operator ACTIVE': 'wallet.unfrozen',
        'operator FROZEN': 'wallet.frozen',
        'operator CLOSED': 'wallet.closed',
      },
    ],
    [
      'FROZEN by client',
      true,
      {
        'client ACTIVE': 'wallet.unfrozen',
        'client FROZEN': 'none',
        'client CLOSED': 'W003',
        'operator ACTIVE': 'wallet.unfrozen',
        'operator FROZEN': 'wallet.frozen',
        'operator CLOSED': 'WALLET_HOLDS_MONEY',
      },
    ],
    [
      'FROZEN by operator',
      false,
      {
        'client ACTIVE': 'W004',
        'client FROZEN': 'none',
        'client CLOSED': 'W004',
        'operator ACTIVE': 'wallet.unfrozen',
        'operator FROZEN': 'none',
        'operator CLOSED': 'wallet.closed',
      },
    ],
    [
      'FROZEN by operator',
      true,
      {
        'client ACTIVE': 'W004',
        'client FROZEN': 'none',
        'client CLOSED': 'W004',
        'operator ACTIVE': 'wallet.unfrozen',
        'operator FROZEN': 'none',
        'operator CLOSED': 'WALLET_HOLDS_MONEY',
      },
    ],
    [
      'CLOSED',
      false,
      {
        'client ACTIVE': 'W002',
        'client FROZEN': 'W002',
        'client CLOSED': 'none',
        'operator ACTIVE': 'NOT_ALLOWED',
        'operator FROZEN': 'NOT_ALLOWED',
        'operator CLOSED': 'none',
      },
    ],
  ]
  const cases = states.flatMap(([state, money, expected]) =>
    Object.entries(expected).map(([change, result]) => ({ state, money: money ? 'with' : 'without', change, result })),
  )

  async function newWallet(state: State, money: boolean): Promise<Target> {
    const workspaceId = await newWorkspace()
    const wallet = { workspaceId, walletId: (await create({ workspaceId })).walletId }
    if (money) await admin().wallets.deposit({ ...wallet, amount: '1.00', bizId: randomUUID() })
    if (state === 'FROZEN by operator') await admin().wallets.changeStatus({ ...wallet, status: 'FROZEN' })
    if (state === 'FROZEN by client') await change(wallet, 'FROZEN')
    if (state === 'CLOSED') await change(wallet, 'CLOSED')
    return wallet
  }

  const storedOf = async ({ walletId }: Target) =>
    (
      await query(ownerUrl(), 'select status, frozen_by from wallet where id = $1', [uuidFromId('wallet', walletId)])
    )[0]!

  test.each(cases)('$state $money money, $change: $result', async ({ state, money, change: asked, result }) => {
    const wallet = await newWallet(state, money === 'with')
    const [side, status] = asked.split(' ') as ['client' | 'operator', WalletStatus]
    const before = { stored: await storedOf(wallet), events: await eventsOf(wallet) }
    const actions = await actionsOf(wallet.walletId)
    const asOperator = () => admin().wallets.changeStatus({ ...wallet, status })
    const code = await codeOf(side === 'client' ? change(wallet, status) : asOperator())
    if (!result.startsWith('wallet.')) {
      expect(code).toBe(result === 'none' ? 'ok' : result)
      expect({ stored: await storedOf(wallet), events: await eventsOf(wallet) }).toEqual(before)
      expect(await actionsOf(wallet.walletId)).toEqual(actions)
      return
    }
    expect(code).toBe('ok')
    const frozenBy = status !== 'FROZEN' ? null : side === 'client' ? 'WORKSPACE' : 'OPERATOR'
    expect(await storedOf(wallet)).toEqual({ status, frozen_by: frozenBy })
    const { positions, last } = await positionsOf(wallet.workspaceId)
    expect(positions).toEqual(positions.map((_, at) => at + 1))
    expect(last).toBe(positions.length)
    const actor = side === 'client' ? 'service:test' : 'admin:test'
    expect((await eventsOf(wallet)).slice(before.events.length)).toEqual([[last, result, status, actor]])
    expect((await actionsOf(wallet.walletId)).at(-1)).toMatchObject({
      actor,
      before: { status: before.stored.status, frozenBy: before.stored.frozen_by },
      after: { status, frozenBy },
    })
  })

  test('W002 and the record name what they are about', async () => {
    const wallet = await newWallet('CLOSED', false)
    await expect(change(wallet, 'ACTIVE')).rejects.toMatchObject({
      cause: { code: 'W002', details: { field: 'walletId', status: 'CLOSED' } },
    })
    expect(await change(wallet, 'CLOSED')).toEqual(await client().wallets.get({ ...wallet, caller }))
  })

  test('an operator with the procedure of clients is an operator', async () => {
    const wallet = await newWallet('FROZEN by client', false)
    await admin().wallets.changeStatus({ ...wallet, caller, status: 'FROZEN' })
    expect(await storedOf(wallet)).toEqual({ status: 'FROZEN', frozen_by: 'OPERATOR' })
  })

  test('W001 for wallets that are absent, malformed, hidden or of another workspace', async () => {
    const { workspaceId } = await newWallet('ACTIVE', false)
    const theirs = await newWallet('ACTIVE', false)
    const [hidden] = await query(ownerUrl(), "select id from wallet where kind = 'EXTERNAL' and workspace_id = $1", [
      uuidFromId('workspace', workspaceId),
    ])
    const ids = [
      theirs.walletId,
      idFromUuid('wallet', hidden!.id as Uuid<'wallet'>),
      'wal_01h455vb4pex5vsknk084sn02q',
      '',
      '\0',
    ]
    for (const walletId of ids)
      for (const status of ['ACTIVE', 'FROZEN', 'CLOSED'] as const)
        expect(await codeOf(change({ workspaceId, walletId }, status)), walletId).toBe('W001')
    expect(await eventsOf(theirs)).toHaveLength(1)
  })

  test('a wallet with an open hold has money, so it cannot be closed', async () => {
    const wallet = await newWallet('ACTIVE', true)
    const hold = { walletId: wallet.walletId, amount: '1.00', currency: 'USD', expiresInSeconds: 60, bizId: 'hold' }
    await client().holds.create({ workspaceId: wallet.workspaceId, caller, hold })
    expect(await codeOf(change(wallet, 'CLOSED'))).toBe('W003')
    expect(await codeOf(admin().wallets.changeStatus({ ...wallet, status: 'CLOSED' }))).toBe('WALLET_HOLDS_MONEY')
  })

  test('many at once are done one after the other, among transfers', async () => {
    const from = await newWallet('ACTIVE', true)
    const { workspaceId } = from
    const to = { workspaceId, walletId: (await create({ workspaceId, bizId: 'to' })).walletId }
    const order = { sourceWalletId: from.walletId, targetWalletId: to.walletId, amount: '0.01', currency: 'USD' }
    const work: Promise<string>[] = []
    for (let round = 0; round < 5; round++) {
      work.push(codeOf(change(to, round % 2 === 0 ? 'FROZEN' : 'ACTIVE')))
      work.push(codeOf(client().transfers.create({ workspaceId, caller, order })))
      work.push(codeOf(create({ workspaceId, bizId: `also-${round % 3}` })))
    }
    for (const code of await Promise.all(work)) expect(['ok', 'W002']).toContain(code)
    const { positions, last } = await positionsOf(workspaceId)
    expect(positions).toEqual(positions.map((_, at) => at + 1))
    expect(last).toBe(positions.length)
    await journalOf(workspaceId)
  })
})

describe('in a workspace that takes no changes', () => {
  test('a client gets S002 while it is halted and GA2032 when it is deleted, except for replays', async () => {
    const workspaceId = await newWorkspace()
    const wallet = { workspaceId, walletId: (await create({ workspaceId })).walletId }
    const codes = async () => [
      await codeOf(create({ workspaceId, bizId: 'new' })),
      await codeOf(change(wallet, 'FROZEN')),
      await codeOf(change({ workspaceId, walletId: 'absent' }, 'FROZEN')),
      await codeOf(create({ workspaceId })),
      await codeOf(change(wallet, 'ACTIVE')),
    ]
    // With a genuine row: only the owner of the chain key can halt it like that.
    await execute(
      testCore.database.serviceUrl,
      `select change_ledger_status(workspace_id, 'HALTED', 'test', mac) from ledger
       where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
    )
    expect(await codes()).toEqual(['S002', 'S002', 'S002', 'ok', 'ok'])
    await admin().workspaces.delete({ workspaceId })
    expect(await codes()).toEqual(['GA2032', 'GA2032', 'GA2032', 'ok', 'ok'])
    expect(await codeOf(createByOperator({ workspaceId }))).toBe('NOT_FOUND')
    expect(await codeOf(create({ workspaceId: 'nonsense' }))).toBe('GA2032')
  })

  test.each([
    ['ledger', 'its ledger', "update ledger set order_count = 7 where workspace_id = '%workspace'"],
    ['wallet', 'wallet %walletId', "update wallet set name = 'Changed' where id = '%wallet'"],
  ])('a client that finds a modified row of a %s gets S002 and halts it', async (table, what, sql) => {
    const workspaceId = await newWorkspace()
    const wallet = { workspaceId, walletId: (await create({ workspaceId })).walletId }
    const ids = { workspace: uuidFromId('workspace', workspaceId)!, wallet: uuidFromId('wallet', wallet.walletId)! }
    await damage(sql.replace('%workspace', ids.workspace).replace('%wallet', ids.wallet))
    expect(await codeOf(change(wallet, 'FROZEN'))).toBe('S002')
    const reason = `the row of ${what.replace('%walletId', wallet.walletId)} was modified outside the service`
    const halted = (await admin().ledger.halted()).ledgers.find(each => each.workspaceId === workspaceId)
    expect(halted).toEqual({ workspaceId, reason })
    expect(await eventsOf({ workspaceId })).toHaveLength(1)
    expect(await codeOf(admin().wallets.changeStatus({ ...wallet, status: 'FROZEN' })), table).toBe('NOT_ALLOWED')
  })

  test('a wallet that was modified outside the service is not returned as the replay of a create', async () => {
    const workspaceId = await newWorkspace()
    const { walletId } = await create({ workspaceId })
    await damage(`update wallet set balance = 5 where id = '${uuidFromId('wallet', walletId)}'`)
    expect(await codeOf(create({ workspaceId }))).toBe('S002')
    // Nor while the workspace is halted.
    expect(await codeOf(create({ workspaceId }))).toBe('S002')
  })
})

test('changes that wait for a locked ledger leave connections for the reads of other workspaces', async () => {
  const [busy, other] = [await newWorkspace(), await newWorkspace()]
  const wallet = { workspaceId: other, walletId: (await create({ workspaceId: other })).walletId }
  const locker = await connect(ownerUrl())
  try {
    await locker.query(
      `begin; select from ledger where workspace_id = '${uuidFromId('workspace', busy)}' for no key update`,
    )
    const creates = Array.from({ length: 20 }, (_, at) => codeOf(create({ workspaceId: busy, bizId: `new-${at}` })))
    await until('a create waits for the ledger', async () => (await waitingReads()) > 0)
    expect(await codeOf(client().wallets.balance({ ...wallet, caller }))).toBe('ok')
    expect(await codeOf(change(wallet, 'FROZEN'))).toBe('ok')
    expect(await waitingReads()).toBeLessThan(2)
    await locker.query('commit')
    for (const code of await Promise.all(creates)) expect(['ok', 'S002']).toContain(code)
    const { positions, last } = await positionsOf(busy)
    expect(positions).toHaveLength(last)
  } finally {
    await locker.end()
  }
})

test('reads of a modified wallet that wait for a locked ledger leave connections for the reads of other workspaces', async () => {
  const [busy, other] = [await newWorkspace(), await newWorkspace()]
  const { walletId } = await create({ workspaceId: busy })
  const wallet = { workspaceId: other, walletId: (await create({ workspaceId: other })).walletId }
  await damage(`update wallet set balance = 5 where id = '${uuidFromId('wallet', walletId)}'`)
  const locker = await connect(ownerUrl())
  try {
    await locker.query(
      `begin; select from ledger where workspace_id = '${uuidFromId('workspace', busy)}' for no key update`,
    )
    const read = () => codeOf(client().wallets.balance({ workspaceId: busy, walletId, caller }))
    const reads = Array.from({ length: 50 }, read)
    await until('a read waits for the ledger', async () => (await waitingReads()) > 0)
    expect(await codeOf(client().wallets.balance({ ...wallet, caller }))).toBe('ok')
    expect(await waitingReads()).toBe(1)
    await locker.query('commit')
    expect(new Set(await Promise.all(reads))).toEqual(new Set(['S002']))
    const { ledgers } = await admin().ledger.halted()
    expect(ledgers.map(each => each.workspaceId)).toContain(busy)
  } finally {
    await locker.end()
  }
})

/** The number of connections for reads that wait for a lock. */
async function waitingReads(): Promise<number> {
  const rows = await query(
    ownerUrl(),
    `select from pg_stat_activity
     where datname = current_database() and application_name = 'core reads' and wait_event_type = 'Lock'`,
  )
  return rows.length
}

test("the service's role can add an event of a wallet only with a change that leads to its status", async () => {
  const workspaceId = await newWorkspace()
  await create({ workspaceId })
  const write = (type: string, position: number) =>
    execute(
      testCore.database.serviceUrl,
      `select change_wallet_status(w.workspace_id, w.id, 'FROZEN', 'OPERATOR', l.last_posted_at, w.mac, l.mac,
         jsonb_build_object('position', ${position}, 'id', gen_random_uuid(), 'type', '${type}', 'actor', 'a',
           'request_id', 'r', 'mac', '\\x01'))
       from wallet w join ledger l using (workspace_id)
       where w.kind = 'CUSTOMER' and workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
    )
  for (const [type, position] of [
    ['wallet.unfrozen', 2],
    ['wallet.created', 2],
    ['hold.created', 2],
    ['wallet.frozen', 3],
    ['wallet.frozen', 1],
  ] as const)
    await expect(write(type, position), `${type} ${position}`).rejects.toMatchObject({ code: '23001' })
  expect(await eventsOf({ workspaceId })).toHaveLength(1)
  await write('wallet.frozen', 2)
})
