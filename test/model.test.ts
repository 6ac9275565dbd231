import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { examples } from './model/examples.ts'
import { type Exchange, type Found, History } from './model/history.ts'
import { OperationGenerator, type Step } from './model/operations.ts'
import type { Answer, PastRead, Request } from './model/requests.ts'
import { type LoggedEvent, World } from './model/world.ts'
import type { System } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

// The environment variable SEED repeats the requests of a run.
const seed = chooseSeed()
/** How many contradictions are shown. */
const shown = 5
let system: System
beforeAll(async () => {
  console.log(`model: SEED=${seed}`)
  system = await World.start()
})
afterAll(() => system.stop())

test(`every answer to one client is that of the model (seed ${seed})`, async () => {
  const world = await World.open(system)
  const generator = new OperationGenerator(new Random(seed))
  const recorder = new Recorder(world)
  await recorder.open(generator)
  for (let half = 0; half < 2; half++) {
    for (let count = 0; count < 300; count++) await recorder.send([generator.request()])
    await recorder.readPast(generator)
  }
  const found = await recorder.findAll()
  expect(new History(recorder.exchanges, found).check().slice(0, shown)).toEqual([])
  await world.close()
})

test(`all answers to many clients of two gateways and two cores have one valid order (seed ${seed})`, async () => {
  const world = await World.open(system)
  const generator = new OperationGenerator(new Random(seed + 1))
  const recorder = new Recorder(world)
  await recorder.open(generator)
  const tail = new Tail(world)
  for (let half = 0; half < 2; half++) {
    tail.start()
    // Round by round, so that clients use what others make at about the same time.
    const rounds = Array.from({ length: 30 }, () => Array.from({ length: 12 }, () => generator.step()))
    await Promise.all(
      rounds[0]!.map(async (_, client) => {
        for (const round of rounds) await recorder.send(round[client]!)
      }),
    )
    await tail.stop(await world.head())
    await recorder.readPast(generator)
  }
  const found = await recorder.findAll()
  tail.start()
  expect(await tail.stop(found.log.length)).toEqual(found.log)
  expect(new History(recorder.exchanges, found).check().slice(0, shown)).toEqual([])
  expectDetected(recorder.exchanges, found)

  const types = Map.groupBy(found.log, ({ type }) => type)
  expect([...types.keys()].sort()).toEqual(eventTypes)
  for (const [type, events] of types) expect(await world.events(type)).toEqual(events)
  await world.close()
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

/** All types. The examples have each of them. */
const eventTypes = [
  'hold.created',
  'hold.expired',
  'hold.released',
  'transfer.completed',
  'wallet.closed',
  'wallet.created',
  'wallet.deposited',
  'wallet.frozen',
  'wallet.unfrozen',
  'wallet.withdrawn',
]

/** Sends requests, and records when and how they were answered. */
class Recorder {
  readonly exchanges: Exchange[] = []
  readonly #world: World
  readonly #pastReads: PastRead[] = []
  #tick = 0

  constructor(world: World) {
    this.#world = world
  }

  async send(step: Step): Promise<void> {
    await Promise.all(step.map(async request => this.#send(await this.#world.resolve(request))))
  }

  /** Creates wallets, and has each rule applied once. */
  async open(generator: OperationGenerator): Promise<void> {
    for (const [request] of generator.opening()) await this.#sendUntilAnswered(request!)
    const codes: string[] = []
    for (const [, request] of examples) codes.push(await this.#sendUntilAnswered(request))
    expect(codes).toEqual(examples.map(([code]) => code))
  }

  /** Sends a request again after S002: it was not carried out. Returns the code of the answer. */
  #sendUntilAnswered(request: Request): Promise<string> {
    return until('another answer than S002', async () => {
      await this.send([request])
      const { code } = this.exchanges.at(-1)!.answer
      return code !== 'S002' && code
    })
  }

  /** Reads random past balances and statements up to now, and again what was read before. */
  async readPast(generator: OperationGenerator): Promise<void> {
    const times = this.exchanges.flatMap(({ answer: { data } }) =>
      typeof data?.createdAt === 'string' ? [Date.parse(data.createdAt)] : [],
    )
    const [from, to] = [Math.min(...times), Math.max(...times)].map(time => new Date(time).toISOString()) as [
      string,
      string,
    ]
    this.#pastReads.push(await this.#world.resolve({ kind: 'read', what: 'statement', id: 'Wallet 0', from, to }))
    for (let count = 0; count < 40; count++) this.#pastReads.push(await this.#world.resolve(generator.pastRead(times)))
    // One after the other: the number of concurrent lists of a workspace is limited.
    await this.#world.readAnHourLater(async () => {
      for (const read of this.#pastReads) await this.#send(read)
    })
  }

  async #send(request: Request): Promise<void> {
    const sent = this.#now()
    const answer = await this.#world.send(request)
    this.exchanges.push({ request, answer, sent, answered: this.#now() })
  }

  /** Reads everything, after all holds of a few seconds have expired. Records the reads too. */
  async findAll(): Promise<Found> {
    const world = this.#world
    const isShort = ({ request, answer }: Exchange) =>
      request.kind === 'hold' && request.expiresInSeconds < 60 && answer.code === '2000'
    const short = new Set(this.exchanges.filter(isShort).map(({ answer }) => answer.data!.holdId))
    await until('all short holds have ended', async () => {
      const open = await world.list('/api/v1/hold/query/holds?status=OPEN')
      return !open.some(({ holdId }) => short.has(holdId)) && (await world.dueHolds()) === 0
    })
    // One after the other: the number of concurrent lists of a workspace is limited.
    const holds = await world.list('/api/v1/hold/query/holds')
    const orders = await world.list('/api/v1/transfer/query/orders')
    const wallets = await world.list('/api/v1/wallets')
    const flows: Found['flows'] = new Map()
    for (const { walletId } of wallets)
      flows.set(String(walletId), await world.list(`/api/v1/wallets/${walletId}/flows`))
    for (const { walletId } of wallets)
      for (const what of ['wallet', 'balance'] as const) await this.#send({ kind: 'read', what, id: String(walletId) })
    for (const { holdId } of holds) await this.#send({ kind: 'read', what: 'hold', id: String(holdId) })
    for (const { bizId } of orders) await this.#send({ kind: 'read', what: 'receipt', id: String(bizId) })
    const [receiptKeys, macs] = [await world.receiptKeys(), await world.macs()]
    return { log: await world.events(), orders, flows, receiptKeys, macs }
  }

  #now() {
    return { time: Date.now(), tick: ++this.#tick }
  }
}

/** Reads the event log while it grows. */
class Tail {
  readonly #world: World
  readonly #events: LoggedEvent[] = []
  #done = Promise.resolve()
  #end = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Continues after the last event. */
  start(): void {
    this.#end = Number.POSITIVE_INFINITY
    this.#done = this.#follow()
  }

  /** All events up to a position. */
  async stop(end: number): Promise<LoggedEvent[]> {
    this.#end = end
    await this.#done
    return this.#events
  }

  async #follow(): Promise<void> {
    while (this.#events.length < this.#end) {
      const after = this.#events.length
      this.#events.push(...(await this.#world.page(after, 1 + (after % 20))).content)
    }
  }
}

/** The check detects each of these contradictions: otherwise, finding none would prove nothing. */
function expectDetected(exchanges: Exchange[], found: Found): void {
  const answeredWith = (code: string, kind?: Request['kind']) =>
    exchanges.find(({ request, answer }) => answer.code === code && (!kind || request.kind === kind))!
  const answering = (exchange: Exchange, answer: Partial<Answer>) =>
    exchanges.map(each => (each === exchange ? { ...each, answer: { ...each.answer, ...answer } } : each))
  const data = (exchange: Exchange, change: object) =>
    answering(exchange, { data: { ...exchange.answer.data, ...change } })
  const read = (what: 'statement' | 'receipt') =>
    exchanges.find(({ request, answer }) => request.kind === 'read' && request.what === what && answer.data)!
  const first = (type: string) => found.log.findIndex(event => event.type === type)
  const logWith = (...events: [at: number, event: LoggedEvent][]) => ({
    ...found,
    log: found.log.map((event, at) => events.find(each => each[0] === at)?.[1] ?? event),
  })
  const done = answeredWith('2000', 'transfer')
  const batch = answeredWith('2000', 'batch')
  const held = answeredWith('2000', 'hold')
  const statement = read('statement')
  const receipt = read('receipt')
  const [header, payload, signature] = (receipt.answer.data!.receipt as string).split('.') as [string, string, string]
  const receiptOf = (change: (claims: string) => string) => {
    const changed = change(Buffer.from(payload, 'base64url').toString())
    return data(receipt, { receipt: [header, Buffer.from(changed).toString('base64url'), signature].join('.') })
  }
  const expired = first('hold.expired')
  const moved = first('transfer.completed')
  const [walletId, flows] = [...found.flows].find(([, each]) => each.length > 3)!
  const flowsChanged = (change: Found['flows'] extends Map<string, infer Flows> ? (flows: Flows) => Flows : never) => ({
    ...found,
    flows: new Map(found.flows).set(walletId, change(flows)),
  })
  const contradictions: Record<string, [Exchange[], Found]> = {
    'a transfer that was made and rejected': [answering(done, { code: 'T002', data: null }), found],
    'an acknowledged transfer that was not made': [
      answering(answeredWith('T002', 'transfer'), {
        code: '2000',
        data: { ...done.answer.data, transferId: 'trf_of_nobody' },
      }),
      found,
    ],
    'a second transfer under a bizId': [data(done, { transferId: 'trf_second' }), found],
    'a rejection by a limit that is not reached': [answering(answeredWith('T003'), { code: 'T008' }), found],
    'a rejection without a reason': [answering(answeredWith('T002'), { code: 'H003' }), found],
    'another item of a batch': [answering(answeredWith('T002', 'batch'), { index: 50 }), found],
    'an order that was reversed before': [data(done, { reversedAmount: '0.07' }), found],
    'a part of a batch': [answering(batch, { data: { transfers: [] } }), found],
    'a hold of another amount': [data(held, { amount: '0.07' }), found],
    'a missing event': [exchanges, { ...found, log: found.log.toSpliced(moved, 1) }],
    'events in another order': [exchanges, logWith([moved, found.log[moved + 1]!], [moved + 1, found.log[moved]!])],
    'an event of another time': [
      exchanges,
      logWith([moved, { ...found.log[moved]!, timestamp: held.answer.data!.expiresAt as string }]),
    ],
    'a hold that expired early': [
      exchanges,
      logWith([expired, { ...found.log[expired]!, timestamp: found.log[expired]!.data.hold.createdAt }]),
    ],
    'a missing flow': [exchanges, flowsChanged(each => each.slice(0, -1))],
    'flows in another order': [exchanges, flowsChanged(each => each.toReversed())],
    'a wrong balance': [exchanges, flowsChanged(([one, ...rest]) => [{ ...one!, balanceAfter: '0.07' }, ...rest])],
    'a statement with another total': [data(statement, { totalIn: '0.07' }), found],
    'a statement with other bytes': [
      answering(statement, { data: Object.fromEntries(Object.entries(statement.answer.data!).toReversed()) }),
      found,
    ],
    'a receipt of another transfer': [receiptOf(claims => claims.replaceAll('example-plain', 'example-first')), found],
    'a receipt with another payload': [receiptOf(claims => `${claims} `), found],
    'a receipt with another signature': [
      data(receipt, {
        receipt: [header, payload, signature.replace(/^./, each => (each === 'A' ? 'B' : 'A'))].join('.'),
      }),
      found,
    ],
    'a receipt of another key': [exchanges, { ...found, receiptKeys: { keys: [] } }],
    'a receipt with another MAC': [exchanges, { ...found, macs: new Map() }],
    'a missing order': [exchanges, { ...found, orders: found.orders.slice(1) }],
  }
  for (const [name, [changedExchanges, changed]] of Object.entries(contradictions))
    expect(new History(changedExchanges, changed).check(), name).not.toEqual([])
}
