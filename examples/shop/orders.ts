import type { Database, Row } from './database.ts'
import { currency, toCents, toDecimal } from './money.ts'

/** A request that the shop rejects. */
export class Rejection extends Error {
  readonly status: 400 | 404 | 409

  constructor(status: 400 | 404 | 409, message: string) {
    super(message)
    this.status = status
  }
}

export const shopWallet = 'shop'
const authorizedForSeconds = 7 * 86_400

type Step = { kind: string; orderId?: string; cents?: bigint; body: object }

/**
 * What customers and staff ask for. Each method stores a command, whose bizId says what it is: asking for the same thing again
 * changes nothing. `Commands` sends it to the wallet service, and `Books` has its effects.
 */
export class Orders {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The wallet that customers pay into. */
  openShop(): void {
    this.#store(shopWallet, { kind: 'WALLET', body: { name: 'Shop', currency, bizId: shopWallet } })
  }

  addCustomer(customerId: string, name: unknown): void {
    if (typeof name !== 'string' || name === '') throw new Rejection(400, 'name must be a string that is not empty.')
    const bizId = `customer:${customerId}`
    this.#database.transaction(() => {
      this.#database.run('insert or ignore into customer (customer_id, name) values (?, ?)', customerId, name)
      this.#store(bizId, { kind: 'WALLET', body: { name, currency, bizId } })
    })
  }

  /** Authorizes the amount: a hold on the wallet of the customer. */
  place(orderId: string, customerId: unknown, amount: unknown): void {
    const cents = positive(amount)
    this.#database.transaction(() => {
      const { wallet_id: walletId } = this.#wallet(`customer:${customerId}`)
      const place = 'insert or ignore into orders (order_id, customer_id, cents) values (?, ?, ?)'
      this.#database.run(place, orderId, customerId as string, cents)
      const bizId = holdOf(orderId)
      const terms = { walletId, amount: toDecimal(cents), currency, expiresInSeconds: authorizedForSeconds }
      this.#store(bizId, { kind: 'HOLD', orderId, cents, body: { ...terms, bizId, reference: orderId } })
    })
  }

  /** Captures a part of the order, which is being shipped. The rest stays authorized. */
  ship(orderId: string, number: string, amount: unknown): void {
    const cents = positive(amount)
    const bizId = shipmentOf(orderId, number)
    this.#database.transaction(() => {
      if (this.#isStored(bizId, cents)) return
      const order = this.#order(orderId)
      if (order.status !== 'AUTHORIZED')
        throw new Rejection(409, `The order is ${order.status}: it can be shipped while it is AUTHORIZED.`)
      if (this.#isStored(`${holdOf(orderId)}:release`)) throw new Rejection(409, 'The order is being cancelled.')
      if (this.#sum(orderId, 'CAPTURE') + cents > (order.cents as bigint))
        throw new Rejection(409, 'Shipments cannot be worth more than the order.')
      const { customer_id } = order
      const body = {
        sourceWalletId: this.#wallet(`customer:${customer_id}`).wallet_id,
        targetWalletId: this.#wallet(shopWallet).wallet_id,
        amount: toDecimal(cents),
        currency,
        bizId,
        reference: orderId,
        holdId: holdOf(orderId),
        holdRemainder: 'KEEP',
      }
      this.#store(bizId, { kind: 'CAPTURE', orderId, cents, body })
    })
  }

  /** Releases what is not shipped. */
  cancel(orderId: string): void {
    const holdId = holdOf(orderId)
    this.#database.transaction(() => {
      if (this.#isStored(`${holdId}:release`)) return
      const { status } = this.#order(orderId)
      if (status !== 'AUTHORIZED')
        throw new Rejection(409, `The order is ${status}: it can be cancelled while it is AUTHORIZED.`)
      this.#store(`${holdId}:release`, { kind: 'RELEASE', orderId, body: { holdId } })
    })
  }

  /** Pays a part of a shipment back. */
  refund(orderId: string, shipment: string, number: string, amount: unknown): void {
    const cents = positive(amount)
    const reversesTransferId = this.paidShipment(orderId, shipment)
    const bizId = `${reversesTransferId}:refund:${number}`
    this.#database.transaction(() => {
      if (this.#isStored(bizId, cents)) return
      const { cents: captured } = this.#command(reversesTransferId)!
      if (this.#sum(orderId, 'REFUND', `${reversesTransferId}:`) + cents > (captured as bigint))
        throw new Rejection(409, 'Refunds cannot be worth more than the shipment.')
      const body = { reversesTransferId, amount: toDecimal(cents), currency, bizId, reference: orderId }
      this.#store(bizId, { kind: 'REFUND', orderId, cents, body })
    })
  }

  /** The bizId of the transfer that paid for a shipment. */
  paidShipment(orderId: string, number: string): string {
    const bizId = shipmentOf(orderId, number)
    if (this.#command(bizId)?.state !== 'DONE') throw new Rejection(409, 'The shipment is not paid yet.')
    return bizId
  }

  customer(customerId: string) {
    const found = this.#database.first('select name from customer where customer_id = ?', customerId)
    if (!found) throw new Rejection(404, 'There is no such customer.')
    const wallet = this.#database.first('select * from wallet where biz_id = ?', `customer:${customerId}`)
    const [walletId, balance] = wallet ? [wallet.wallet_id, toDecimal(wallet.balance as bigint)] : [null, '0.00']
    return { customerId, name: found.name, walletId, balance }
  }

  order(orderId: string) {
    const { customer_id, cents, status, captured, refunded } = this.#order(orderId)
    const steps = this.#database.all('select * from command where order_id = ? order by number', orderId)
    return {
      orderId,
      customerId: customer_id,
      amount: toDecimal(cents as bigint),
      status,
      captured: toDecimal(captured as bigint),
      refunded: toDecimal(refunded as bigint),
      steps: steps.map(({ biz_id, kind, cents, state, code }) => ({
        bizId: biz_id as string,
        kind,
        amount: toDecimal(cents as bigint),
        state,
        code,
      })),
    }
  }

  #order(orderId: string): Row {
    const order = this.#database.first('select * from orders where order_id = ?', orderId)
    if (!order) throw new Rejection(404, 'There is no such order.')
    return order
  }

  #wallet(bizId: string): Row {
    const wallet = this.#database.first('select * from wallet where biz_id = ?', bizId)
    if (!wallet) throw new Rejection(409, `The wallet ${bizId} is not open yet.`)
    return wallet
  }

  #command(bizId: string): Row | undefined {
    return this.#database.first('select * from command where biz_id = ?', bizId)
  }

  /** The sum of the commands of this kind that were not refused. */
  #sum(orderId: string, kind: string, prefix = ''): bigint {
    const sum = `select coalesce(sum(cents), 0) as cents from command
      where order_id = ? and kind = ? and state <> 'REJECTED' and biz_id glob ? || '*'`
    return this.#database.first(sum, orderId, kind, prefix)!.cents as bigint
  }

  #isStored(bizId: string, cents?: bigint): boolean {
    const command = this.#command(bizId)
    if (command && cents !== undefined && command.cents !== cents)
      throw new Rejection(409, `${bizId} exists with the amount ${toDecimal(command.cents as bigint)}.`)
    return command !== undefined
  }

  #store(bizId: string, { kind, orderId, cents = 0n, body }: Step): void {
    if (this.#isStored(bizId, cents)) return
    const insert = 'insert into command (biz_id, kind, order_id, cents, body) values (?, ?, ?, ?, ?)'
    this.#database.run(insert, bizId, kind, orderId ?? null, cents, JSON.stringify(body))
  }
}

const holdOf = (orderId: string) => `order:${orderId}`
const shipmentOf = (orderId: string, number: string) => `order:${orderId}:shipment:${number}`

function positive(amount: unknown): bigint {
  const cents = toCents(amount)
  if (cents <= 0n) throw new RangeError('An amount must be above zero.')
  return cents
}
