/** Runs examples/shop through a morning of random orders, while gateways, cores, couriers and the shop itself are killed. */

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  type ApiError,
  createWalletClient,
  type ReceiptKeys,
  verifyReceipt,
  type WalletClient,
} from '@workspace-wallet/client'
import { toCents, toDecimal } from '@workspace-wallet/example-shop/money'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { type Balancer, startBalancer } from './setup/balancer.ts'
import { execute } from './setup/database.ts'
import { type Customer, type Order, Shop } from './setup/shop.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createTenant } from './setup/workspaces.ts'

const seed = chooseSeed()
const customerCount = 8
const deposit = 30_000n

let system: System
let balancer: Balancer
let parts: Parts
let client: WalletClient
let shop: Shop
let file: string
let workspaceId: string
let openedAt: Date
beforeAll(async () => {
  console.log(`shop: SEED=${seed}`)
  system = await startSystem({ cores: 2, gateways: 2 })
  parts = new Parts(system)
  await parts.start()
  const directory = await makeTempDir('shop')
  const hosts = Object.fromEntries(
    system.gateways.map(({ port }, at) => [`gateway-${at + 1}:8080`, `127.0.0.1:${port}`]),
  )
  balancer = await startBalancer(hosts, directory, { CONNECTIONS_PER_SOURCE: '1000' })
  const tenant = { ...(await createTenant(system)), baseUrl: balancer.url }
  workspaceId = tenant.workspaceId
  client = createWalletClient(tenant)
  file = join(directory, 'shop.db')
  shop = await Shop.create(tenant, file)
  openedAt = new Date()
  await shop.start()
})
afterAll(async () => {
  await shop?.kill()
  await balancer?.stop()
  await system.stop()
})

/** The programs of the service, each restarted where it was. */
class Parts {
  readonly #system: System
  readonly #programs = new Map<string, { program: Program; start(): Promise<Program> }>()

  constructor(system: System) {
    this.#system = system
  }

  async start(): Promise<void> {
    const { cores, gateways } = this.#system
    const CORE_URL = cores.map(({ url }) => url).join(',')
    for (const [at, program] of cores.entries())
      this.#programs.set(`core-${at + 1}`, {
        program,
        start: () => this.#system.startCore({ CORE_PORT: String(program.port) }),
      })
    for (const [at, program] of gateways.entries())
      this.#programs.set(`gateway-${at + 1}`, {
        program,
        start: () => this.#system.startGateway({ CORE_URL, GATEWAY_PORT: String(program.port) }),
      })
    for (const name of ['courier-1', 'courier-2']) {
      const start = () => this.#system.startCourier({ CORE_URL })
      this.#programs.set(name, { program: await start(), start })
    }
  }

  get names(): string[] {
    return [...this.#programs.keys()]
  }

  async kill(name: string): Promise<void> {
    await this.#programs.get(name)!.program.kill('SIGKILL')
    if (name.startsWith('courier')) await endLeases(this.#system)
  }

  /** Starts a part that was killed. */
  async restart(name: string): Promise<void> {
    const part = this.#programs.get(name)!
    part.program = await part.start()
    // Core may have carried out a call of the killed courier since.
    if (name.startsWith('courier')) await endLeases(this.#system)
  }
}

/** As if a minute had passed since a courier was killed: another one continues, and may repeat what it delivered. */
async function endLeases({ database }: System): Promise<void> {
  await execute(database.ownerUrl, 'update webhook set leased_until = now()')
}

/** A customer who orders at random. Knows what the shop and the ledger must show afterwards. */
class Shopper {
  readonly customerId: string
  readonly orders: { orderId: string; status: string; captured: bigint; refunded: bigint }[] = []
  balance = 0n
  held = 0n
  walletId = ''
  readonly #random: Random
  #isShopping = true

  constructor(customerId: string, random: Random) {
    this.customerId = customerId
    this.#random = random
  }

  async open(): Promise<void> {
    await shop.put(`/customers/${this.customerId}`, { name: `Customer ${this.customerId}` })
    const path = `/customers/${this.customerId}`
    this.walletId = await until(`a wallet of ${path}`, async () => (await shop.get<Customer>(path)).body.walletId)
    await system.admin.wallets.deposit.mutate({
      workspaceId,
      walletId: this.walletId,
      amount: toDecimal(deposit),
      bizId: randomUUID(),
    })
    this.balance = deposit
  }

  async shop(): Promise<void> {
    while (this.#isShopping) await this.order()
  }

  leave(): void {
    this.#isShopping = false
  }

  /** Orders something, which is shipped, cancelled or refunded, whole or in parts, or is left open. */
  async order(): Promise<void> {
    const random = this.#random
    const orderId = `${this.customerId}-${this.orders.length + 1}`
    const cents = BigInt(1 + random.int(random.chance(0.15) ? 2 * Number(deposit) : 4_000))
    const isAffordable = cents <= this.balance - this.held
    const expected = { orderId, status: isAffordable ? 'AUTHORIZED' : 'REJECTED', captured: 0n, refunded: 0n }
    this.orders.push(expected)
    await put(`/orders/${orderId}`, { customerId: this.customerId, amount: toDecimal(cents) })
    const placed = await settled(orderId)
    expect(placed).toMatchObject({ status: expected.status })
    if (!isAffordable)
      return expect(placed.steps).toMatchObject([{ kind: 'HOLD', state: 'REJECTED', code: 'T002' }]) as never
    this.held += cents
    const shipments = this.#partsOf(cents)
    const left = random.chance(0.35) ? random.int(shipments.length + 1) : shipments.length
    for (const [at, part] of shipments.slice(0, left).entries())
      await put(`/orders/${orderId}/shipments/${at + 1}`, { amount: toDecimal(part) })
    await settled(orderId)
    expected.captured = sumOf(shipments.slice(0, left))
    this.balance -= expected.captured
    this.held -= expected.captured
    if (left === shipments.length) expected.status = 'COMPLETED'
    else if (random.chance(0.8)) {
      await put(`/orders/${orderId}/cancellation`)
      this.held -= cents - expected.captured
      expected.status = expected.captured > 0n ? 'COMPLETED' : 'CANCELLED'
    }
    for (const [at, part] of shipments.slice(0, left).entries())
      if (random.chance(0.4)) expected.refunded += await this.#refund(orderId, at + 1, part)
    this.balance += expected.refunded
    expect(await settled(orderId)).toMatchObject(shown(expected))
  }

  /** All of a shipment, or some parts of it. */
  async #refund(orderId: string, shipment: number, paid: bigint): Promise<bigint> {
    const refunds = this.#partsOf(paid)
    if (refunds.length > 1 && this.#random.chance(0.5)) refunds.pop()
    for (const [at, part] of refunds.entries())
      await put(`/orders/${orderId}/shipments/${shipment}/refunds/${at + 1}`, { amount: toDecimal(part) })
    return sumOf(refunds)
  }

  /** Up to three amounts that come to this one. */
  #partsOf(cents: bigint): bigint[] {
    const parts: bigint[] = []
    let left = cents
    while (left > 1n && parts.length < 2 && this.#random.chance(0.5)) {
      const part = 1n + BigInt(this.#random.int(Number(left) - 1))
      parts.push(part)
      left -= part
    }
    return [...parts, left]
  }
}

const sumOf = (amounts: bigint[]) => amounts.reduce((sum, each) => sum + each, 0n)
const shown = ({ captured, refunded, ...order }: Shopper['orders'][number]) => ({
  ...order,
  captured: toDecimal(captured),
  refunded: toDecimal(refunded),
})

/** A request that the shop accepts. */
async function put(path: string, body: object = {}): Promise<void> {
  expect({ path, ...(await shop.put<Order>(path, body)) }).toMatchObject({ path, status: 202 })
}

/** The order, once each of its commands has taken effect or was refused. */
async function settled(orderId: string): Promise<Order> {
  return until(`the commands of order ${orderId}`, async () => {
    const { body } = await shop.get<Order>(`/orders/${orderId}`)
    return body.steps.every(({ state }) => state === 'DONE' || state === 'REJECTED') && body
  })
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  return Array.fromAsync(items)
}

test(`after a morning in which everything is killed, the shop's books equal the ledger's (seed ${seed})`, async () => {
  const random = new Random(seed)
  const shoppers = Array.from({ length: customerCount }, (_, at) => new Shopper(`c${at}`, new Random(seed + at + 1)))
  // So many deliveries at a time overtake one another.
  const [webhook] = await all(client.webhooks.listAll())
  await client.webhooks.update(webhook!.webhookId, { concurrency: 8 })
  await Promise.all(shoppers.map(shopper => shopper.open()))
  const shopping = shoppers.map(shopper => shopper.shop())
  const orderCount = () => shoppers.reduce((count, { orders }) => count + orders.length, 0)
  const morning = Promise.all(shopping)

  const killAndRestart = async (name: string) => {
    if (name !== 'shop') await parts.kill(name).then(() => parts.restart(name))
    else await shop.kill().then(() => shop.start())
  }
  const kills = random.shuffled([...parts.names, 'shop', 'shop'])
  for (let at = 0; at < kills.length; at += 2) {
    const before = orderCount()
    await Promise.race([until('further orders', () => orderCount() >= before + 2 * customerCount), morning])
    // A pair may be the shop twice.
    await Promise.all([...new Set(kills.slice(at, at + 2))].map(killAndRestart))
  }
  for (const shopper of shoppers) shopper.leave()
  await morning
  const closedAt = new Date()
  console.log(`shop: ${orderCount()} orders of the morning, ${(await client.events.read('head')).last} events`)

  // Without a restart, the webhook alone tells the shop. Repeated deliveries of the whole log change nothing.
  const { last: head } = await client.events.read('head')
  await client.webhooks.seek(webhook!.webhookId, 0)
  await Promise.all(shoppers.map(shopper => shopper.order()))
  await until(
    'all events are delivered again',
    async () => (await client.webhooks.get(webhook!.webhookId)).position > head,
  )

  await expectSameBooks(shoppers)
  await expectGenuineReceipts(shoppers)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })

  // The end of a statement is at least 30 seconds ago.
  const { walletId } = shoppers[0]!
  await until('a statement of the morning', () =>
    client.wallets.statement(walletId, openedAt, closedAt).catch((error: ApiError) => {
      if (error.code !== 'S012') throw error
    }),
  )
  expect(await shop.reconcile(openedAt, closedAt)).toEqual({
    exitCode: 0,
    output: expect.stringMatching(/^9 wallets from .* they match their statements\.\n$/),
  })
  expect(await shop.reconcile(openedAt, new Date(Date.now() + 60_000))).toEqual({
    exitCode: 1,
    output: expect.stringMatching(/^GET \/api\/v1\/wallets\/wal_\w{26}\/statement.*S012.*\n$/),
  })
  const books = new DatabaseSync(file)
  books.exec('update entry set cents = cents + 1 where position = (select min(position) from entry)')
  books.close()
  expect(await shop.reconcile(openedAt, closedAt)).toEqual({
    exitCode: 1,
    output: expect.stringMatching(
      /^\S+ \(wal_\w{26}\): totalIn is [\d.]+ in the books and [\d.]+ in the statement\.\n/,
    ),
  })
})

/** Every order and every wallet: what the customer expects, what the shop shows, and what the ledger says. */
async function expectSameBooks(shoppers: Shopper[]): Promise<void> {
  const holds = new Map((await all(client.holds.listAll())).map(hold => [hold.bizId, hold]))
  const transfers = await all(client.transfers.listAll())
  for (const { customerId, walletId, balance, held, orders } of shoppers) {
    expect(await client.wallets.balance(walletId)).toMatchObject({ balance: toDecimal(balance), held: toDecimal(held) })
    expect((await shop.get(`/customers/${customerId}`)).body).toMatchObject({ walletId, balance: toDecimal(balance) })
    for (const order of orders) {
      const { orderId, status, captured, refunded } = order
      expect((await shop.get(`/orders/${orderId}`)).body).toMatchObject(shown(order))
      const own = transfers.filter(({ reference }) => reference === orderId)
      const paid = own.filter(({ reversesTransferId }) => reversesTransferId === null)
      expect(sumOf(paid.map(({ amount }) => toCents(amount)))).toBe(captured)
      expect(sumOf(paid.map(({ reversedAmount }) => toCents(reversedAmount)))).toBe(refunded)
      const statusOfHold = { AUTHORIZED: 'OPEN', CANCELLED: 'RELEASED', REJECTED: undefined }[status]
      expect(holds.get(`order:${orderId}`)?.status).toBeOneOf(
        status === 'COMPLETED' ? ['CAPTURED', 'RELEASED'] : [statusOfHold],
      )
    }
  }
  const [till] = (await all(client.wallets.listAll())).filter(({ bizId }) => bizId === 'shop')
  const earned = sumOf(shoppers.flatMap(({ orders }) => orders.map(({ captured, refunded }) => captured - refunded)))
  expect(till!.balance).toBe(toDecimal(earned))
}

async function expectGenuineReceipts(shoppers: Shopper[]): Promise<void> {
  const keys = (await (await fetch(`${balancer.url}/.well-known/jwks.json`)).json()) as ReceiptKeys
  for (const { walletId, orders } of shoppers) {
    const order = orders.find(({ captured }) => captured > 0n)
    if (!order) continue
    const path = `/orders/${order.orderId}/shipments/1/receipt`
    const { receipt } = (await shop.get<{ receipt: string }>(path)).body
    const { bizId, sourceWalletId } = await verifyReceipt(receipt, keys)
    expect({ bizId, sourceWalletId }).toEqual({ bizId: `order:${order.orderId}:shipment:1`, sourceWalletId: walletId })
  }
}

test('a command that was stored before a crash is sent at the next start', async () => {
  await put('/customers/late', { name: 'Late' })
  await until('a wallet', async () => (await shop.get<Customer>('/customers/late')).body.walletId)
  const gateways = parts.names.filter(name => name.startsWith('gateway'))
  await Promise.all(gateways.map(name => parts.kill(name)))
  try {
    await put('/orders/before-the-crash', { customerId: 'late', amount: '1.00' })
    await shop.kill()
  } finally {
    await Promise.all(gateways.map(name => parts.restart(name)))
  }
  await shop.start()
  const { status, steps } = await settled('before-the-crash')
  expect({ status, steps }).toMatchObject({ status: 'REJECTED', steps: [{ state: 'REJECTED', code: 'T002' }] })
})

test('a delivery that the service did not sign is rejected', async () => {
  const forged = { eventId: 'evt_1', position: 1, type: 'wallet.deposited' }
  const response = await fetch(`${shop.url}/wallet-events`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
      'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
    },
    body: JSON.stringify(forged),
  })
  expect(response.status).toBe(401)
  expect(await response.json()).toEqual({ error: expect.stringContaining('No signature is valid.') })
})

test.each([
  [404, '/orders/none/cancellation', {}],
  [404, '/orders/c0-1/shipments/0', { amount: '1.00' }],
  [400, '/orders/other', { customerId: 'c0', amount: 1 }],
  [400, '/orders/other', { customerId: 'c0', amount: '1.001' }],
  [400, '/orders/other', { customerId: 'c0', amount: '0.00' }],
  [409, '/orders/other', { customerId: 'nobody', amount: '1.00' }],
  [409, '/orders/c0-1', { customerId: 'c0', amount: '999.99' }],
  [409, '/orders/c0-1/shipments/99', { amount: '9999.00' }],
  [409, '/orders/c0-1/shipments/99/refunds/1', { amount: '1.00' }],
])('the shop answers %d to %s %j', async (status, path, body) => {
  expect(await shop.put(path, body)).toEqual({ status, body: { error: expect.stringMatching(/^\S.*\.$/) } })
})
