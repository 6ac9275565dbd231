import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../tools/services/random.ts'
import { Books, type Outcome, textOf } from './model/books.ts'
import { type Event, type Found, History } from './model/history.ts'
import { type Operation, OperationGenerator } from './model/operations.ts'
import { type Answer, type ListedFlow, World } from './model/world.ts'
import type { System } from './setup/system.ts'
import { verifyLedger } from './setup/verify.ts'

// The environment variable SEED repeats the operations of a run.
const seed = chooseSeed()
let system: System
beforeAll(async () => {
  console.log(`model: SEED=${seed}`)
  system = await World.start()
})
afterAll(() => system.stop())

test(`every answer to one client is that of the model (seed ${seed})`, async () => {
  const world = await World.open(system)
  const generator = new OperationGenerator(new Random(seed))
  const books = new Books()
  const answered = new Map<number, Answer['data']>()
  const operations = [...generator.opening().flat(), ...Array.from({ length: 500 }, () => generator.operation())]
  const codes = new Set<string>()
  for (const [at, operation] of operations.entries()) {
    const answer = await world.run(operation)
    const expected = apply(books, operation)
    codes.add(answer.code)
    expect(answer.code, `operation ${at}: ${JSON.stringify(operation)}`).toBe(expected.code)
    if (!expected.entry) continue
    // A replay gets the first answer, whatever happened since.
    const first = answered.get(expected.entry.at)
    if (first) expect(answer.data).toEqual(first)
    answered.set(expected.entry.at, answer.data)
    expect(answer.data).toMatchObject({ amount: expected.entry.request.amount })
  }
  // The run has covered these rules.
  expect([...codes].sort()).toEqual(expect.arrayContaining(['2000', 'S012', 'T002', 'T003', 'T005', 'W001', 'W002']))

  for (const [wallet, { balance, currency, status, flows }] of books.wallets.entries()) {
    const walletId = await world.id(wallet)
    const shown = await world.get(`/api/v1/wallets/${walletId}`)
    expect(shown).toMatchObject({ balance: textOf(balance, currency), currency, status })
    const expected = flows.map(({ entry, ...flow }, index) => ({
      ...flow,
      sequence: index + 1,
      currency,
      transferId: answered.get(entry.at)!.transferId,
      createdAt: answered.get(entry.at)!.createdAt,
    }))
    expect(await world.flows(wallet)).toMatchObject(expected)
  }
  const orders = books.entries.flatMap(({ at, request }) => (request.kind === 'transfer' ? [answered.get(at)] : []))
  expect(await world.orders()).toEqual(orders)
  await world.close()
})

test(`all answers to many clients of two gateways and two cores have one valid order (seed ${seed})`, async () => {
  const world = await World.open(system)
  const generator = new OperationGenerator(new Random(seed + 1))
  const events: Event[] = []
  let clock = 0
  async function send(operation: Operation): Promise<void> {
    const sent = ++clock
    const answer = await world.run(operation)
    events.push({ operation, answer, sent, answered: ++clock })
  }
  for (const step of generator.opening()) await Promise.all(step.map(send))
  const plans = Array.from({ length: 12 }, () => Array.from({ length: 50 }, () => generator.step()))
  await Promise.all(
    plans.map(async plan => {
      for (const step of plan) await Promise.all(step.map(send))
    }),
  )

  const wallets = events.filter(({ operation }) => operation.kind === 'open').length
  const each = Array.from({ length: wallets }, (_, wallet) => wallet)
  const walletIds = await Promise.all(each.map(wallet => world.id(wallet)))
  const balances = await Promise.all(walletIds.map(walletId => world.get(`/api/v1/wallets/${walletId}`)))
  const flows = []
  // One after the other: the number of concurrent lists of a workspace is limited.
  for (const wallet of each) flows.push(await world.flows(wallet))
  const found = {
    flows,
    orders: await world.orders(),
    balances: balances as { balance: string; status: string }[],
  }
  const history = new History(events, walletIds, found)
  expect(history.check()).toEqual([])
  expectDetected(events, walletIds, found)
  // The run has covered enough operations and rules.
  expect(history.moved).toBeGreaterThan(100)
  const codes = new Set(events.map(({ answer }) => answer.code))
  expect([...codes].sort()).toEqual(expect.arrayContaining(['2000', 'S012', 'T002', 'T005', 'W001', 'W002']))
  await world.close()
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

/** The check detects each of these contradictions: otherwise, finding none would prove nothing. */
function expectDetected(events: Event[], walletIds: string[], found: Found): void {
  const done = (event: Event) => event.operation.kind === 'transfer' && event.answer.code === '2000'
  const sameTransfer = (event: Event) =>
    events.filter(({ answer }) => answer.data?.transferId === event.answer.data?.transferId)
  const one = events.find(event => done(event) && sameTransfer(event).length === 1)!
  const twice = events.find(event => done(event) && sameTransfer(event).length > 1)!
  const overdrawn = events.find(({ answer }) => answer.code === 'T002')!
  const busy = found.flows.findIndex(flows => flows.length > 3)
  const answering = (event: Event, answer: Answer) => events.map(each => (each === event ? { ...each, answer } : each))
  const flowsOfBusy = (change: (flows: ListedFlow[]) => ListedFlow[]) => ({
    ...found,
    flows: found.flows.map((flows, wallet) => (wallet === busy ? change(flows) : flows)),
  })
  const contradictions: Record<string, [Event[], Found]> = {
    'a transfer that was made and rejected': [answering(one, { code: 'T002', data: null }), found],
    'an acknowledged transfer that was not made': [
      answering(overdrawn, { code: '2000', data: { ...one.answer.data, transferId: 'trf_of_nobody' } }),
      found,
    ],
    'two transfers with one bizId': [
      answering(twice, { code: '2000', data: { ...twice.answer.data, transferId: 'trf_second' } }),
      found,
    ],
    'a rejection without a reason': [answering(overdrawn, { code: 'W001', data: null }), found],
    'a missing flow': [events, flowsOfBusy(flows => flows.slice(0, -1))],
    'flows in another order': [events, flowsOfBusy(flows => flows.toReversed())],
    'a wrong balance': [events, flowsOfBusy(([first, ...rest]) => [{ ...first!, balanceAfter: '0.07' }, ...rest])],
    'a changed order': [
      events,
      { ...found, orders: found.orders.map((order, at) => (at === 0 ? { ...order, amount: '1.0' } : order)) },
    ],
    'a missing order': [events, { ...found, orders: found.orders.slice(1) }],
    'money without a deposit': [
      events,
      { ...found, balances: found.balances.map((each, at) => (at === busy ? { ...each, balance: '1.23' } : each)) },
    ],
  }
  for (const [name, [changedEvents, changedFound]] of Object.entries(contradictions))
    expect(new History(changedEvents, walletIds, changedFound).check(), name).not.toEqual([])
}

/** The expected outcome of an operation, which it applies to the model. */
function apply(books: Books, operation: Operation): Outcome {
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
