import { randomUUID } from 'node:crypto'
import { type Hold, mintId, uuidFromId } from '@workspace-wallet/contract'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { signRows } from '../../../../test/setup/sign-rows.ts'
import { until } from '../../../../test/setup/until.ts'
import { findBalance, findWallet } from '../wallets/queries.ts'
import { findHold } from './queries.ts'

/** Reading a hold by its names, and what reads show of holds that have expired and are not written. */
let testCore: TestCore
let owner: pg.Client
let workspaceId: string
let walletId: string
const caller = { requestId: 'test' }
const service = () => testCore.as('service')

beforeAll(async () => {
  testCore = await openTestCore()
  owner = new pg.Client({ connectionString: testCore.database.ownerUrl })
  await owner.connect()
})
afterAll(async () => {
  await owner.end()
  await testCore.close()
})
beforeEach(async () => {
  workspaceId = (await testCore.as('admin').workspaces.create({ name: 'Test' })).workspaceId
  walletId = (await testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
})

function createHold(bizId: string, amount = '10.00') {
  const hold = { walletId, amount, currency: 'USD', expiresInSeconds: 3600, bizId, reference: 'invoice-1' }
  return service().holds.create({ workspaceId, caller, hold })
}

const get = (name: string, of = workspaceId) => service().holds.get({ workspaceId: of, caller, bizId: name })
const balance = () => service().wallets.balance({ workspaceId, walletId, caller })
const list = (filter: object) => service().holds.list({ workspaceId, walletId, caller, filter })

/** Lets holds expire, as if an hour had passed. Their ledger is halted, so that no sweep writes the expiry. */
async function expire(...holds: Hold[]): Promise<void> {
  const workspace = uuidFromId('workspace', workspaceId)
  await owner.query('begin; set local session_replication_role = replica')
  await owner.query(`update ledger set status = 'HALTED' where workspace_id = $1`, [workspace])
  await owner.query(
    `update hold set expires_at = created_at + interval '1 ms' where workspace_id = $1 and id = any ($2)`,
    [workspace, holds.map(({ holdId }) => uuidFromId('hold', holdId))],
  )
  await owner.query('update wallet set held_until = created_at where workspace_id = $1 and held > 0', [workspace])
  for (const table of ['hold', 'wallet'] as const)
    await signRows(owner, testCore.chainKey.export().toString('base64'), table, `workspace_id = '${workspace}'`)
  await owner.query('commit')
}

describe('a hold', () => {
  test('is found by its holdId and its bizId', async () => {
    const hold = await createHold('h')
    expect(hold).toMatchObject({ status: 'OPEN', amount: '10.00', reference: 'invoice-1', remark: null })
    expect(await get(hold.holdId)).toEqual(hold)
    expect(await get('h')).toEqual(hold)
  })

  test('is H001 if it is absent, malformed or of another workspace', async () => {
    const { holdId } = await createHold('h')
    const { workspaceId: other } = await testCore.as('admin').workspaces.create({ name: 'Other' })
    const refusal = { cause: { code: 'H001' } }
    for (const name of [
      'i',
      '',
      'H',
      'h\u0000',
      '"h"',
      holdId.toUpperCase(),
      `${holdId}0`,
      mintId('hold'),
      mintId('transfer'),
    ])
      await expect(get(name)).rejects.toMatchObject(refusal)
    for (const name of [holdId, 'h']) {
      await expect(get(name, other)).rejects.toMatchObject(refusal)
      await expect(get(name, mintId('workspace'))).rejects.toMatchObject(refusal)
    }
  })

  test('reads of one turn share a statement, and each finds its own', async () => {
    const first = await createHold('first')
    // A bizId can be the UUID of another hold.
    const second = await createHold(uuidFromId('hold', first.holdId)!)
    const found = await Promise.all(
      [first.holdId, second.holdId, 'first', second.bizId, 'none', first.holdId].map(name =>
        findHold(testCore.core, workspaceId, name),
      ),
    )
    expect(found).toEqual([first, second, first, second, null, first])
  })
})

describe('what is held', () => {
  test('is in the balance until the hold ends', async () => {
    const { updatedAt } = await balance()
    expect(await balance()).toMatchObject({ walletId, currency: 'USD', sequence: 1 })
    await createHold('h', '30.00')
    await createHold('i', '20.00')
    expect(amounts(await balance())).toEqual(['100.00', '50.00', '50.00'])
    await service().holds.release({ workspaceId, caller, holdId: 'h' })
    expect(amounts(await balance())).toEqual(['100.00', '20.00', '80.00'])
    expect(await balance()).toMatchObject({ sequence: 1, updatedAt })
  })

  test('is read without reading holds, unless one may have expired', async () => {
    await createHold('h', '30.00')
    expect(await planOfBalance()).not.toMatch(/ on hold/)
    await expire(await get('h'))
    expect(await planOfBalance()).toMatch(/Index Scan using hold_open on hold h \(actual rows=1/)
  })

  test('excludes what has expired, written or not', async () => {
    const due = await createHold('due', '30.00')
    const open = await createHold('open', '20.00')
    await expire(due)
    expect(amounts(await balance())).toEqual(['100.00', '20.00', '80.00'])
    await expire(open)
    expect(amounts(await balance())).toEqual(['100.00', '0.00', '100.00'])
  })

  test('is not answered if a hold that has expired was written outside the service', async () => {
    const hold = await createHold('due', '30.00')
    await createHold('open', '20.00')
    await expire(hold)
    const isDue = `workspace_id = $1 and biz_id = 'due'`
    for (const damage of [
      `update hold set amount = 40, remaining = 40 where ${isDue}`,
      `update hold set expires_at = created_at + interval '1 ms' where workspace_id = $1 and biz_id = 'open'`,
      `insert into hold select (jsonb_populate_record(h, '{"biz_id": "forged", "number": 9, "wallet_number": 9}'::jsonb
         || jsonb_build_object('id', gen_random_uuid()))).* from hold h where ${isDue}`,
    ]) {
      await owner.query('begin; set local session_replication_role = replica')
      await owner.query(damage, [uuidFromId('workspace', workspaceId)])
      const read = findBalance({ ...testCore.core, reads: owner }, workspaceId, walletId)
      await expect(read, damage).rejects.toMatchObject({ table: 'hold' })
      await owner.query('rollback')
    }
    expect(amounts(await balance())).toEqual(['100.00', '20.00', '80.00'])
  })

  test('is S002 while more holds are due than one read checks; the wallet itself is answered', async () => {
    const holds = await Promise.all(Array.from({ length: 251 }, (_, at) => createHold(`h${at}`, '0.01')))
    await expire(...holds)
    await expect(balance()).rejects.toMatchObject({ cause: { code: 'S002', details: { retryAfterSeconds: 1 } } })
    expect(await service().wallets.get({ workspaceId, walletId, caller })).toMatchObject({ walletId })
  })

  const amounts = (read: Awaited<ReturnType<typeof balance>>) =>
    [read.balance, read.held, read.available].map(amount => amount.toFixed(2))

  /** The plan of the statement that reads a balance, which reads wallets too. */
  async function planOfBalance(): Promise<string> {
    let plan = ''
    const explaining = {
      async query({ text, values, types }: pg.QueryConfig & { types: pg.CustomTypesConfig }) {
        const { rows } = await owner.query(`explain (analyze, costs off, timing off, buffers off) ${text}`, values)
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return owner.query({ text, values, types } as pg.QueryConfig)
      },
    } as unknown as pg.Pool
    const core = { ...testCore.core, reads: explaining }
    const [found] = await Promise.all([
      findBalance(core, workspaceId, walletId),
      findWallet(core, workspaceId, walletId),
    ])
    expect(found!.balance.toFixed()).toBe('100')
    return plan
  }
})

test('reads that wait for a locked ledger leave connections for the reads of other workspaces', async () => {
  const other = { workspaceId, walletId, caller }
  workspaceId = (await testCore.as('admin').workspaces.create({ name: 'Busy' })).workspaceId
  walletId = (await testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
  await expire(await createHold('h'))
  const locker = new pg.Client({ connectionString: testCore.database.ownerUrl })
  await locker.connect()
  try {
    await locker.query('begin')
    await locker.query('select from ledger where workspace_id = $1 for no key update', [
      uuidFromId('workspace', workspaceId),
    ])
    const waiting = async () => {
      const { rows } = await owner.query(
        `select from pg_stat_activity
         where datname = current_database() and application_name = 'core reads' and wait_event_type = 'Lock'`,
      )
      return rows.length
    }
    const read = async () => {
      const [hold, { held }] = await Promise.all([get('h'), balance()])
      return [hold.status, held.toFixed(2)]
    }
    const first = read()
    await until('a read waits for the ledger', async () => (await waiting()) > 0)
    const reads = Array.from({ length: 30 }, read)
    expect((await service().wallets.balance(other)).balance.toFixed(2)).toBe('100.00')
    expect(await waiting()).toBe(1)
    await locker.query('commit')
    for (const found of await Promise.all([first, ...reads])) expect(found).toEqual(['EXPIRED', '0.00'])
  } finally {
    await locker.end()
  }
})

test('wallets with many due holds are read one at a time, while the reads of other workspaces are answered', async () => {
  await expire(await createHold('few'))
  const other = { workspaceId, walletId, caller }
  workspaceId = (await testCore.as('admin').workspaces.create({ name: 'Busy' })).workspaceId
  const wallets: string[] = []
  const holds: Hold[] = []
  for (let count = 0; count < 4; count++) {
    walletId = (await testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
    wallets.push(walletId)
    await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
    for (let hold = 0; hold < 20; hold++) holds.push(await createHold(`h${count}-${hold}`, '1.00'))
  }
  await expire(...holds)

  /** Statements that may return hundreds of holds, of how many wallets each. They wait for the gate. */
  const gate = Promise.withResolvers<void>()
  const running: number[] = []
  let most = 0
  const { query } = pg.Client.prototype as { query: (...args: unknown[]) => unknown }
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const send = () => query.apply(this, args)
    const { text, values } = args[0] as pg.QueryConfig
    const [, limit] = /from hold h\b.*? limit (\d+)\)/s.exec(text) ?? []
    if (!(Number(limit) > 100)) return send()
    most = Math.max(most, running.push(String(values![0]).split(',').length))
    return gate.promise.then(send).finally(() => running.pop())
  } as never)
  try {
    const answers: string[] = []
    const read = async (of: string) => {
      const answer = service().wallets.balance({ workspaceId, walletId: of, caller })
      answers.push(
        await answer.then(
          ({ held }) => held.toFixed(),
          ({ cause }) => cause.code,
        ),
      )
    }
    const busy = wallets.map(read)
    await until('one of them reads its holds', () => running.length > 0)
    expect(running).toEqual([1])
    expect((await service().wallets.balance(other)).held.toFixed()).toBe('0')
    // A batch of reads is answered when all of its calls are.
    await until('the others are answered', () => answers.length === 3)
    expect(answers).toEqual(['S002', 'S002', 'S002'])
    expect(running).toEqual([1])
    gate.resolve()
    await Promise.all(busy)
    expect(answers.at(-1)).toBe('0')
    // Without another one in progress, they are answered.
    for (const each of wallets) await read(each)
    expect(answers.slice(4)).toEqual(['0', '0', '0', '0'])
    expect(most).toBe(1)
  } finally {
    gate.resolve()
    spy.mockRestore()
  }
})

describe('a hold that has expired and is not written', () => {
  test('is EXPIRED since it expired, and has nothing left', async () => {
    const { expiresAt: _, ...terms } = await createHold('h')
    await expire(await get('h'))
    const expired = await get('h')
    const expiresAt = new Date(terms.createdAt.getTime() + 1)
    expect(expired).toEqual({
      ...terms,
      status: 'EXPIRED',
      remainingAmount: expired.remainingAmount,
      expiresAt,
      updatedAt: expiresAt,
    })
    expect(expired.remainingAmount.toFixed()).toBe('0')
    const { rows } = await owner.query('select status from hold where id = $1', [uuidFromId('hold', terms.holdId)])
    expect(rows).toEqual([{ status: 'OPEN' }])
  })

  test('is in the lists of expired holds and not of open ones', async () => {
    const due = await createHold('due')
    const open = await createHold('open')
    await expire(due)
    const expired = await get('due')
    expect((await list({})).content).toEqual([open, expired])
    expect((await list({ status: 'OPEN' })).content).toEqual([open])
    expect((await list({ status: 'EXPIRED' })).content).toEqual([expired])
    for (const status of ['CAPTURED', 'RELEASED']) expect((await list({ status })).page.totalElements).toBe(0)
  })
})
