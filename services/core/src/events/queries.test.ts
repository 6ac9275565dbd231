import { randomUUID } from 'node:crypto'
import {
  Decimal,
  type Event,
  eventsOf,
  eventTypes,
  formatBalance,
  holdRecord,
  mintId,
} from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../cli/processes/random.ts'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { query } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'

/** The event log of a workspace: what each event says, pages, and readers that follow it while others post. */
const seed = chooseSeed()
console.log(`events: SEED=${seed}`)
const random = new Random(seed)

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const caller = { requestId: 'test' }
const admin = () => testCore.as('admin')
const service = () => testCore.as('service')

const newWorkspace = async () => (await admin().workspaces.create({ name: 'Test' })).workspaceId

async function newWallet(workspaceId: string, deposit?: string): Promise<string> {
  const { walletId } = await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  if (deposit) await admin().wallets.deposit({ workspaceId, walletId, amount: deposit, bizId: randomUUID() })
  return walletId
}

type Read = { after?: number | 'head'; size?: number; types?: Event['type'][] }

async function read(workspaceId: string, { after = 0, ...rest }: Read = {}) {
  const page = await service().events.read({ workspaceId, caller, after, ...rest })
  return { ...page, content: eventsOf(page) }
}

/** All events, read in pages. */
async function readAll(workspaceId: string, asked: Read = {}): Promise<Event[]> {
  const events: Event[] = []
  for (let after = 0; ; ) {
    const page = await read(workspaceId, { ...asked, after })
    events.push(...page.content)
    if (!page.more) return events
    after = page.last
  }
}

/** Decimals and dates as in a response. */
const asJson = (value: unknown) => JSON.parse(JSON.stringify(value))

describe('what an event says', () => {
  let workspaceId: string
  let a: string
  let b: string
  beforeAll(async () => {
    workspaceId = await newWorkspace()
    a = await newWallet(workspaceId, '100.00')
    b = await newWallet(workspaceId)
  })

  /** The events of a command, and what it returned. */
  async function eventsOf<Answer>(command: () => Promise<Answer>): Promise<{ answer: Answer; events: Event[] }> {
    const { last } = await read(workspaceId, { after: 'head' })
    const answer = await command()
    const { content } = await read(workspaceId, { after: last })
    expect(content.map(({ position }) => position)).toEqual(content.map((_, at) => last + 1 + at))
    for (const event of content) expect(event.workspaceId).toBe(workspaceId)
    return { answer, events: content }
  }

  const createHold = (amount: string, expiresInSeconds = 3600) => {
    const bizId = `hold-${mintId('event')}`
    const hold = {
      walletId: a,
      amount,
      currency: 'USD',
      expiresInSeconds,
      bizId,
      reference: 'invoice-1',
      remark: 'room',
    }
    return service().holds.create({ workspaceId, caller, hold })
  }
  const pay = (amount: string, more: object = {}) => {
    const order = { sourceWalletId: a, targetWalletId: b, amount, currency: 'USD', ...more }
    return service().transfers.create({ workspaceId, caller, order })
  }
  const balanceOf = async (walletId: string) => {
    const { sequence, balance, currency } = await service().wallets.balance({ workspaceId, walletId, caller })
    return { walletId, sequence, balanceAfter: formatBalance(balance, currency) }
  }

  test('transfer.completed has the order, and both balances after it', async () => {
    const more = { bizId: 'pay-1', reference: 'invoice-7', remark: 'for lunch' }
    const { answer, events } = await eventsOf(() => pay('10.50', more))
    const { reversedAmount: _, ...transfer } = asJson(answer)
    expect(events).toEqual([
      {
        eventId: transfer.transferId.replace('trf_', 'evt_'),
        position: expect.any(Number),
        type: 'transfer.completed',
        timestamp: transfer.createdAt,
        workspaceId,
        data: {
          transfer,
          balances: { source: await balanceOf(a), target: await balanceOf(b) },
          holdRemaining: null,
        },
      },
    ])
    expect(transfer).toMatchObject({ amount: '10.50', ...more })
  })

  test('an order in the log does not change when it is reversed; the reversal is an event of its own', async () => {
    const { answer: original, events: before } = await eventsOf(() => pay('4.00'))
    const reversal = { reversesTransferId: original.transferId, amount: '3.00', currency: 'USD', bizId: 'reversal-1' }
    const { events } = await eventsOf(() => service().transfers.reverse({ workspaceId, caller, reversal }))
    expect(events).toMatchObject([
      {
        type: 'transfer.completed',
        data: {
          transfer: { reversesTransferId: original.transferId, sourceWalletId: b, targetWalletId: a },
          balances: { source: await balanceOf(b), target: await balanceOf(a) },
        },
      },
    ])
    expect((await read(workspaceId, { after: before[0]!.position - 1, size: 1 })).content).toEqual(before)
  })

  test('the transfers of a batch have contiguous positions and its batchId', async () => {
    const transfers = ['batch-1', 'batch-2'].map(bizId => ({
      sourceWalletId: a,
      targetWalletId: b,
      amount: '1',
      currency: 'USD',
      bizId,
    }))
    const { answer, events } = await eventsOf(() =>
      service().transfers.batch({ workspaceId, caller, batch: { transfers } }),
    )
    const batchId = answer.transfers[0]!.transferId
    expect(events.map(({ data }) => data)).toMatchObject(
      answer.transfers.map(({ transferId }) => ({ transfer: { transferId, batchId } })),
    )
  })

  test('wallet.deposited and wallet.withdrawn have the receipt and the balance of the wallet', async () => {
    const funding = { workspaceId, walletId: a, amount: '5.00' }
    const deposit = await eventsOf(() => admin().wallets.deposit({ ...funding, bizId: 'deposit-1' }))
    expect(deposit.events).toMatchObject([{ type: 'wallet.deposited' }])
    expect(deposit.events[0]!.data).toEqual({
      funding: asJson(deposit.answer),
      balances: { target: await balanceOf(a) },
      holdRemaining: null,
    })
    const { holdId } = await createHold('6.00')
    const withdrawal = await eventsOf(() =>
      admin().wallets.withdraw({ ...funding, holdId, holdRemainder: 'KEEP', caller, bizId: randomUUID() }),
    )
    expect(withdrawal.events).toMatchObject([{ type: 'wallet.withdrawn', data: { funding: { holdId } } }])
    expect(withdrawal.events[0]!.data).toEqual({
      funding: asJson(withdrawal.answer),
      balances: { source: await balanceOf(a) },
      holdRemaining: '1.00',
    })
  })

  test('a hold is as the event left it', async () => {
    const created = await eventsOf(() => createHold('10.00'))
    const { answer: hold, events } = created
    expect(events).toMatchObject([{ type: 'hold.created', timestamp: asJson(hold.createdAt) }])
    expect(events[0]!.data).toEqual({ hold: holdRecord(hold) })

    const { holdId } = hold
    const draw = await eventsOf(() => pay('4.00', { holdId, holdRemainder: 'KEEP' }))
    expect(draw.events).toMatchObject([{ data: { transfer: { holdId }, holdRemaining: '6.00' } }])
    const released = await eventsOf(() => service().holds.release({ workspaceId, caller, holdId }))
    expect(released.events).toMatchObject([{ type: 'hold.released' }])
    expect(released.events[0]!.data).toEqual({ hold: holdRecord(released.answer) })
    expect(released.events[0]!.data).toMatchObject({
      hold: { status: 'RELEASED', capturedAmount: '4.00', remainingAmount: '0.00' },
    })
    // The first event still shows what the hold was.
    expect((await read(workspaceId, { after: events[0]!.position - 1, size: 1 })).content).toEqual(events)
  })

  test('the end of a hold by capture is in its transfer', async () => {
    const { holdId } = await createHold('10.00')
    const { events } = await eventsOf(() => pay('4.00', { holdId }))
    expect(events).toMatchObject([
      { type: 'transfer.completed', data: { transfer: { holdId }, holdRemaining: '0.00' } },
    ])
  })

  test('hold.expired has the hold as reads show it from its expiry on', async () => {
    const { holdId } = await createHold('1.00', 1)
    const expired = await until('the hold expires', async () =>
      (await readAll(workspaceId, { types: ['hold.expired'] })).find(
        ({ data }) => 'hold' in data && data.hold.holdId === holdId,
      ),
    )
    const hold = await service().holds.get({ workspaceId, caller, bizId: holdId })
    expect(hold).toMatchObject({ status: 'EXPIRED', updatedAt: hold.expiresAt })
    expect(expired.data).toEqual({ hold: holdRecord(hold) })
    expect(Date.parse(expired.timestamp)).toBeGreaterThanOrEqual(hold.expiresAt.getTime())
  })

  test('events of wallets say who changed what', async () => {
    await admin().members.add({ workspaceId, userId: 'owner' })
    const { apiKey } = await admin().apiKeys.create({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:manage'] })
    const gateway = testCore.as('gateway')
    const call = { workspaceId, caller: { ...caller, apiKey } }
    const created = await eventsOf(() => gateway.wallets.create({ ...call, name: 'C', currency: 'EUR', bizId: 'c' }))
    const { walletId } = created.answer
    const wallet = { walletId, bizId: 'c', currency: 'EUR' }
    expect(created.events).toMatchObject([{ type: 'wallet.created' }])
    expect(created.events[0]!.data).toEqual({ ...wallet, status: 'ACTIVE', by: 'WORKSPACE' })

    const changes = [
      [() => gateway.wallets.changeStatus({ ...call, walletId, status: 'FROZEN' }), 'frozen', 'FROZEN', 'WORKSPACE'],
      [() => admin().wallets.changeStatus({ workspaceId, walletId, status: 'FROZEN' }), 'frozen', 'FROZEN', 'OPERATOR'],
      [
        () => admin().wallets.changeStatus({ workspaceId, walletId, status: 'ACTIVE' }),
        'unfrozen',
        'ACTIVE',
        'OPERATOR',
      ],
      [() => gateway.wallets.changeStatus({ ...call, walletId, status: 'CLOSED' }), 'closed', 'CLOSED', 'WORKSPACE'],
    ] as const
    for (const [change, word, status, by] of changes) {
      const { answer, events } = await eventsOf(change)
      expect(events).toMatchObject([{ type: `wallet.${word}`, timestamp: asJson(answer.updatedAt) }])
      expect(events[0]!.data).toEqual({ ...wallet, status, by })
    }
    const unnamed = await eventsOf(() => newWallet(workspaceId))
    expect(unnamed.events.map(({ data }) => data)).toEqual([
      { walletId: unnamed.answer, bizId: null, currency: 'USD', status: 'ACTIVE', by: 'OPERATOR' },
    ])
  })
})

describe('pages', () => {
  let workspaceId: string
  let log: Event[]
  beforeAll(async () => {
    workspaceId = await newWorkspace()
    await postAtRandom(
      workspaceId,
      await Promise.all([newWallet(workspaceId, '900'), newWallet(workspaceId, '900')]),
      60,
    )
    log = (await read(workspaceId, { size: 500 })).content
  })

  /** The page as the whole log gives it. */
  function modelled({ after, size = 100, types = [] }: Read & { after: number }) {
    const matching = log.filter(
      ({ position, type }) => position > after && (types.length === 0 || types.includes(type)),
    )
    const content = matching.slice(0, size)
    const last = content.length === size ? content.at(-1)!.position : log.length
    const idAt = (position: number) => log[position - 1]?.eventId ?? null
    return { content, after, afterEventId: idAt(after), types, last, lastEventId: idAt(last), more: last < log.length }
  }

  test('the log has all events, with the positions 1 to n', async () => {
    const { last, more } = await read(workspaceId, { size: 500 })
    expect(log.map(({ position }) => position)).toEqual(log.map((_, at) => at + 1))
    expect({ last, more }).toEqual({ last: log.length, more: false })
    const [counted] = await query(
      testCore.database.ownerUrl,
      `select ((select count(*) from transfer) + (select count(*) from journal) - (
         select sum(position) from ledger where position <> $1))::int as events`,
      [log.length],
    )
    expect(counted).toEqual({ events: log.length })
    expect(new Set(log.map(({ eventId }) => eventId)).size).toBe(log.length)
  })

  test('a page is what the whole log gives: any cursor, size and types', async () => {
    for (let run = 0; run < 150; run++) {
      const types = random.chance(0.3) ? [] : eventTypes.filter(() => random.chance(0.3))
      const asked = { after: random.int(log.length + 1), size: random.pick([1, 2, 7, 100, 500]), types }
      expect(await read(workspaceId, asked), JSON.stringify(asked)).toEqual(modelled(asked))
    }
  })

  test('the page after the last event is empty, and begins and ends there', async () => {
    const at = { after: log.length, last: log.length }
    const { eventId } = log.at(-1)!
    expect(await read(workspaceId, { after: log.length })).toEqual({
      content: [],
      ...at,
      afterEventId: eventId,
      types: [],
      lastEventId: eventId,
      more: false,
    })
  })

  test('head is the end of the log', async () => {
    for (const types of [[], ['wallet.closed' as const]])
      expect(await read(workspaceId, { after: 'head', types })).toEqual({
        content: [],
        after: log.length,
        afterEventId: null,
        types,
        last: log.length,
        lastEventId: log.at(-1)!.eventId,
        more: false,
      })
  })

  test('an empty log begins and ends at 0', async () => {
    const empty = await newWorkspace()
    for (const after of [0, 'head'] as const)
      expect(await read(empty, { after })).toEqual({
        content: [],
        after: 0,
        afterEventId: null,
        types: [],
        last: 0,
        lastEventId: null,
        more: false,
      })
  })

  test('E001 for a cursor after the end, which says where the log ends', async () => {
    for (const after of [log.length + 1, Number.MAX_SAFE_INTEGER])
      for (const types of [[], ['hold.created' as const]])
        await expect(read(workspaceId, { after, types })).rejects.toMatchObject({
          cause: { code: 'E001', details: { position: log.length } },
        })
  })

  test('GA2032 for an unknown workspace', async () => {
    for (const strange of ['nonsense', mintId('workspace'), mintId('wallet')])
      await expect(read(strange)).rejects.toMatchObject({ cause: { code: 'GA2032' } })
  })
})

describe('readers that follow the log while others post', () => {
  test('see each event once, in order, without gaps; and filters see the same events', async () => {
    const workspaceId = await newWorkspace()
    const wallets = await Promise.all(Array.from({ length: 4 }, () => newWallet(workspaceId, '900')))
    let isPosting = true
    const posting = Promise.all([1, 2, 3, 4].map(() => postAtRandom(workspaceId, wallets, 30))).finally(() => {
      isPosting = false
    })
    const types = ['hold.created', 'wallet.deposited', 'transfer.completed'] as const

    async function follow(types: Event['type'][]): Promise<Event[]> {
      const seen: Event[] = []
      let after = 0
      let lastEventId: string | null = null
      for (let wasPosting = true; wasPosting; ) {
        // Read before the page, so that the last page is of the whole log.
        wasPosting = isPosting
        const page = await read(workspaceId, { after, size: random.pick([1, 10, 500]), types })
        expect(page.afterEventId).toBe(lastEventId)
        if (types.length === 0)
          expect(page.content.map(({ position }) => position)).toEqual(
            Array.from({ length: page.last - after }, (_, at) => after + at + 1),
          )
        seen.push(...page.content)
        after = page.last
        lastEventId = page.lastEventId
        wasPosting ||= page.more
      }
      return seen
    }
    const [all, some] = await Promise.all([follow([]), follow([...types]), posting])
    expect(all.length).toBeGreaterThan(120)
    expect(all).toEqual(await readAll(workspaceId))
    expect(some).toEqual(all.filter(({ type }) => types.includes(type as (typeof types)[number])))
    await expectSameBalances(workspaceId, all)
  })

  /** Applies the events to empty wallets. */
  async function expectSameBalances(workspaceId: string, events: Event[]): Promise<void> {
    const balances = new Map<string, { sequence: number; balance: Decimal }>()
    const holds = new Map<string, { walletId: string; remaining: Decimal }>()
    for (const { data } of events) {
      if ('hold' in data)
        holds.set(data.hold.holdId, {
          walletId: data.hold.walletId,
          remaining: new Decimal(data.hold.remainingAmount),
        })
      if (!('balances' in data)) continue
      const drawn = holds.get(('transfer' in data ? data.transfer : data.funding).holdId ?? '')
      if (drawn) drawn.remaining = new Decimal(data.holdRemaining!)
      for (const { walletId, sequence, balanceAfter } of Object.values(data.balances)) {
        expect(sequence).toBe((balances.get(walletId)?.sequence ?? 0) + 1)
        balances.set(walletId, { sequence, balance: new Decimal(balanceAfter) })
      }
    }
    for (const [walletId, { sequence, balance }] of balances) {
      const held = Decimal.sum(
        0,
        ...[...holds.values()].flatMap(hold => (hold.walletId === walletId ? hold.remaining : [])),
      )
      const read = await service().wallets.balance({ workspaceId, walletId, caller })
      expect(asJson(read)).toMatchObject(asJson({ walletId, sequence, balance, held, available: balance.minus(held) }))
    }
  }
})

/** Sends commands one after the other: orders, reversals, batches, holds, draws, releases, deposits and new wallets. */
async function postAtRandom(workspaceId: string, wallets: string[], commands: number): Promise<void> {
  const between = () => {
    const [sourceWalletId, targetWalletId] = random.shuffled(wallets)
    const bizId = `b-${mintId('event')}`
    return { sourceWalletId: sourceWalletId!, targetWalletId: targetWalletId!, amount: '1', currency: 'USD', bizId }
  }
  const call = { workspaceId, caller }
  for (let sent = 0; sent < commands; sent++) {
    const chosen = random.next()
    const order = between()
    const hold = {
      walletId: order.sourceWalletId,
      amount: '3',
      currency: 'USD',
      expiresInSeconds: 3600,
      bizId: order.bizId,
    }
    if (chosen < 0.4) {
      await service().transfers.create({ ...call, order })
    } else if (chosen < 0.5) {
      const reversal = { reversesTransferId: order.bizId, amount: '1', currency: 'USD', bizId: `${order.bizId}-r` }
      await service().transfers.batch({ ...call, batch: { transfers: [order, between(), reversal] } })
    } else if (chosen < 0.85) {
      const { holdId } = await service().holds.create({ ...call, hold })
      const holdRemainder = random.pick(['KEEP', 'RELEASE'] as const)
      if (chosen < 0.7) await service().transfers.create({ ...call, order: { ...order, holdId, holdRemainder } })
      else if (chosen < 0.8) await service().holds.release({ ...call, holdId })
    } else if (chosen < 0.95) {
      const funding = { workspaceId, walletId: order.sourceWalletId, amount: '2' }
      await (chosen < 0.9
        ? admin().wallets.deposit({ ...funding, bizId: randomUUID() })
        : admin().wallets.withdraw({ ...funding, bizId: randomUUID() }))
    } else {
      await newWallet(workspaceId)
    }
  }
}
