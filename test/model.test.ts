import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../tools/services/random.ts'
import { Books, textOf, type Verdict } from './model/books.ts'
import { type Event, type Found, History } from './model/history.ts'
import { Draw, type Operation } from './model/operations.ts'
import { type Answer, type ListedFlow, World } from './model/world.ts'
import type { System } from './setup/system.ts'
import { verifyLedger } from './setup/verify.ts'

// SEED=… repeats the operations of a run.
const seed = chooseSeed()
let system: System
beforeAll(async () => {
  console.log(`model: SEED=${seed}`)
  system = await World.start()
})
afterAll(() => system.stop())

test(`one client, answer by answer (seed ${seed})`, async () => {
  const world = await World.open(system)
  const draw = new Draw(new Random(seed))
  const books = new Books()
  const answered = new Map<number, Answer['data']>()
  const operations = [...draw.opening().flat(), ...Array.from({ length: 500 }, () => draw.operation())]
  const codes = new Set<string>()
  for (const [at, operation] of operations.entries()) {
    const answer = await world.do(operation)
    const verdict = judge(books, operation)
    codes.add(answer.code)
    expect(answer.code, `operation ${at}: ${JSON.stringify(operation)}`).toBe(verdict.code)
    if (!verdict.entry) continue
    // A replay is answered as the first time, whatever was sent since.
    const first = answered.get(verdict.entry.at)
    if (first) expect(answer.data).toEqual(first)
    answered.set(verdict.entry.at, answer.data)
    expect(answer.data).toMatchObject({ amount: verdict.entry.asked.amount })
  }
  // A run that met only a part of the rules would prove little.
  expect([...codes].sort()).toEqual(expect.arrayContaining(['2000', 'S012', 'T002', 'T003', 'T005', 'W001', 'W002']))

  for (const [wallet, { balance, currency, status, flows }] of books.wallets.entries()) {
    const walletId = await world.id(wallet)
    const shown = await world.get(`/api/v1/wallets/${walletId}`)
    expect(shown).toMatchObject({ balance: textOf(balance, currency), currency, status })
    const due = flows.map(({ entry, ...flow }, index) => ({
      ...flow,
      sequence: index + 1,
      currency,
      transferId: answered.get(entry.at)!.transferId,
      createdAt: answered.get(entry.at)!.createdAt,
    }))
    expect(await world.flows(wallet)).toMatchObject(due)
  }
  const orders = books.entries.flatMap(({ at, asked }) => (asked.kind === 'transfer' ? [answered.get(at)] : []))
  expect(await world.orders()).toEqual(orders)
  await world.close()
})

test(`many clients, through two gateways and two cores (seed ${seed})`, async () => {
  const world = await World.open(system)
  const draw = new Draw(new Random(seed + 1))
  const events: Event[] = []
  let clock = 0
  async function ask(operation: Operation): Promise<void> {
    const sent = ++clock
    const answer = await world.do(operation)
    events.push({ operation, answer, sent, answered: ++clock })
  }
  for (const step of draw.opening()) await Promise.all(step.map(ask))
  const plans = Array.from({ length: 12 }, () => Array.from({ length: 50 }, () => draw.step()))
  await Promise.all(
    plans.map(async plan => {
      for (const step of plan) await Promise.all(step.map(ask))
    }),
  )

  const wallets = events.filter(({ operation }) => operation.kind === 'open').length
  const each = Array.from({ length: wallets }, (_, wallet) => wallet)
  const walletIds = await Promise.all(each.map(wallet => world.id(wallet)))
  const balances = await Promise.all(walletIds.map(walletId => world.get(`/api/v1/wallets/${walletId}`)))
  const flows = []
  // One after the other: a workspace may not fill the turns at lists.
  for (const wallet of each) flows.push(await world.flows(wallet))
  const found = {
    flows,
    orders: await world.orders(),
    balances: balances as { balance: string; status: string }[],
  }
  const history = new History(events, walletIds, found)
  expect(history.judge()).toEqual([])
  expectNoticed(events, walletIds, found)
  // Enough was done, and enough refused, to mean something.
  expect(history.moved).toBeGreaterThan(100)
  const codes = new Set(events.map(({ answer }) => answer.code))
  expect([...codes].sort()).toEqual(expect.arrayContaining(['2000', 'S012', 'T002', 'T005', 'W001', 'W002']))
  await world.close()
})

test('after all of this the verifier finds the ledger sound', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

/** A judge who finds nothing proves nothing: each of these cannot have been, and has to be noticed. */
function expectNoticed(events: Event[], walletIds: string[], found: Found): void {
  const done = (event: Event) => event.operation.kind === 'transfer' && event.answer.code === '2000'
  const told = (event: Event) =>
    events.filter(({ answer }) => answer.data?.transferId === event.answer.data?.transferId)
  const one = events.find(event => done(event) && told(event).length === 1)!
  const twice = events.find(event => done(event) && told(event).length > 1)!
  const small = events.find(({ answer }) => answer.code === 'T002')!
  const busy = found.flows.findIndex(flows => flows.length > 3)
  const answering = (event: Event, answer: Answer) => events.map(each => (each === event ? { ...each, answer } : each))
  const flowsOfBusy = (change: (flows: ListedFlow[]) => ListedFlow[]) => ({
    ...found,
    flows: found.flows.map((flows, wallet) => (wallet === busy ? change(flows) : flows)),
  })
  const lies: Record<string, [Event[], Found]> = {
    'done, and refused': [answering(one, { code: 'T002', data: null }), found],
    'not done, and acknowledged': [
      answering(small, { code: '2000', data: { ...one.answer.data, transferId: 'trf_of_nobody' } }),
      found,
    ],
    'done twice under one name': [
      answering(twice, { code: '2000', data: { ...twice.answer.data, transferId: 'trf_second' } }),
      found,
    ],
    'refused for no reason': [answering(small, { code: 'W001', data: null }), found],
    'a flow that is missing': [events, flowsOfBusy(flows => flows.slice(0, -1))],
    'flows in another order': [events, flowsOfBusy(flows => flows.toReversed())],
    'a balance that does not follow': [
      events,
      flowsOfBusy(([first, ...rest]) => [{ ...first!, balanceAfter: '0.07' }, ...rest]),
    ],
    'an order that was changed': [
      events,
      { ...found, orders: found.orders.map((order, at) => (at === 0 ? { ...order, amount: '1.0' } : order)) },
    ],
    'an order that is missing': [events, { ...found, orders: found.orders.slice(1) }],
    'money from nowhere': [
      events,
      { ...found, balances: found.balances.map((each, at) => (at === busy ? { ...each, balance: '1.23' } : each)) },
    ],
  }
  for (const [lie, [toldEvents, shown]] of Object.entries(lies))
    expect(new History(toldEvents, walletIds, shown).judge(), lie).not.toEqual([])
}

function judge(books: Books, operation: Operation): Verdict {
  switch (operation.kind) {
    case 'open':
      books.open(operation.currency)
      return { code: '2000' }
    case 'transfer':
      return books.transfer(operation)
    case 'deposit':
    case 'withdraw':
      return books.fund(operation)
    default:
      return books.change(operation)
  }
}
